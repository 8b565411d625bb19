"""The distribution of label sets that have each label's parent: sums over forests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins import LabelSet, Proposal
from spen_plugins.nn import Forest, at_least_float32, inner_product


def sum_upward(scores: Tensor, forest: Forest) -> Tensor:
    """Log-odds of each label if its parent is on, s_i + Σ_c ln(1 + exp(log-odds of child c)), `(..., label)`."""
    odds = at_least_float32(scores)
    for level in reversed(forest.levels):
        labels, parents = level.labels.to(odds.device), level.parents.to(odds.device)
        odds = odds.index_add(-1, parents, F.softplus(odds[..., labels]))
    return odds


def multiply_downward(p: Tensor, forest: Forest) -> Tensor:
    """Products of each label's number with those of its ancestors, `(..., label)`: P(y_i = 1) from P(y_i = 1 | parent).

    A product is at most its parent's, also when rounded.
    """
    for level in forest.levels:
        labels, parents = level.labels.to(p.device), level.parents.to(p.device)
        p = p.index_copy(-1, labels, p[..., labels] * p[..., parents])
    return p


@dataclass(frozen=True)
class CoherentLabels(Proposal):
    """q(y | x) ∝ exp(Σ_i s_i y_i) over sets in which a label implies its parent; `logits` are the s_i.

    `log_prob` is −∞ for any other set, and for a relaxed y in which a label is above its parent.
    """

    space: LabelSet

    @property
    def _forest(self) -> Forest:
        assert self.space.forest is not None
        return self.space.forest

    @cached_property
    def _odds(self) -> Tensor:
        with self.restore_grad_mode():
            return sum_upward(self.logits[:, 0], self._forest)

    @cached_property
    def log_z(self) -> Tensor:
        """ln Z, `(batch,)`."""
        with self.restore_grad_mode():
            roots = [i for i, parent in enumerate(self._forest.parents) if parent is None]
            return F.softplus(self._odds[:, roots]).sum(-1)

    @cached_property
    def mean(self) -> Tensor:
        """Marginals, `(batch, 1, label)`, differentiable; no label's is above its parent's."""
        with self.restore_grad_mode():
            return multiply_downward(torch.sigmoid(self._odds), self._forest).unsqueeze(1)

    def log_prob(self, y: Tensor) -> Tensor:
        children, above = self._forest.children.to(y.device), self._forest.above.to(y.device)
        is_coherent = (y[..., children] <= y[..., above]).all(-1)
        log_q = inner_product(at_least_float32(self.logits[:, 0]), y) - self.log_z.unsqueeze(1)
        return log_q.masked_fill(~is_coherent, -torch.inf)

    def sample(self, n: int) -> Tensor:
        """Exact draws, from the roots to the leaves."""
        p = torch.sigmoid(self._odds.detach()).unsqueeze(1)
        noise = torch.rand(p.shape[0], n, p.shape[-1], device=p.device, dtype=p.dtype)
        return multiply_downward((noise < p).to(self.logits.dtype), self._forest)

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        """Relaxed (concrete) draws of each label given its parent, times those of its ancestors."""
        odds = self._odds.unsqueeze(1)
        u = torch.rand(odds.shape[0], n, odds.shape[-1], device=odds.device, dtype=odds.dtype)
        return multiply_downward(torch.sigmoid((odds + torch.logit(u, eps=1e-7)) / temperature), self._forest)

    def perturb(self, n: int, std: float) -> Tensor:
        """Marginals under Gaussian noise on the scores."""
        batch, _, labels = self.logits.shape
        noise = torch.randn(batch, n, labels, device=self.logits.device, dtype=self.logits.dtype)
        return multiply_downward(torch.sigmoid(sum_upward(self.logits + std * noise, self._forest)), self._forest)

    @cached_property
    def mode(self) -> Tensor:
        """The most probable set: a label is on if its subtree's largest score is above 0 and its parent is on."""
        odds = at_least_float32(self.logits[:, 0].detach())
        for level in reversed(self._forest.levels):
            labels, parents = level.labels.to(odds.device), level.parents.to(odds.device)
            odds = odds.index_add(-1, parents, F.relu(odds[..., labels]))
        return multiply_downward((odds > 0).to(self.logits.dtype), self._forest).unsqueeze(1)

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The k best paths through the labels in preorder, in which a label that is off skips its descendants."""
        with torch.no_grad():
            scores = at_least_float32(self.logits[:, 0])
            order, ends = self._forest.preorder
            initial = scores.new_full((len(scores), k), -torch.inf)
            initial[:, 0] = 0
            best, pointers = {len(order): initial}, {}
            for place in range(len(order) - 1, -1, -1):
                with_label = best[place + 1] + scores[:, order[place], None]
                best[place], pointers[place] = torch.cat([best[ends[place]], with_label], 1).topk(k, 1)
            value = best[0]
            rank = torch.arange(k, device=scores.device).expand(len(scores), k)
            rank = torch.where(value == -torch.inf, 0, rank)
            y = torch.zeros(len(scores), k, len(order), device=scores.device, dtype=self.logits.dtype)
            position = torch.zeros_like(rank)
            for place, label in enumerate(order):
                pointer = pointers[place].gather(1, rank)
                is_reached, is_on = position == place, pointer >= k
                y[:, :, label] = (is_reached & is_on).to(y.dtype)
                position = torch.where(is_reached, torch.where(is_on, place + 1, ends[place]), position)
                rank = torch.where(is_reached, pointer % k, rank)
            return y, value - self.log_z.detach().unsqueeze(1)

    def label_powers(self, t: Tensor) -> Tensor:
        """Sums over paths through the labels in preorder, in which a label that is off skips its descendants."""
        with torch.no_grad():
            odds = sum_upward(self.logits[:, 0].double(), self._forest).t().unsqueeze(2)
            on, off = torch.sigmoid(odds) * t, torch.sigmoid(-odds)  # (label, batch, point), (label, batch, 1)
            order, ends = self._forest.preorder
            sums = on.new_zeros(2, len(order) + 1, *on.shape[1:])
            sums[0, 0] = sums[1, -1] = 1
            on_rows, off_rows = on.unbind(), off.unbind()
            # Over paths to a place, and from it to the end.
            prefix_sums, suffix_sums = sums[0].unbind(), sums[1].unbind()
            for place in range(len(order) - 1, -1, -1):
                label = order[place]
                torch.mul(on_rows[label], suffix_sums[place + 1], out=suffix_sums[place])
                suffix_sums[place].addcmul_(off_rows[label], suffix_sums[ends[place]])
            for place, label in enumerate(order):
                prefix_sums[ends[place]].addcmul_(prefix_sums[place], off_rows[label])
                prefix_sums[place + 1].add_(on_rows[label].mul_(prefix_sums[place]))
                on_rows[label].mul_(suffix_sums[place + 1])
            return on.permute(1, 2, 0)
