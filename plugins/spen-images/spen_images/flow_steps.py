"""Steps of a conditional Glow: invertible functions of an output whose coefficients depend on the image."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Coefficients(NamedTuple):
    """The coefficients of a step, given the image; computed once for all outputs."""

    log_scale: Tensor
    """ln scale of activation normalisation, `(batch, 1, channel, 1, 1)`."""
    shift: Tensor
    """Its shift, of the same shape."""
    lower: Tensor
    """L of the 1×1 convolution's matrix P L U, `(batch, channel, channel)`."""
    upper: Tensor
    """U, of the same shape."""
    image: Tensor
    """The image's part of the coupling's first layer, `(batch, 1, width, row, column)`."""


class Step(nn.Module):
    """Activation normalisation, a 1×1 convolution and an affine coupling, all conditional on the image (Lu & Huang
    2020, Sec. 3.2), of values `(batch, sample, channel, row, column)`.

    The parts that depend on the image start at 0, so that a step begins as a rotation of channels.

    Args:
        channels: channels of the values; even.
        features: channels of the image's features.
        width: channels of the coupling's net.
    """

    def __init__(self, channels: int, features: int, width: int) -> None:
        super().__init__()
        self.channels = channels
        self.norm = start_at_zero(nn.Linear(features, 2 * channels))
        self.mix = start_at_zero(nn.Linear(features, channels * channels))
        permutation, lower, upper = torch.linalg.lu(torch.linalg.qr(torch.randn(channels, channels)).Q)
        diagonal = upper.diagonal()
        self.register_buffer("permutation", permutation)
        self.register_buffer("sign", diagonal.sign())
        # L below the diagonal, U above it, and on it ln |u|: the matrix has an inverse whatever the entries are.
        self.entries = nn.Parameter(lower.tril(-1) + upper.triu(1) + diagonal.abs().log().diag())
        half = channels // 2
        self.image = nn.Conv2d(features, width, 3, padding=1)
        self.first = nn.Conv2d(half, width, 3, padding=1, bias=False)
        self.middle = nn.Conv2d(width, width, 1)
        self.last = start_at_zero(nn.Conv2d(width, 2 * half, 3, padding=1))

    def encode(self, features: Tensor) -> Coefficients:
        """The coefficients given the image's features `(batch, feature, row, column)`; normalisation and convolution
        see their mean over places."""
        means = features.mean((2, 3))
        log_scale, shift = torch.tanh(self.norm(means))[:, None, :, None, None].chunk(2, 2)
        entries = self.entries + torch.tanh(self.mix(means)).unflatten(1, (self.channels, self.channels))
        unit = torch.eye(self.channels, dtype=entries.dtype, device=entries.device)
        upper = entries.triu(1) + (self.sign * entries.diagonal(dim1=1, dim2=2).exp()).diag_embed()
        return Coefficients(log_scale, shift, entries.tril(-1) + unit, upper, self.image(features).unsqueeze(1))

    def forward(self, values: Tensor, coefficients: Coefficients) -> tuple[Tensor, Tensor]:
        """Values one step closer to noise, and ln |det| of the step, `(batch, sample)`."""
        places = values.shape[-2] * values.shape[-1]
        values = (values + coefficients.shift) * coefficients.log_scale.exp()
        values = _mix(self.permutation @ coefficients.lower @ coefficients.upper, values)
        half, other_half = values.chunk(2, 2)
        shift, log_scale = self._couple(half, coefficients)
        values = torch.cat([half, (other_half + shift) * log_scale.exp()], 2)
        return values, places * _compute_log_volume(coefficients) + log_scale.sum((2, 3, 4))

    def inverse(self, values: Tensor, coefficients: Coefficients) -> tuple[Tensor, Tensor]:
        """The inverse of `forward`, with ln |det| of `forward`, `(batch, sample)`."""
        places = values.shape[-2] * values.shape[-1]
        half, other_half = values.chunk(2, 2)
        shift, log_scale = self._couple(half, coefficients)
        values = torch.cat([half, other_half * (-log_scale).exp() - shift], 2)
        # Small and exact: the error of a triangular solution in float32 would grow from step to step.
        solution = self.permutation.t().double().expand_as(coefficients.lower)
        solution = torch.linalg.solve_triangular(coefficients.lower.double(), solution, upper=False, unitriangular=True)
        inverse = torch.linalg.solve_triangular(coefficients.upper.double(), solution, upper=True)
        values = _mix(inverse.to(values), values)
        values = values * (-coefficients.log_scale).exp() - coefficients.shift
        return values, places * _compute_log_volume(coefficients) + log_scale.sum((2, 3, 4))

    def _couple(self, half: Tensor, coefficients: Coefficients) -> tuple[Tensor, Tensor]:
        """Shift and ln scale of the other half of the channels, of the half's shape; the scale is below 1 / σ(2)."""
        shape = half.shape[:2]
        hidden = F.silu(self.first(half.flatten(0, 1)).unflatten(0, shape) + coefficients.image)
        output = self.last(F.silu(self.middle(hidden.flatten(0, 1)))).unflatten(0, shape)
        shift, scale = output.chunk(2, 2)
        return shift, F.logsigmoid(scale + 2) + math.log1p(math.exp(-2))


class Gaussian(nn.Module):
    """Values of half the channels as Gaussian noise, given the other half (Dinh et al. 2017, Sec. 3.6): the noise is
    standard normal, and its mean and deviation are convolutions of that half."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.last = start_at_zero(nn.Conv2d(channels, 2 * channels, 3, padding=1))

    def forward(self, half: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and ln deviation, of the shape of `half`."""
        output = self.last(half.flatten(0, 1)).unflatten(0, half.shape[:2])
        mean, log_std = output.chunk(2, 2)
        return mean, log_std


def start_at_zero(layer: nn.Linear | nn.Conv2d) -> nn.Linear | nn.Conv2d:
    """The layer with zero weights, whose outputs start at 0."""
    nn.init.zeros_(layer.weight), nn.init.zeros_(layer.bias)
    return layer


def _mix(matrix: Tensor, values: Tensor) -> Tensor:
    return torch.einsum("bij,bnjrc->bnirc", matrix, values)


def _compute_log_volume(coefficients: Coefficients) -> Tensor:
    """ln |det| of normalisation and convolution at one place, `(batch, 1)`."""
    return coefficients.log_scale.sum((2, 3, 4)) + coefficients.upper.diagonal(dim1=1, dim2=2).abs().log().sum(
        1, keepdim=True
    )
