"""Inference net `fcn` and energy `conv`: convolutions over images of different sizes, where padding changes nothing."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from pydantic import Field, PositiveInt, field_validator, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.nn import at_least_float32


class Layer(nn.Module):
    """A 3×3 convolution, group normalisation and SiLU, which has derivatives of all orders."""

    def __init__(self, before: int, after: int, groups: int, stride: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm = GroupNorm(groups, after)

    def forward(self, values: Tensor, inside: Tensor | None = None) -> Tensor:
        """`(batch, channel, row, column)`; `inside` `(batch, 1, row, column)` is the mask at the size of the result."""
        return mask_outside(F.silu(self.norm(self.convolution(values), inside)), inside)


class Fcn(sp.InferenceNet):
    """An encoder of `levels` resolutions and a decoder that sees each of them again (Long et al. 2015; Ronneberger et
    al. 2015), with group normalisation: variables are independent given x.

    Images may have any size; padding changes no number.
    """

    class Config(sp.Config):
        filters: int = Field(16, ge=1)
        """Filters at full resolution; each next level has half the rows and columns and twice the filters."""
        levels: int = Field(3, ge=1, le=16)
        """Number of resolutions."""
        groups: int = Field(4, ge=1)
        """Groups of channels that are normalised together; `filters` is a multiple of it."""
        dropout: float = Field(0.0, ge=0, lt=1)
        """Share of the channels at the lowest resolution that are left out in training."""

        @model_validator(mode="after")
        def _check_group_sizes(self) -> Fcn.Config:
            if self.filters % self.groups:
                raise ValueError(f"filters={self.filters} must be a multiple of groups={self.groups}")
            return self

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        channels, groups = require_grid(self, task), config.groups
        widths = [config.filters * 2**level for level in range(config.levels)]
        self.down = nn.ModuleList(
            nn.ModuleList([Layer(before, after, groups, 1 if level == 0 else 2), Layer(after, after, groups)])
            for level, (before, after) in enumerate(pairwise([channels, *widths]))
        )
        self.up = nn.ModuleList(
            nn.ModuleList([Layer(below + width, width, groups), Layer(width, width, groups)])
            for width, below in pairwise(widths)
        )
        self.dropout = nn.Dropout2d(config.dropout)
        self.last = nn.Conv2d(config.filters, 1, 1)

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        values = read_channels(x)
        masks = make_masks(x.mask, values, len(self.down))
        levels: list[Tensor] = []
        for layers, inside in zip(self.down, masks, strict=True):
            for layer in layers:
                values = layer(values, inside)
            levels.append(values)
        values = self.dropout(values)
        for layers, skip, inside in reversed(list(zip(self.up, levels, masks, strict=False))):
            upsampled = F.interpolate(values, scale_factor=2.0)[..., : skip.shape[-2], : skip.shape[-1]]
            values = torch.cat([mask_outside(upsampled, inside), skip], 1)
            for layer in layers:
                values = layer(values, inside)
        return self.space.independent(self.last(values), x.mask)


class Conv(sp.Energy):
    """E(x, y) of an image and a grid y: the net of deep value networks (Gygli et al. 2017, Sec. 4.3; Lee et al. 2022,
    Sec. 4.4), convolutions over the channels of the image and y as one more.

    The first layer keeps the resolution, each other one halves it; then the mean over places, a layer, and a number.
    The mean, in place of DVN's weights for each place, allows images of any size. SiLU has derivatives of all orders.
    """

    class Config(sp.Config):
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
                raise ValueError(f"found size={size}; expected an odd number, so that filters have a centre")
            return size

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
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
        # The weights of one layer over all channels that keeps the variance of its inputs (He et al. 2015).
        for part in (self.image, self.output):
            nn.init.normal_(part.weight, std=math.sqrt(2 / (size**2 * (channels + 1))))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def encode(self, x: sp.X) -> tuple[Tensor, list[Tensor | None]]:
        """The image's part of the first layer, `(batch, filter, row, column)`, and the mask after each layer."""
        values = read_channels(x)
        return self.image(values), make_masks(x.mask, values, len(self.config.filters))

    def forward(self, features: tuple[Tensor, list[Tensor | None]], y: Tensor) -> Tensor:
        batch, n, *size = y.shape
        image, masks = features
        first_mask, *other_masks = masks
        masked = y if first_mask is None else y * first_mask
        values = self.output(masked.reshape(batch * n, 1, *size)).unflatten(0, (batch, n))
        values = self._fold(F.silu(values + image.unsqueeze(1)), first_mask)
        for layer, mask in zip(self.layers, other_masks, strict=True):
            values = self._fold(F.silu(layer(values)).unflatten(0, (batch, n)), mask)
        count = values.shape[-2] * values.shape[-1]
        if masks[-1] is not None:
            count = masks[-1].sum((2, 3)).repeat_interleave(n, 0)
        means = at_least_float32(values).sum((2, 3)) / count
        return self.head(means.to(values.dtype)).view(batch, n)

    @staticmethod
    def _fold(values: Tensor, inside: Tensor | None) -> Tensor:
        """`(batch, sample, filter, row, column)` -> `(batch · sample, filter, row, column)`, zero on padding."""
        return mask_outside(values, None if inside is None else inside.unsqueeze(1)).flatten(0, 1)


def require_grid(component: sp.Component, task: sp.Task) -> int:
    """The number of channels of the task's images; `ConfigError` unless it goes from images to one number per pixel."""
    if not isinstance(task.inputs, sp.ImageInputs) or task.space.shape != (None, None):
        raise sp.ConfigError(
            f"{type(component).__name__} requires images as inputs and one number per pixel as outputs; found "
            f"{type(task.inputs).__name__} and {type(task.space).__name__}. Use a task with masks of images"
        )
    return task.inputs.channels


def read_channels(x: sp.X) -> Tensor:
    """The images of a batch, `(batch, channel, row, column)`, also with one channel."""
    image = x.inputs["image"]
    return image.unsqueeze(1) if image.dim() == 3 else image


def make_masks(mask: Tensor | None, like: Tensor, levels: int) -> list[Tensor | None]:
    """The mask as numbers of the type of `like`, `(batch, 1, row, column)`, and after each of `levels` − 1 layers of
    stride 2 and odd filters; all None without a mask.

    Place i of a layer is over place 2i of its input: there is one for every two, the first included.
    """
    if mask is None:
        return [None] * levels
    masks = [mask.unsqueeze(1).to(like)]
    while len(masks) < levels:
        masks.append(masks[-1][..., ::2, ::2])
    return masks


def mask_outside(values: Tensor, inside: Tensor | None) -> Tensor:
    """The values `(…, row, column)`, zero where `inside`, which broadcasts to them, is 0: the next convolution sees the
    border of each image, not that of the batch."""
    return values if inside is None else values * inside


class GroupNorm(nn.GroupNorm):
    """Group normalisation (Wu & He 2018) over an image's own pixels: no example depends on another, nor on padding."""

    def forward(self, values: Tensor, inside: Tensor | None = None) -> Tensor:
        """`values` `(batch, channel, row, column)`, `inside` `(batch, 1, row, column)`; the result has numbers on
        padding."""
        if inside is None:
            return super().forward(values)
        groups = values.unflatten(1, (self.num_groups, -1))
        mask = inside.unsqueeze(1)
        count = mask.sum((2, 3, 4), keepdim=True) * groups.shape[2]
        mean = (groups * mask).sum((2, 3, 4), keepdim=True) / count
        centred = (groups - mean) * mask
        variance = centred.square().sum((2, 3, 4), keepdim=True) / count
        normalised = (centred * torch.rsqrt(variance + self.eps)).flatten(1, 2)
        return normalised * self.weight.view(-1, 1, 1) + self.bias.view(-1, 1, 1)
