"""Multi-label outputs: the box [0, 1]^L, and independent label sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.spaces.base import Box, at_least_float32, inner_product
from spen_plugins.spaces.distribution import Dependent, Proposal
from spen_plugins.spaces.forest import Forest
from spen_plugins.spaces.k_best import cheapest_flips
from spen_plugins.spaces.sparse import SparseLabels, find_positive, find_true, sort_ascending


class LabelSet(Box):
    """Any subset of L labels; `y` is `(batch, sample, label)` in [0, 1]. There is no padding, so masks are None.

    Args:
        labels: the labels' names, in the order of the last axis.
        parents: the index of each label's parent in a hierarchy, where a label implies its parent; None for a root.
        largest: the number of labels of the largest set in training, if it is known.
    """

    def __init__(
        self, labels: list[str], parents: Sequence[int | None] | None = None, largest: int | None = None
    ) -> None:
        self.labels, self.largest = list(labels), largest
        self.forest = None if parents is None else Forest(labels, parents)

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (len(self.labels),)

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None = None) -> Tensor:
        """Soft F1 of Gygli et al. 2017: 2I / (I + U), I = Σ min(y, gold), U = Σ max(y, gold)."""
        intersection, union = torch.minimum(y, gold).sum(-1), torch.maximum(y, gold).sum(-1)
        return torch.where(
            union > 0, 2 * intersection / (intersection + union).clamp(min=1e-12), torch.ones_like(union)
        )

    def tally(self, gold: Tensor) -> tuple[Tensor, Tensor]:
        return gold.sum((0, 1)), gold.new_tensor(float(gold.shape[0]))

    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> IndependentLabels:
        return IndependentLabels(self, logits, mask, **kept)


@dataclass(frozen=True)
class IndependentLabels(Proposal):
    """Independent labels, each on with probability sigmoid(logit) (Bernoulli)."""

    sparse: ClassVar[bool] = True

    @cached_property
    def mode(self) -> Tensor:
        return (self.logits > 0).to(self.logits.dtype)

    def sample(self, n: int) -> Tensor:
        p = torch.sigmoid(self.logits.detach())
        noise = torch.rand(p.shape[0], n, p.shape[-1], device=p.device, dtype=p.dtype)
        return (noise < p).to(p.dtype)

    def sample_sparse(self, n: int) -> SparseLabels:
        """Samples as lists of the labels that are on; only these cost memory and random numbers.

        Labels with p > 1/2 are drawn individually. The others are a Poisson process (thinning, Lewis & Shedler 1979):
        events at rate −ln(1 − p) = softplus(logit) on each label of each sample, which is on if there is an event, so
        with probability 1 − exp(−rate) = p, independently. Float32 rates are summed in float64: the rate of a label
        with p = 1e-12 is still resolved after a sum over millions of them.
        """
        batch, _, labels = self.logits.shape
        logits = self.logits.detach().flatten()
        likely_cells = find_positive(logits)
        # One draw for all examples: a label of an example is one cell of a long line of rates. In place, as new memory
        # costs more than the computation.
        rates = at_least_float32(logits).exp().log1p_().index_fill_(0, likely_cells, 0).double().cumsum_(0)
        total = rates[-1].nan_to_num(0)  # a diverged net is reported by its loss
        event_count = int(torch.poisson(n * total))
        positions = sort_ascending(torch.rand(event_count, dtype=torch.float64, device=logits.device)) * total
        # Rounding may move the last events to the very end, after the last cell.
        cells = torch.searchsorted(rates, positions.clamp_(max=torch.nextafter(total, -total)), right=True)
        sample = torch.randint(n, (event_count,), device=logits.device)

        p = logits[likely_cells].double().sigmoid().unsqueeze(1)
        hits = find_true((torch.rand(len(likely_cells), n, dtype=torch.float64, device=logits.device) < p).flatten())
        cells, sample = torch.cat([cells, likely_cells[hits // n]]), torch.cat([sample, hits % n])
        keys = sort_ascending(cells + (cells // labels * (n - 1) + sample) * labels)
        return SparseLabels.from_keys(torch.unique_consecutive(keys), (batch, n, labels))

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        logits = self.logits
        u = torch.rand(logits.shape[0], n, logits.shape[-1], device=logits.device, dtype=logits.dtype)
        return torch.sigmoid((logits + torch.logit(u, eps=1e-7)) / temperature)

    def log_prob(self, y: Tensor | SparseLabels) -> Tensor:
        # sum_l y_l·logit_l − softplus(logit_l) is −BCE; the second sum does not depend on y.
        logits = at_least_float32(self.logits)
        if isinstance(y, SparseLabels):
            return y.sums(logits) - F.softplus(logits).sum(-1)
        linear = inner_product(logits[:, 0], y) if logits.shape[1] == 1 else (y * logits).sum(-1)
        return linear - F.softplus(logits).sum(-1)

    def weighted_log_prob(self, y: Tensor, weights: Tensor) -> Tensor:
        logits = at_least_float32(self.logits)
        absent_weight, present_weight = weights.to(y.dtype)
        present = y * present_weight
        linear = inner_product(logits[:, 0], present) if logits.shape[1] == 1 else (present * logits).sum(-1)
        return linear - (F.softplus(logits) * (present + (1 - y) * absent_weight)).sum(-1)

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        logits = at_least_float32(self.logits.detach())
        best = (logits > 0).to(logits.dtype)
        flips, cost = cheapest_flips(logits[:, 0].abs(), k)
        return (best - flips.to(best.dtype)).abs(), self.log_prob(best).detach() - cost

    def label_powers(self, t: Tensor) -> Tensor:
        return label_powers(self.logits[:, 0], t)


@dataclass(frozen=True)
class DependentLabels(Dependent):
    """Labels that depend on each other: `mode` is the first of `k_best`."""

    space: LabelSet

    @cached_property
    def mode(self) -> Tensor:
        return self.k_best(1)[0]

    @cached_property
    def _closest_independent(self) -> Proposal:
        with self.restore_grad_mode():
            return self.space.independent(torch.logit(self.mean, eps=1e-7))


def label_powers(logits: Tensor, t: Tensor) -> Tensor:
    """`Proposal.label_powers` of independent labels, t p_i Π_{j≠i} (1 − p_j + p_j t), from logits `(batch, label)`,
    without gradient."""
    # In float64 where the device has it.
    logits = logits.detach().to(torch.float32 if logits.device.type == "mps" else torch.float64).unsqueeze(1)
    p_on, p_off = torch.sigmoid(logits), torch.sigmoid(-logits)
    t = t.unsqueeze(1)
    factors = torch.addcmul(p_off, p_on, t)  # at least t, so never 0
    total = factors.prod(2, keepdim=True)
    return torch.div(p_on, factors, out=factors).mul_(total * t)
