"""The distribution of label sets whose labels are a chain of tags, on or off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from spen_plugins import DependentLabels
from spen_plugins.nn import at_least_float32, chain_k_best


@dataclass(frozen=True)
class LabelChain(DependentLabels):
    """q(y | x) ∝ exp(Σ_i s_i y_i + Σ_i A[y_before(i), y_i]); `logits` are the s_i, `(batch, 1, label)`.

    `log_prob` of a relaxed y uses the expected score under independent labels. `rsample` and `perturb` are those of the
    independent labels with the same marginals.

    Args:
        transitions: A, from the previous label to the label, `(2, 2)`.
        order: the labels along the chain, `(label,)`.
    """

    transitions: Tensor | None = None
    order: Tensor | None = None

    @property
    def _scores(self) -> Tensor:
        """Scores of off and on along the chain, `(batch, label, 2)`."""
        on = at_least_float32(self.logits[:, 0, self.order])
        return torch.stack([torch.zeros_like(on), on], 2)

    @property
    def _transitions(self) -> Tensor:
        return at_least_float32(self.transitions)

    @cached_property
    def _forward(self) -> Tensor:
        """ln α, `(batch, label, 2)`: the sum over all beginnings."""
        with self.restore_grad_mode():
            scores = self._scores
            rows = [scores[:, 0]]
            for place in range(1, scores.shape[1]):
                alternatives = rows[-1].unsqueeze(2) + self._transitions
                rows.append(torch.logsumexp(alternatives, 1) + scores[:, place])
            return torch.stack(rows, 1)

    @cached_property
    def log_z(self) -> Tensor:
        """ln Z, `(batch,)`."""
        with self.restore_grad_mode():
            return torch.logsumexp(self._forward[:, -1], 1)

    @cached_property
    def mean(self) -> Tensor:
        """Marginals, `(batch, 1, label)`, differentiable."""
        with self.restore_grad_mode():
            scores = self._scores
            rows = [torch.zeros_like(scores[:, 0])]
            for place in range(scores.shape[1] - 1, 0, -1):
                alternatives = self._transitions + (rows[-1] + scores[:, place]).unsqueeze(1)
                rows.append(torch.logsumexp(alternatives, 2))
            p = torch.softmax(self._forward + torch.stack(rows[::-1], 1), 2)[..., 1]
            return p[:, self.order.argsort()].unsqueeze(1)

    def log_prob(self, y: Tensor) -> Tensor:
        y = at_least_float32(y[..., self.order])
        tags = torch.stack([1 - y, y], 3)
        links = ((tags[:, :, :-1] @ self._transitions.to(tags.dtype)) * tags[:, :, 1:]).flatten(2).sum(2)
        return (tags * self._scores.unsqueeze(1)).flatten(2).sum(2) + links - self.log_z.unsqueeze(1)

    def sample(self, n: int) -> Tensor:
        """Exact draws, from the end of the chain to its beginning."""
        with torch.no_grad():
            alpha, steps = self._forward, self._transitions.t()
            batch, labels, _ = alpha.shape
            odds = (alpha[:, -1, 1] - alpha[:, -1, 0]).unsqueeze(1).expand(batch, n)
            tags = []
            for place in range(labels - 1, -1, -1):
                tags.append((torch.rand_like(odds) < torch.sigmoid(odds)).long())
                if place:
                    links = steps[tags[-1]]  # (batch, sample, tag before)
                    scores = alpha[:, place - 1].unsqueeze(1) + links
                    odds = scores[..., 1] - scores[..., 0]
            return torch.stack(tags[::-1], 2)[..., self.order.argsort()].to(self.logits.dtype)

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            zeros = self._transitions.new_zeros(2)
            tags, scores = chain_k_best(self._scores, None, self._transitions, zeros, zeros, k)
            return tags[..., self.order.argsort()].to(self.logits.dtype), scores - self.log_z.unsqueeze(1)

    def tempered(self, temperature: float) -> LabelChain:
        return replace(super().tempered(temperature), transitions=self.transitions / temperature)

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> LabelChain:
        mapped = super().map_rows(change)
        device = mapped.logits.device
        return replace(mapped, transitions=self.transitions.detach().to(device), order=self.order.to(device))

    def detach(self) -> LabelChain:
        return replace(super().detach(), transitions=self.transitions.detach())
