"""Inference net `fcn`: a fully convolutional net from images to a logit for each pixel."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.batch import X
from spen_plugins.energy import BoundEnergy
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet
from spen_plugins.nn.grids import GroupNorm, make_masks, mask_outside, read_channels, require_grid
from spen_plugins.settings.config import Config
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task


class Layer(nn.Module):
    """A 3×3 convolution, group normalisation and SiLU, which has derivatives of all orders."""

    def __init__(self, before: int, after: int, groups: int, stride: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm = GroupNorm(groups, after)

    def forward(self, values: Tensor, inside: Tensor | None) -> Tensor:
        """`inside`: the mask at the size of the result."""
        return mask_outside(F.silu(self.norm(self.convolution(values), inside)), inside)


class Fcn(InferenceNet):
    """An encoder of `levels` resolutions and a decoder that sees each of them again (Long et al. 2015; Ronneberger et
    al. 2015), with group normalisation: variables are independent given x.

    Images of any sizes; padding changes no number.
    """

    class Config(Config):
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
                raise ValueError(f"filters={self.filters} is no multiple of groups={self.groups}")
            return self

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
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

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        values = read_channels(x)
        masks = make_masks(x.mask, values, len(self.down))
        levels: list[Tensor] = []
        for layers, inside in zip(self.down, masks, strict=True):
            for layer in layers:
                values = layer(values, inside)
            levels.append(values)
        values = self.dropout(values)
        for layers, seen, inside in reversed(list(zip(self.up, levels, masks, strict=False))):
            wide = F.interpolate(values, scale_factor=2.0)[..., : seen.shape[-2], : seen.shape[-1]]
            values = torch.cat([mask_outside(wide, inside), seen], 1)
            for layer in layers:
                values = layer(values, inside)
        return self.space.independent(self.last(values), x.mask)
