"""Outputs on a grid of rows and columns: masks of objects in images, and grayscale images."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spen_plugins.spaces.base import Box, OutputSpace, at_least_float32, mask_padding, sum_variables
from spen_plugins.spaces.distribution import Proposal
from spen_plugins.spaces.labels import IndependentLabels, LabelSet

NEVER = -1e4
"""Logit of a pixel of padding: sigmoid and softplus of it are 0."""


class Grid(OutputSpace):
    """A variable at each place of a grid; `y` is `(batch, sample, row, column)`.

    Masks are `(batch, row, column)`; sizes may differ between batches.
    """

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (None, None)


class BinaryGrid(Grid, Box):
    """0 or 1 at each place of a grid, relaxed to [0, 1]; `y` is `(batch, sample, row, column)`."""

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """Soft IoU: Σ min(y, gold) / Σ max(y, gold) (Lee et al. 2022, Eq. 10); 1 where both are empty."""
        intersection, union = sum_variables(torch.minimum(y, gold), mask), sum_variables(torch.maximum(y, gold), mask)
        return torch.where(union > 0, intersection / union.clamp(min=1e-12), torch.ones_like(union))

    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> IndependentPixels:
        return IndependentPixels(self, logits, mask, **kept)


@dataclass(frozen=True)
class IndependentPixels(Proposal):
    """Independent pixels, each on with probability sigmoid(logit) (Bernoulli), off on padding: the labels of a long
    set."""

    space: BinaryGrid

    @cached_property
    def _labels(self) -> IndependentLabels:
        """The same distribution over the pixels in one row, `(batch, 1, row · column)`."""
        with self.restore_grad_mode():
            logits = self.logits
            if self.mask is not None:
                logits = logits.masked_fill(~self.mask.unsqueeze(1), NEVER)
            return IndependentLabels(LabelSet([]), logits.flatten(2))

    def _unflatten(self, y: Tensor) -> Tensor:
        return y.unflatten(2, self.logits.shape[2:])

    @cached_property
    def mode(self) -> Tensor:
        return self._unflatten(self._labels.mode)

    def sample(self, n: int) -> Tensor:
        return self._unflatten(self._labels.sample(n))

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        return self._unflatten(self._labels.rsample(n, temperature))

    def log_prob(self, y: Tensor) -> Tensor:
        return self._labels.log_prob(mask_padding(y, self.mask).flatten(2))

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        y, log_q = self._labels.k_best(k)
        if self.mask is None:
            return self._unflatten(y), log_q
        # Where an image has fewer than k outputs, some have a pixel of padding on.
        uses_padding = (y * ~self.mask.flatten(1).unsqueeze(1)).any(2)
        y = torch.where(uses_padding.unsqueeze(2), y[:, :1], y)
        return self._unflatten(y), log_q.masked_fill(uses_padding, -torch.inf)


class RealGrid(Grid):
    """Any real number at each place of a grid; `y` is `(batch, sample, row, column)`.

    There is nothing to relax: `relax`, `round`, `project` and `logits` return their argument, zero on padding, and a
    descent in logits is a descent in y.

    Args:
        std: deviation of the default distribution, and the root mean square error at which `score` is 1/2.
        cost_weight: c in the margin's Δ = c · ½ Σ (y − gold)². With an energy that has a term ½ ‖x − y‖², c below 1
            keeps E − Δ bounded below.
    """

    discrete = False

    def __init__(self, std: float = 1.0, cost_weight: float = 0.5) -> None:
        self.std, self.cost_weight = std, cost_weight

    def relax(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding(logits, mask)

    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """y, zero on padding."""
        return mask_padding(y, mask)

    logits = round = project

    def cost(self, y: Tensor, gold: Tensor, mask: Tensor | None = None) -> Tensor:
        """The margin's Δ: c · ½ Σ (y − gold)², `(batch, sample)`."""
        return 0.5 * self.cost_weight * _sum_squares(y - gold, mask)

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """1 / (1 + MSE / std²): 1 at gold, 1/2 at a root mean square error of `std`."""
        return 1 / (1 + _sum_squares(y - gold, mask) / self.size(y, mask) / self.std**2)

    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> IndependentReals:
        return IndependentReals(self, logits, mask, **kept)


@dataclass(frozen=True)
class IndependentReals(Proposal):
    """Independent Gaussians with mean `logits` and the space's `std`; densities omit their constant."""

    space: RealGrid

    @property
    def mode(self) -> Tensor:
        """The mean."""
        return mask_padding(self.logits.detach(), self.mask)

    def sample(self, n: int) -> Tensor:
        return self.rsample(n).detach()

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        """`n` samples with a gradient to the mean; the temperature multiplies the deviation."""
        batch, _, *places = self.logits.shape
        noise = torch.randn(batch, n, *places, device=self.logits.device, dtype=self.logits.dtype)
        return mask_padding(self.logits + temperature * self.space.std * noise, self.mask)

    def log_prob(self, y: Tensor) -> Tensor:
        """−½ Σ ((y − mean) / std)², `(batch, sample)`."""
        return -0.5 * _sum_squares((y - self.logits) / self.space.std, self.mask)


def _sum_squares(values: Tensor, mask: Tensor | None) -> Tensor:
    """Σ of squares over the grid, without padding: `(batch, sample)`."""
    return sum_variables(at_least_float32(values).square(), mask)
