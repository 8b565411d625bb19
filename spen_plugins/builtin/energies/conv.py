"""Energy `conv`: convolutions over the image and the output together."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

from pydantic import Field, PositiveInt, field_validator
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.batch import X
from spen_plugins.energy import Energy
from spen_plugins.features import FeatureNetwork
from spen_plugins.nn import at_least_float32
from spen_plugins.nn.grids import make_masks, mask_outside, read_channels, require_grid
from spen_plugins.settings.config import Config
from spen_plugins.task import Task


class Encoded(NamedTuple):
    """The part that does not depend on y."""

    image: Tensor
    """The first layer's part of the image, `(batch, filter, row, column)`."""
    insides: list[Tensor | None]
    """The mask after each layer."""


class Conv(Energy):
    """E(x, y) of an image and a grid y: the net of deep value networks (Gygli et al. 2017, Sec. 4.3; Lee et al. 2022,
    Sec. 4.4), convolutions over the channels of the image and y as one more.

    The first layer keeps the resolution, each other one halves it; then the mean over places, a layer, and a number.
    The mean, where DVN has weights for each place, takes images of any size. SiLU has derivatives of all orders.
    """

    class Config(Config):
        filters: list[PositiveInt] = Field(default=[16, 32, 64], min_length=1)
        """Number of filters of each layer of convolutions."""
        size: int = Field(5, ge=1)
        """Rows and columns of a filter; odd."""
        hidden: int = Field(64, ge=1)
        """Units of the layer after the mean over places."""

        @field_validator("size")
        @classmethod
        def _check_filter_size(cls, size: int) -> int:
            if size % 2 == 0:
                raise ValueError(f"size={size}: a filter has an odd number of rows, so that it has a middle")
            return size

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        channels, size, filters = require_grid(self, task), config.size, config.filters
        self.image = nn.Conv2d(channels, filters[0], size, padding=size // 2)
        self.output = nn.Conv2d(1, filters[0], size, padding=size // 2, bias=False)
        self.layers = nn.ModuleList(
            nn.Conv2d(before, after, size, 2, padding=size // 2) for before, after in pairwise(filters)
        )
        self.head = nn.Sequential(
            nn.Linear(filters[-1], config.hidden), nn.SiLU(), nn.Linear(config.hidden, 1, bias=False)
        )
        # Of one layer over all channels, whose results keep the variance of what they are given (He et al. 2015).
        for part in (self.image, self.output):
            nn.init.normal_(part.weight, std=math.sqrt(2 / (size**2 * (channels + 1))))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def encode(self, x: X) -> Encoded:
        values = read_channels(x)
        return Encoded(self.image(values), make_masks(x.mask, values, len(self.config.filters)))

    def forward(self, features: Encoded, y: Tensor) -> Tensor:
        batch, n, *size = y.shape
        first, *others = features.insides
        shown = y if first is None else y * first
        values = self.output(shown.reshape(batch * n, 1, *size)).unflatten(0, (batch, n))
        values = self._fold(F.silu(values + features.image.unsqueeze(1)), first)
        for layer, inside in zip(self.layers, others, strict=True):
            values = self._fold(F.silu(layer(values)).unflatten(0, (batch, n)), inside)
        count = values.shape[-2] * values.shape[-1]
        if features.insides[-1] is not None:
            count = features.insides[-1].sum((2, 3)).repeat_interleave(n, 0)
        means = at_least_float32(values).sum((2, 3)) / count
        return self.head(means.to(values.dtype)).view(batch, n)

    @staticmethod
    def _fold(values: Tensor, inside: Tensor | None) -> Tensor:
        """Zero on padding: `(batch, sample, filter, row, column)` -> `(batch · sample, filter, row, column)`."""
        return mask_outside(values, None if inside is None else inside.unsqueeze(1)).flatten(0, 1)
