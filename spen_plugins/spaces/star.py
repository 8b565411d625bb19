"""Label sets in which every pair includes one of a few hubs: sums in closed form, given the hubs' values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.spaces.base import at_least_float32, inner_product, take_vectors
from spen_plugins.spaces.k_best import cheapest_flips
from spen_plugins.spaces.labels import DependentLabels, label_powers

SURE = 1e4
"""Log-odds of a hub whose value is given."""
RARE = 1e-10
"""Largest probability of hubs' values that are left out of expected F1."""


@dataclass(frozen=True)
class Star:
    """The sum-product of exp(Σ_i s_i y_i + Σ_h Σ_i w_hi y_h y_i) over label sets, h running over the hubs.

    Args:
        scores: s, `(batch, label)`.
        pairs: w, `(batch, hub, label)`; a pair of two hubs counts only in the row of the first hub.
        hubs: indices of the hubs, `(hub,)`, all different.
    """

    scores: Tensor
    pairs: Tensor
    hubs: Tensor

    @cached_property
    def values(self) -> Tensor:
        """All values of the hubs, zeros and ones, `(value, hub)`."""
        count = len(self.hubs)
        bits = torch.arange(2**count, device=self.scores.device).unsqueeze(1) >> torch.arange(
            count, device=self.scores.device
        )
        return (bits & 1).to(self.scores.dtype)

    @cached_property
    def is_hub(self) -> Tensor:
        """True for the hubs, `(label,)`."""
        labels = torch.zeros(self.scores.shape[1], dtype=torch.bool, device=self.scores.device)
        return labels.index_fill(0, self.hubs, True)

    def _restore_grad_mode(self) -> torch.set_grad_enabled:
        """The gradient mode of the scores: cached values must not depend on the mode of the first access."""
        return torch.set_grad_enabled(self.scores.requires_grad or self.pairs.requires_grad)

    @cached_property
    def between(self) -> Tensor:
        """The pairs that count, `(batch, hub, label)`: 0 for a hub with itself or an earlier hub."""
        order = torch.arange(len(self.hubs), device=self.hubs.device)
        counts = torch.ones_like(self.pairs[0]).index_copy(
            1, self.hubs, (order.unsqueeze(1) < order).to(self.pairs.dtype)
        )
        with self._restore_grad_mode():
            return self.pairs * counts

    @cached_property
    def odds(self) -> Tensor:
        """Log-odds of each label given the hubs' values, `(batch, value, label)`; the hubs' entries are unused."""
        with self._restore_grad_mode(), torch.autocast(self.scores.device.type, enabled=False):
            return self.scores.unsqueeze(1) + self.values @ self.between

    @cached_property
    def hub_scores(self) -> Tensor:
        """Scores of the hubs' values themselves, `(batch, value)`."""
        with self._restore_grad_mode(), torch.autocast(self.scores.device.type, enabled=False):
            hub_pairs = self.between[:, :, self.hubs]
            pairs = torch.einsum("ah,bhg,ag->ba", self.values, hub_pairs, self.values)
            return self.scores[:, self.hubs] @ self.values.t() + pairs

    @cached_property
    def log_weights(self) -> Tensor:
        """Scores of the hubs' values, summed over all other labels, `(batch, value)`."""
        with self._restore_grad_mode():
            label_terms = F.softplus(self.odds).masked_fill(self.is_hub, 0)
            return self.hub_scores + label_terms.sum(-1)

    def log_z(self) -> Tensor:
        """ln Z, `(batch,)`."""
        return torch.logsumexp(self.log_weights, 1)

    def marginals(self) -> Tensor:
        """Marginal probabilities, `(batch, label)`."""
        weights, conditionals = self.condition()
        return (weights.unsqueeze(2) * conditionals).sum(1)

    def condition(self) -> tuple[Tensor, Tensor]:
        """P of the hubs' values, `(batch, value)`, and P(y_i = 1) given them, `(batch, value, label)`."""
        weights = torch.softmax(self.log_weights, 1)
        return weights, torch.sigmoid(self.odds).index_copy(2, self.hubs, self.values.expand(len(weights), -1, -1))

    def score(self, y: Tensor) -> Tensor:
        """The exponent of outputs `(batch, sample, label)`, multilinear in y: `(batch, sample)`."""
        y = at_least_float32(y)
        with torch.autocast(y.device.type, enabled=False):
            pairs = (y[..., self.hubs] * (y @ self.between.transpose(1, 2).to(y.dtype))).sum(-1)
        return inner_product(self.scores, y) + pairs


@dataclass(frozen=True)
class StarLabels(DependentLabels):
    """q(y | x) of a `Star`; `logits` are its scores, `(batch, 1, label)`.

    Args:
        pairs, hubs: as in `Star`.
    """

    potentials: ClassVar[tuple[str, ...]] = ("pairs",)
    pairs: Tensor | None = None
    hubs: Tensor | None = None

    @cached_property
    def star(self) -> Star:
        """The scores with all sums over them."""
        with self.restore_grad_mode():
            return Star(at_least_float32(self.logits[:, 0]), at_least_float32(self.pairs), self.hubs)

    @cached_property
    def log_z(self) -> Tensor:
        """ln Z, `(batch,)`."""
        with self.restore_grad_mode():
            return self.star.log_z()

    @cached_property
    def mean(self) -> Tensor:
        """Marginals, `(batch, 1, label)`, differentiable."""
        with self.restore_grad_mode():
            return self.star.marginals().unsqueeze(1)

    def log_prob(self, y: Tensor) -> Tensor:
        return self.star.score(y) - self.log_z.unsqueeze(1)

    @cached_property
    def _conditional_odds(self) -> Tensor:
        """Log-odds of all labels given the hubs' values, `(batch, value, label)`, without gradient."""
        star = self.star
        hub_odds = (2 * star.values - 1) * SURE
        return star.odds.detach().index_copy(2, star.hubs, hub_odds.expand(len(star.scores), -1, -1))

    def sample(self, n: int) -> Tensor:
        """Exact draws: the hubs' values, then the other labels, which are independent given the hubs."""
        weights = torch.softmax(self.star.log_weights.detach(), 1)
        value = torch.multinomial(weights, n, replacement=True)
        p = torch.sigmoid(take_vectors(self._conditional_odds, value))
        return (torch.rand_like(p) < p).to(self.logits.dtype)

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The k best among the k best given each value of the hubs."""
        with torch.no_grad():
            star, odds = self.star, self._conditional_odds
            batch, values, labels = odds.shape
            label_odds = star.odds.masked_fill(star.is_hub, 0)
            best = star.hub_scores + F.relu(label_odds).sum(2)
            costs = label_odds.abs().masked_fill(star.is_hub, torch.inf).flatten(0, 1)
            flips, cost = cheapest_flips(costs, k)
            value, index = (best.unsqueeze(2) - cost.view(batch, values, k)).flatten(1).topk(k, 1)
            index = torch.where(value == -torch.inf, index[:, :1], index)
            rows = torch.arange(batch, device=odds.device).unsqueeze(1)
            y = (odds[rows, index // k] > 0) ^ flips.view(batch, values, k, labels)[rows, index // k, index % k]
            return y.to(self.logits.dtype), value - self.log_z.detach().unsqueeze(1)

    def label_powers(self, t: Tensor) -> Tensor:
        weights = torch.softmax(self.star.log_weights.detach().double(), 1)
        rows, values = (weights > RARE).nonzero(as_tuple=True)
        powers = label_powers(self._conditional_odds[rows, values], t).mul_(weights[rows, values][:, None, None])
        return powers.new_zeros(len(weights), *powers.shape[1:]).index_add(0, rows, powers)

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> StarLabels:
        proposal = super().map_rows(change)
        return replace(proposal, hubs=self.hubs.to(proposal.logits.device))
