"""The distribution of label sets whose labels are a chain of tags, on or off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from spen_plugins import DependentLabels
from spen_plugins.nn import Chain, at_least_float32, backward_scores, chain_k_best, forward_scores


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

    @cached_property
    def _chain(self) -> Chain:
        with self.restore_grad_mode():
            transitions = at_least_float32(self.transitions)
            return Chain(transitions, transitions.new_zeros(2), transitions.new_zeros(2))

    @property
    def _mask(self) -> Tensor:
        return self.logits.new_ones(self.logits.shape[0], len(self.order), dtype=torch.bool)

    @cached_property
    def _forward(self) -> Tensor:
        """ln α, `(batch, label, 2)`: the sum over all beginnings."""
        with self.restore_grad_mode():
            return forward_scores(self._scores, self._mask, self._chain)

    @cached_property
    def log_z(self) -> Tensor:
        """ln Z, `(batch,)`."""
        with self.restore_grad_mode():
            return torch.logsumexp(self._forward[:, -1], 1)

    @cached_property
    def mean(self) -> Tensor:
        """Marginals, `(batch, 1, label)`, differentiable."""
        with self.restore_grad_mode():
            beta = backward_scores(self._scores, self._mask, self._chain)
            p = torch.softmax(self._forward + beta, 2)[..., 1]
            return p[:, self.order.argsort()].unsqueeze(1)

    def log_prob(self, y: Tensor) -> Tensor:
        y = at_least_float32(y[..., self.order])
        tags = torch.stack([1 - y, y], 3)
        with torch.autocast(y.device.type, enabled=False):
            links = ((tags[:, :, :-1] @ self._chain.transitions.to(tags.dtype)) * tags[:, :, 1:]).flatten(2).sum(2)
        return (tags * self._scores.unsqueeze(1)).flatten(2).sum(2) + links - self.log_z.unsqueeze(1)

    def sample(self, n: int) -> Tensor:
        """Exact draws, from the end of the chain to its beginning."""
        with torch.no_grad():
            alpha, steps = self._forward, self._chain.transitions.t()
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
            tags, scores = chain_k_best(self._scores, None, *self._chain, k)
            return tags[..., self.order.argsort()].to(self.logits.dtype), scores - self.log_z.unsqueeze(1)

    def tempered(self, temperature: float) -> LabelChain:
        return replace(super().tempered(temperature), transitions=self.transitions / temperature)

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> LabelChain:
        mapped = super().map_rows(change)
        device = mapped.logits.device
        return replace(mapped, transitions=self.transitions.detach().to(device), order=self.order.to(device))

    def detach(self) -> LabelChain:
        return replace(super().detach(), transitions=self.transitions.detach())
