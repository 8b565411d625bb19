"""Real-valued outputs on a grid of rows and columns: grayscale images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spen_plugins.spaces.base import at_least_float32
from spen_plugins.spaces.distribution import Proposal
from spen_plugins.spaces.grid import Grid, grid_sum, mask_padding


class RealGrid(Grid):
    """Any real number at each place of a grid; `y` is `(batch, sample, row, column)`.

    There is nothing to relax: `relax`, `round`, `project` and `logits` return their
    argument, zero on padding, and a descent in logits is one in y.

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

    def logits(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding(y, mask)

    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding(y, mask)

    def round(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding(y, mask)

    def cost(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """The margin's Δ: c · ½ Σ (y − gold)², `(batch, sample)`."""
        return 0.5 * self.cost_weight * _squares(y - gold, mask)

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """1 / (1 + MSE / std²): 1 at gold, 1/2 at a root mean square error of `std`."""
        return 1 / (1 + _squares(y - gold, mask) / self.size(y, mask) / self.std**2)

    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> IndependentReals:
        return IndependentReals(self, logits, mask, **kept)


@dataclass(frozen=True)
class IndependentReals(Proposal):
    """Independent Gaussians with mean `logits` and the space's `std`; densities are without their constant."""

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
        return -0.5 * _squares((y - self.logits) / self.space.std, self.mask)


def _squares(values: Tensor, mask: Tensor | None) -> Tensor:
    """Σ of squares over the grid, without padding: `(batch, sample)`."""
    return grid_sum(at_least_float32(values).square(), mask)
