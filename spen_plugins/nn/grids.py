"""Convolutions over images of different sizes in one batch, where padding changes nothing."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.batch import X
from spen_plugins.component import Component
from spen_plugins.errors import ConfigError
from spen_plugins.task import ImageInputs, Task


def require_grid(component: Component, task: Task) -> int:
    """The number of channels of the task's images; `ConfigError` unless it goes from images to a number a pixel."""
    if not isinstance(task.inputs, ImageInputs) or task.space.shape != (None, None):
        raise ConfigError(
            f"{type(component).__name__} goes from images to a number for each pixel, but the task has "
            f"{type(task.inputs).__name__} and {type(task.space).__name__}; choose a task of masks of images"
        )
    return task.inputs.channels


def read_channels(x: X) -> Tensor:
    """The images of a batch, `(batch, channel, row, column)`, of one channel too."""
    image = x.inputs["image"]
    return image.unsqueeze(1) if image.dim() == 3 else image


def make_masks(mask: Tensor | None, like: Tensor, levels: int) -> list[Tensor | None]:
    """The mask as numbers of the type of `like`, `(batch, 1, row, column)`, and after each of `levels` − 1 layers of
    stride 2 and odd filters; all None without a mask.

    A layer's place i is over places 2i of its input: there is one for every two, the first included.
    """
    if mask is None:
        return [None] * levels
    masks = [mask.unsqueeze(1).to(like)]
    while len(masks) < levels:
        masks.append(masks[-1][..., ::2, ::2])
    return masks


def mask_outside(values: Tensor, inside: Tensor | None) -> Tensor:
    """Zero on padding, so that the next convolution sees an image's border where it is, not where its batch's is."""
    return values if inside is None else values * inside


class GroupNorm(nn.GroupNorm):
    """Group normalisation (Wu & He 2018) over an image's own pixels: no example depends on another, nor on padding."""

    def forward(self, values: Tensor, inside: Tensor | None = None) -> Tensor:
        """`values` `(batch, channel, row, column)`, `inside` `(batch, 1, row, column)`; the result has numbers on
        padding."""
        if inside is None:
            return F.group_norm(values, self.num_groups, self.weight, self.bias, self.eps)
        groups = values.unflatten(1, (self.num_groups, -1))
        here = inside.unsqueeze(1)
        count = here.sum((2, 3, 4), keepdim=True) * groups.shape[2]
        mean = (groups * here).sum((2, 3, 4), keepdim=True) / count
        centred = (groups - mean) * here
        variance = centred.square().sum((2, 3, 4), keepdim=True) / count
        normal = (centred * torch.rsqrt(variance + self.eps)).flatten(1, 2)
        return normal * self.weight.view(-1, 1, 1) + self.bias.view(-1, 1, 1)
