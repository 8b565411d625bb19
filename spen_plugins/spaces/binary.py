"""Binary outputs on a grid of rows and columns: the mask of an object in an image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spen_plugins.spaces.distribution import Proposal
from spen_plugins.spaces.grid import Grid, grid_sum, mask_padding
from spen_plugins.spaces.labels import IndependentLabels, LabelSet

NEVER = -1e4
"""Logit of a pixel of padding: sigmoid and softplus of it are 0."""


class BinaryGrid(Grid):
    """0 or 1 at each place of a grid, relaxed to [0, 1]; `y` is `(batch, sample, row, column)`."""

    def relax(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding(torch.sigmoid(logits), mask)

    def logits(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding(torch.logit(y, eps=1e-4), mask)

    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding(y.clamp(0.0, 1.0), mask)

    def round(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding((y > 0.5).to(y.dtype), mask)

    def cost(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        return grid_sum((y - gold).abs(), mask)

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """Soft IoU: Σ min(y, gold) / Σ max(y, gold) (Lee et al. 2022, Eq. 10); 1 where both are empty."""
        intersection, union = grid_sum(torch.minimum(y, gold), mask), grid_sum(torch.maximum(y, gold), mask)
        return torch.where(union > 0, intersection / union.clamp(min=1e-12), torch.ones_like(union))

    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> IndependentPixels:
        return IndependentPixels(self, logits, mask, **kept)


@dataclass(frozen=True)
class IndependentPixels(Proposal):
    """Independent pixels, each on with probability sigmoid(logit) (Bernoulli): the labels of a long set, off on
    padding."""

    space: BinaryGrid

    @cached_property
    def _labels(self) -> IndependentLabels:
        """The same distribution over the pixels in one row, `(batch, 1, row · column)`."""
        with self.restore_grad_mode():
            logits = self.logits
            if self.mask is not None:
                logits = logits.masked_fill(~self.mask.unsqueeze(1), NEVER)
            return IndependentLabels(LabelSet([]), logits.flatten(2))

    def _grid(self, y: Tensor) -> Tensor:
        return y.unflatten(2, self.logits.shape[2:])

    @cached_property
    def mode(self) -> Tensor:
        return self._grid(self._labels.mode)

    def sample(self, n: int) -> Tensor:
        return self._grid(self._labels.sample(n))

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        return self._grid(self._labels.rsample(n, temperature))

    def log_prob(self, y: Tensor) -> Tensor:
        return self._labels.log_prob(mask_padding(y, self.mask).flatten(2))

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        y, log_q = self._labels.k_best(k)
        if self.mask is None:
            return self._grid(y), log_q
        # Where an image has fewer than k outputs, some have a pixel of padding on.
        outside = (y * ~self.mask.flatten(1).unsqueeze(1)).any(2)
        y = torch.where(outside.unsqueeze(2), y[:, :1], y)
        return self._grid(y), log_q.masked_fill(outside, -torch.inf)
