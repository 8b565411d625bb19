"""SEAL-dynamic NCE on bibtex as one would write it in an afternoon: dense inputs, default AdamW, nothing shared.

The yardstick of `tools/bench_training.py`: sizes, batch and samples as in `configs/mlc_seal.jsonnet`.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

HIDDEN, SAMPLES, ENERGY_WEIGHT, BATCH = 400, 20, 5.51, 32


def _features(size: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(size, HIDDEN), nn.Softplus(), nn.Dropout(0.5), nn.Linear(HIDDEN, HIDDEN), nn.Softplus()
    )


class _Energy(nn.Module):
    def __init__(self, size: int, labels: int) -> None:
        super().__init__()
        self.net, self.local = _features(size), nn.Linear(HIDDEN, labels, bias=False)
        self.pairs, self.v = nn.Linear(labels, 200), nn.Linear(200, 1, bias=False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        unary = self.local(self.net(x)).unsqueeze(1)
        return -((unary * y).sum(-1) + self.v(F.softplus(self.pairs(y))).squeeze(-1))


class Plain:
    """A task net and an energy on dense `x` `(rows, feature)` and `y` `(rows, label)`."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y
        self.task = nn.Sequential(_features(x.shape[1]), nn.Linear(HIDDEN, y.shape[1], bias=False))
        self.energy = _Energy(x.shape[1], y.shape[1])
        self.task_optimizer = torch.optim.AdamW(self.task.parameters(), lr=1.17e-3, weight_decay=1e-5)
        self.energy_optimizer = torch.optim.AdamW(self.energy.parameters(), lr=2e-4, weight_decay=1e-5)

    def epoch(self) -> float:
        """Train one epoch, one energy update and one task update a batch; seconds."""
        started = time.perf_counter()
        for rows in torch.randperm(len(self.x)).split(BATCH):
            self._batch(self.x[rows], self.y[rows])
        return time.perf_counter() - started

    def _batch(self, x: Tensor, y: Tensor) -> None:
        with torch.no_grad():
            logits = self.task(x)
        drawn = torch.bernoulli(torch.sigmoid(logits)[:, None].expand(-1, SAMPLES, -1))
        outputs = torch.cat([y[:, None], drawn], 1)
        wide = logits[:, None].expand_as(outputs)
        noise = -F.binary_cross_entropy_with_logits(wide, outputs, reduction="none").sum(-1)
        loss = -(-self.energy(x, outputs) - noise).log_softmax(1)[:, 0].mean()
        self.energy_optimizer.zero_grad()
        loss.backward()
        self.energy_optimizer.step()
        logits = self.task(x)
        loss = F.binary_cross_entropy_with_logits(logits, y, reduction="none").sum(1).mean()
        loss = loss + ENERGY_WEIGHT * self.energy(x, torch.sigmoid(logits)[:, None]).mean()
        self.task_optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.task.parameters(), 10)
        self.task_optimizer.step()
