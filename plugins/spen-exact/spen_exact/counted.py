"""The distribution of label sets with a free potential on the number of labels (Tarlow et al. 2012)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_exact.set_sizes import SizeTree, compute_label_sizes, log_sizes
from spen_plugins import DependentLabels
from spen_plugins.nn import at_least_float32, inner_product


def potential(counts: Tensor, y: Tensor) -> Tensor:
    """c_|y| of label sets, and its expectation under independent labels of these means for a relaxed y.

    Shapes: counts `(batch, size)` from size 0, the last one shared by all larger sizes; y `(batch, sample, label)`;
    returns `(batch, sample)`.
    """
    if not y.requires_grad and bool(((y == 0) | (y == 1)).all()):
        return counts.gather(1, y.sum(-1).round().long().clamp(max=counts.shape[1] - 1))
    flat = at_least_float32(y).flatten(0, 1)
    law = SizeTree(flat, 1 - flat, counts.shape[1] - 1).law.view(*y.shape[:2], -1)
    return (law * counts.unsqueeze(1)).sum(-1)


@dataclass(frozen=True)
class CountedLabels(DependentLabels):
    """q(y | x) ∝ exp(Σ_i s_i y_i + c_|y|); `logits` are the s_i, `(batch, 1, label)`.

    Args:
        counts: c of sizes 0, 1, …, `(batch, size)`, the last one shared by all larger sizes.
    """

    potentials: ClassVar[tuple[str, ...]] = ("counts",)
    counts: Tensor | None = None

    @property
    def _scores(self) -> Tensor:
        return at_least_float32(self.logits[:, 0])

    @property
    def _counts(self) -> Tensor:
        return at_least_float32(self.counts)

    @cached_property
    def _sizes(self) -> tuple[SizeTree, Tensor]:
        """The product tree, and ln P(|y|) under independent labels."""
        with self.restore_grad_mode():
            return log_sizes(self._scores, self.counts.shape[1] - 1)

    @cached_property
    def _possible_counts(self) -> Tensor:
        """The c, with −∞ for sizes whose sets all underflow: e^c may be so large there that gradients overflow."""
        with self.restore_grad_mode():
            log_law = self._sizes[1]
            return self._counts.masked_fill(log_law < math.log(torch.finfo(log_law.dtype).tiny) + 1e-3, -torch.inf)

    @cached_property
    def log_z(self) -> Tensor:
        """ln Z, `(batch,)`: ln Z of independent labels plus ln of the mean of e^c."""
        with self.restore_grad_mode():
            return F.softplus(self._scores).sum(-1) + torch.logsumexp(self._sizes[1] + self._counts, -1)

    @cached_property
    def mean(self) -> Tensor:
        """Marginals, `(batch, 1, label)`, differentiable."""
        with self.restore_grad_mode():
            tree, log_law = self._sizes
            largest = (log_law + self._possible_counts).amax(1, keepdim=True)
            limit = math.log(torch.finfo(largest.dtype).max) - 5
            return tree.marginals((self._possible_counts - largest).clamp(max=limit).exp()).unsqueeze(1)

    def log_prob(self, y: Tensor) -> Tensor:
        return inner_product(self._scores, y) + potential(self._counts, y) - self.log_z.unsqueeze(1)

    def sample(self, n: int) -> Tensor:
        """Exact draws: a size, then that many labels (conditional Bernoulli, Chen & Liu 1997)."""
        with torch.no_grad():
            tree, log_law = self._sizes
            sizes = torch.multinomial(torch.softmax(log_law + self._possible_counts, -1), n, replacement=True)
            return tree.sample(sizes).to(self.logits.dtype)

    @cached_property
    def mode(self) -> Tensor:
        """The best set, without ln Z, which takes most of the time of `k_best`."""
        return self._find_best(1)[0]

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        sets, value = self._find_best(k)
        return sets, value - self.log_z.detach().unsqueeze(1)

    def _find_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The k best sets and their scores, as in `_list_best`."""
        with torch.no_grad():
            scores, order = self._scores.sort(dim=-1, descending=True, stable=True)
            y, value = _list_best(scores, self._counts, k)
            sets = torch.zeros_like(y).scatter_(2, order.unsqueeze(1).expand_as(y), y)
            return sets.to(self.logits.dtype), value

    def label_powers(self, t: Tensor) -> Tensor:
        joint = compute_label_sizes(self.logits[:, 0], self.counts)
        return t.to(joint).unsqueeze(1) ** torch.arange(1, joint.shape[1] + 1, device=joint.device) @ joint


def _list_best(scores: Tensor, counts: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best sets, `(batch, k, label)`, and their scores, `(batch, k)`, −∞ where there are no more.

    A size counts only if its best set, that of the largest scores, is among the k best of all sizes. The k best sets of
    a size differ from its best one only in the k − 1 labels on either side of its end: more than k − 1 exchanges of one
    label improve any other set.

    Args:
        scores: in descending order, `(batch, label)`.
        counts: as in `CountedLabels`.
    """
    labels = scores.shape[1]
    size, width = torch.arange(labels + 1, device=scores.device), min(k - 1, labels)
    value = F.pad(scores.cumsum(1), (1, 0)) + counts[:, size.clamp(max=counts.shape[1] - 1)]
    value, sizes = value.topk(min(k, labels + 1), 1)
    positions = sizes.unsqueeze(2) + torch.arange(-width, width, device=scores.device)  # (batch, size, place)
    exists = (positions >= 0) & (positions < labels)
    nearby_scores = (
        scores.gather(1, positions.clamp(0, labels - 1).flatten(1)).view_as(positions).masked_fill(~exists, -torch.inf)
    )
    kept_scores = torch.where(exists & (positions < sizes.unsqueeze(2)), nearby_scores, 0).sum(2)

    partial_scores = scores.new_full((*sizes.shape, width + 1, k), -torch.inf)  # by the number of places taken
    partial_scores[:, :, 0, 0] = 0
    pointers = []
    for place in range(2 * width):
        with_label = (
            F.pad(partial_scores[:, :, :-1], (0, 0, 1, 0), value=-torch.inf) + nearby_scores[:, :, place, None, None]
        )
        partial_scores, pointer = torch.cat([partial_scores, with_label], 3).topk(k, 3)
        pointers.append(pointer.flatten(1))
    state = sizes.clamp(max=width)
    totals = partial_scores.gather(2, state[:, :, None, None].expand(-1, -1, 1, k))[:, :, 0]
    value, indices = (value.unsqueeze(2) - kept_scores.unsqueeze(2) + totals).flatten(1).topk(k, 1)
    indices = torch.where(value == -torch.inf, indices[:, :1], indices)
    size_numbers, rank = indices // k, indices % k
    state = state.gather(1, size_numbers)
    y = (torch.arange(labels + 1, device=scores.device) < sizes.gather(1, size_numbers).unsqueeze(2)).to(scores.dtype)
    places = positions.masked_fill(~exists, labels).gather(1, size_numbers.unsqueeze(2).expand(-1, -1, 2 * width))
    for place in range(2 * width - 1, -1, -1):
        pointer = pointers[place].gather(1, (size_numbers * (width + 1) + state) * k + rank)
        y.scatter_(2, places[:, :, place, None], (pointer >= k).to(y.dtype).unsqueeze(2))
        state, rank = state - (pointer >= k).long(), pointer % k
    return y[..., :labels], value
