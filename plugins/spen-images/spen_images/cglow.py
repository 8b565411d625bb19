"""Inference net `cglow`: the distribution of masks by a conditional Glow."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

import spen_plugins as sp
from spen_images.convolutions import read_channels, require_grid
from spen_images.flow import SCALE, Encoded, Flow, log_normal


class Cglow(sp.InferenceNet):
    """q(y | x) of masks by a conditional Glow (Lu & Huang 2020): pixels depend on each other.

    A mask with uniform noise in [−1/2, 1/2] on each pixel is the output of an invertible net of Gaussian noise. Images
    may have any size; padding changes no number.

    Raises:
        ConfigError: the task's outputs are not masks of images.
    """

    class Config(sp.Config):
        levels: int = Field(2, ge=1, le=8)
        """Number of levels; each halves rows and columns. An image whose size is no multiple of 2^levels is extended by
        pixels of noise."""
        steps: int = Field(4, ge=1)
        """Steps of each level: normalisation, 1×1 convolution and coupling."""
        width: int = Field(64, ge=8)
        """Channels of the image's features and of the couplings' nets."""
        samples: int = Field(10, ge=1)
        """Number of samples whose mean gives the probabilities of pixels."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        channels = require_grid(self, task)
        if not task.space.discrete:
            raise sp.ConfigError(
                "inference_net 'images.cglow' requires masks as outputs, but this task's are real numbers"
            )
        self.flow = Flow(channels, config.levels, config.steps, config.width)

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> FlowMasks:
        image = read_channels(x)
        logits = image.new_zeros(len(image), 1, *image.shape[2:]) + 0 * self.flow.mean.sum()
        return FlowMasks(self.space, logits, x.mask, flow=self.flow, image=image, samples=self.config.samples)


Size: TypeAlias = tuple[int, int]
"""Rows and columns."""


@dataclass(frozen=True)
class FlowMasks(sp.Proposal):
    """Masks whose pixels, with uniform noise in [−1/2, 1/2], have the density of a flow: q(y) is its integral over all
    numbers that round to y.

    `log_prob` is a lower bound of ln q in expectation (Theis et al. 2016): the density's logarithm at y with noise
    drawn anew. `draw` and `dequantise` have the exact density of unrounded outputs.

    `mean` is that of the masks of `samples` fixed noises, the same for each x; its gradient is that of the unrounded
    outputs. `rsample` and `perturb` clamp these to [0, 1]; their temperature and `std` are the deviation of the noise.
    `logits` are 0: pixels have no scores of their own.

    Args:
        flow: the flow between outputs and noise.
        image: `(batch, channel, row, column)`.
        samples: number of samples behind `mean`.
    """

    flow: Flow | None = None
    image: Tensor | None = None
    samples: int = 10
    exact: ClassVar[bool] = False

    @cached_property
    def mean(self) -> Tensor:
        with self.restore_grad_mode():
            y = self._invert(self.samples, fixed=True)[0]
            rounded = self.space.round(y.detach(), self.mask)
            return (rounded + (y - y.detach()) if y.requires_grad else rounded).mean(1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """The pixels that are on in most of the samples behind `mean`."""
        return self.space.round(self.mean.detach(), self.mask)

    def sample(self, n: int) -> Tensor:
        return self.space.round(self.draw(n)[0], self.mask)

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        with self._set_grad_mode():
            return self.space.project(self._invert(n, deviation=temperature)[0], self.mask)

    def perturb(self, n: int, std: float) -> Tensor:
        return self.rsample(n, std)

    def log_prob(self, y: Tensor) -> Tensor:
        """A lower bound of ln q(y | x) in expectation over its noise, `(batch, sample)`."""
        return self.dequantise(y)[1]

    def draw(self, n: int) -> tuple[Tensor, Tensor]:
        """`n` unrounded outputs `(batch, n, row, column)`, and ln of their density, `(batch, n)`, without gradient.

        If images are extended by pixels v, it is ln p(y, v) − ln r(v), r a Gaussian from which `dequantise` draws v:
        NCE of y and v then learns about y alone.
        """
        with torch.no_grad():
            return self._invert(n)

    def dequantise(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Masks `(batch, sample, row, column)` with uniform noise, and ln of their density, `(batch, sample)`, as in
        `draw`; pixels of an extension are drawn from r."""
        noisy, log_q = torch.zeros_like(y), y.new_zeros(y.shape[:2])
        with self._set_grad_mode(), self._use_full_precision():
            for rows, size, full_size in self._groups:
                values = _extend(y[rows, :, : size[0], : size[1]], full_size)
                is_outside = self._is_outside(size, full_size)
                values = torch.where(
                    is_outside, 0.5 + torch.randn_like(values) / SCALE, values + torch.rand_like(values) - 0.5
                )
                noise, log_det = self.flow(values, self._encode(rows, size, full_size))
                noisy = noisy.index_copy(0, rows, self._place(values, size))
                log_density = log_normal(noise) + log_det - _compute_log_extension(values, is_outside)
                log_q = log_q.index_copy(0, rows, log_density)
        return noisy, log_q

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> FlowMasks:
        image, flow = change(self.image), self.flow
        if next(flow.parameters()).device != image.device:
            flow = copy.deepcopy(flow).to(image.device)
        return replace(super().map_rows(change), image=image, flow=flow)

    def detach(self) -> FlowMasks:
        return replace(super().detach(), image=self.image.detach())

    @cached_property
    def _groups(self) -> list[tuple[Tensor, Size, Size]]:
        """Rows of the batch whose images have one size, this size, and it rounded up to multiples of the flow's."""
        sizes = torch.tensor(self.image.shape[2:]).expand(len(self.image), 2)
        if self.mask is not None:
            sizes = torch.stack([self.mask.any(2).sum(1), self.mask.any(1).sum(1)], 1).cpu()
        unit, groups = self.flow.unit, []
        for size in sizes.unique(dim=0):
            rows = (sizes == size).all(1).nonzero()[:, 0].to(self.image.device)
            image_size = tuple(size.tolist())
            groups.append((rows, image_size, tuple(-(-length // unit) * unit for length in image_size)))
        return groups

    def _encode(self, rows: Tensor, size: Size, full_size: Size) -> Encoded:
        """The flow's coefficients of a group of images."""

        def make() -> Encoded:
            image = self.image[rows, :, : size[0], : size[1]]
            with self.restore_grad_mode():
                return self.flow.encode(_extend(image, full_size))

        return self.keep(("encoded", size), make)

    def _invert(self, n: int, deviation: float = 1.0, fixed: bool = False) -> tuple[Tensor, Tensor]:
        """Like `draw`, with tensors of the same shapes and the caller's gradients; if `fixed`, the same noises for each
        image and at each call."""
        image = self.image
        y, log_q = image.new_zeros(len(image), n, *image.shape[2:]), image.new_zeros(len(image), n)
        with self._use_full_precision():
            for rows, size, full_size in self._groups:
                shape = (1 if fixed else len(rows), n, full_size[0] * full_size[1])
                generator = torch.Generator().manual_seed(0) if fixed else None
                noise = torch.randn(shape, generator=generator, dtype=image.dtype).to(image.device)
                noise = deviation * noise.expand(len(rows), -1, -1)
                outputs, log_det = self.flow.inverse(noise, self._encode(rows, size, full_size), full_size)
                log_density = log_normal(noise) + log_det
                log_density = log_density - _compute_log_extension(outputs, self._is_outside(size, full_size))
                y = y.index_copy(0, rows, self._place(outputs, size))
                log_q = log_q.index_copy(0, rows, log_density)
        return y, log_q

    def _place(self, y: Tensor, size: Size) -> Tensor:
        """A group's outputs `(…, row, column)` without their extension, on the grid of the batch."""
        return _extend(y[..., : size[0], : size[1]], self.image.shape[2:])

    def _is_outside(self, size: Size, full_size: Size) -> Tensor:
        """True for the pixels of an extension from `size` to `full_size`, `(row, column)`."""
        return _extend(torch.ones(size, device=self.image.device), full_size) == 0

    def _use_full_precision(self) -> torch.autocast:
        """Full precision: ln q is a small difference of large sums, and the inverse must be exact."""
        return torch.autocast(self.image.device.type, enabled=False)

    def _set_grad_mode(self) -> torch.set_grad_enabled:
        """Records gradients if the caller does and the proposal has them; a detached one has none."""
        return torch.set_grad_enabled(torch.is_grad_enabled() and self.logits.requires_grad)


def _extend(values: Tensor, size: Sequence[int]) -> Tensor:
    """Pads `(…, row, column)` with zeros below and on the right, up to a size."""
    return F.pad(values, (0, size[1] - values.shape[-1], 0, size[0] - values.shape[-2]))


def _compute_log_extension(y: Tensor, is_outside: Tensor) -> Tensor:
    """ln r of the pixels of an extension, `(batch, sample)`."""
    return log_normal(SCALE * (y[..., is_outside] - 0.5)) + math.log(SCALE) * is_outside.sum()
