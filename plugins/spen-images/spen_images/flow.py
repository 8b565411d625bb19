"""A conditional Glow: an invertible function between outputs of an image and standard normal noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spen_images.convolutions import Layer
from spen_images.flow_steps import Coefficients, Gaussian, Step

Encoded: TypeAlias = Sequence[Sequence[Coefficients]]
"""Coefficients of each step of each level."""
SCALE = 2.0
"""Factor of outputs in [−1/2, 3/2] around 1/2, after which their deviation is about 1."""


class Trunk(nn.Module):
    """Features of an image at 1/2, 1/4, … of its resolution: an encoder with one more level, and a decoder that sees
    each level again."""

    def __init__(self, channels: int, width: int, levels: int) -> None:
        super().__init__()
        widths = [width // 2, *[width] * (levels + 1)]
        self.down = nn.ModuleList(
            nn.Sequential(make_layer(before, after, 1 if i == 0 else 2), make_layer(after, after))
            for i, (before, after) in enumerate(pairwise([channels, *widths]))
        )
        self.up = nn.ModuleList(make_layer(2 * width, width) for _ in range(levels))

    def forward(self, image: Tensor) -> list[Tensor]:
        """`(batch, channel, row, column)` -> features `(batch, width, row / 2^k, column / 2^k)` for k = 1, 2, …"""
        skips = []
        for layer in self.down:
            image = layer(image)
            skips.append(image)
        values, features = skips.pop(), []
        for layer, skip in zip(self.up, reversed(skips[1:]), strict=True):
            upsampled = F.interpolate(values, scale_factor=2.0)[..., : skip.shape[-2], : skip.shape[-1]]
            values = layer(torch.cat([upsampled, skip], 1))
            features.append(values)
        return features[::-1]


def make_layer(before: int, after: int, stride: int = 1) -> Layer:
    """A layer of images without padding, in at most four groups of channels."""
    return Layer(before, after, math.gcd(4, after), stride)


class Flow(nn.Module):
    """Outputs `(batch, sample, row, column)` as noise `(batch, sample, row · column)`, given an image, and back.

    Each level turns 2×2 places into channels of one place, takes its steps, and turns half of the channels into noise.
    The last level turns all of them into noise (Dinh et al. 2017; Kingma & Dhariwal 2018).

    Args:
        channels: channels of the image.
        levels: number of levels; rows and columns are multiples of 2^levels.
        steps: steps of each level.
        width: channels of the image's features and of the couplings.
    """

    def __init__(self, channels: int, levels: int, steps: int, width: int) -> None:
        super().__init__()
        self.unit = 2**levels
        self.trunk = Trunk(channels, width, levels)
        sizes = [2 ** (level + 2) for level in range(levels)]  # the channels of each level
        self.levels = nn.ModuleList(nn.ModuleList(Step(size, width, width) for _ in range(steps)) for size in sizes)
        self.splits = nn.ModuleList(Gaussian(size // 2) for size in sizes[:-1])
        self.mean = nn.Parameter(torch.zeros(sizes[-1], 1, 1))
        self.log_std = nn.Parameter(torch.zeros(sizes[-1], 1, 1))

    def encode(self, image: Tensor) -> Encoded:
        """The coefficients of all steps given the image `(batch, channel, row, column)`."""
        features = self.trunk(image)
        return [[step.encode(h) for step in steps] for steps, h in zip(self.levels, features, strict=True)]

    def forward(self, y: Tensor, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """The noise of outputs, and ln |det| of its derivative in them, `(batch, sample)`."""
        values = SCALE * (y - 0.5).unsqueeze(2)
        log_det = values.new_full(y.shape[:2], math.log(SCALE) * y.shape[2] * y.shape[3])
        noise: list[Tensor] = []
        for level, (steps, coefficients) in enumerate(zip(self.levels, encoded, strict=True)):
            values = F.pixel_unshuffle(values, 2)
            for step, step_coefficients in zip(steps, coefficients, strict=True):
                values, step_log_det = step(values, step_coefficients)
                log_det = log_det + step_log_det
            kept_values, noise_values, mean, log_std = self._split(level, values)
            noise.append(((noise_values - mean) * (-log_std).exp()).flatten(2))
            log_det = log_det - log_std.expand_as(noise_values).sum((2, 3, 4))
            values = kept_values
        return torch.cat(noise, 2), log_det

    def inverse(self, noise: Tensor, encoded: Encoded, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """The outputs of noise, `(batch, sample, *size)`, and ln |det| of `forward` there."""
        last = len(self.levels) - 1
        rows, columns = size[0] // self.unit, size[1] // self.unit
        counts = [size[0] * size[1] // 2 ** (level + 1) for level in range(last)]
        parts = noise.split([*counts, noise.shape[2] - sum(counts)], 2)
        log_det = noise.new_full(noise.shape[:2], math.log(SCALE) * size[0] * size[1])
        values = noise.new_zeros(*noise.shape[:2], 0, rows, columns)
        for level in range(last, -1, -1):
            # The last level keeps nothing: its Gaussian depends on no values.
            kept_values = values
            mean, log_std = (self.mean, self.log_std) if level == last else self.splits[level](kept_values)
            places = (rows * 2 ** (last - level), columns * 2 ** (last - level))
            noise_values = parts[level].unflatten(2, (-1, *places)) * log_std.exp() + mean
            log_det = log_det - log_std.expand_as(noise_values).sum((2, 3, 4))
            values = torch.cat([kept_values, noise_values], 2)
            for step, step_coefficients in zip(reversed(self.levels[level]), reversed(encoded[level]), strict=True):
                values, step_log_det = step.inverse(values, step_coefficients)
                log_det = log_det + step_log_det
            # With one place, torch takes the strides for those of a format that it doesn't shuffle.
            values = F.pixel_shuffle(values.contiguous(), 2)
        return values.squeeze(2) / SCALE + 0.5, log_det

    def _split(self, level: int, values: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The kept values and those that become noise, `(batch, sample, channel, row, column)` each, with the mean and
        ln deviation of the latter."""
        if level == len(self.splits):
            return values[:, :, :0], values, self.mean, self.log_std
        kept_values, noise_values = values.chunk(2, 2)
        return kept_values, noise_values, *self.splits[level](kept_values)


def log_normal(noise: Tensor) -> Tensor:
    """ln of the standard normal density, `(batch, sample, n)` -> `(batch, sample)`."""
    return -0.5 * (noise.square() + math.log(2 * math.pi)).sum(2)
