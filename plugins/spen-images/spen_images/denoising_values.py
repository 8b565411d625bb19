"""Examples of denoising, and errors of denoised images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

BEST = 100.0  # dB, of an image without any error, so that means stay finite

DEFINITIONS = {
    "metric": (
        "PSNR = 10 log10(1 / MSE) dB of pixels from 0 to 1, of each image, then the mean over images; outputs are "
        f"clipped to [0, 1] and not rounded; at most {BEST:g} dB per image"
    ),
    "psnr_noisy": "PSNR of the noisy images themselves, as they are",
    "rmse": "root of the mean over images of the MSE, in grey levels (of 255)",
}


class Example(NamedTuple):
    """An image: clean with noise to add, noisy as given, or both. Grey levels are from 0 to 255."""

    name: str
    clean: np.ndarray | None
    """`(row, column)`; None without gold."""
    noisy: np.ndarray | None = None
    """`(row, column)`, as given; None: the clean image with noise."""
    seed: tuple[int, ...] = ()
    """Seed of the noise, if it is fixed."""
    noise: np.ndarray | None = None
    """`(row, column)` noise of deviation 1, drawn for one epoch."""

    @property
    def shape(self) -> tuple[int, int]:
        image = self.noisy if self.clean is None else self.clean
        assert image is not None
        return image.shape[0], image.shape[1]

    def input(self, sigma: float) -> np.ndarray:
        """The noisy image, `(row, column)` float32, grey levels."""
        if self.noisy is not None:
            return self.noisy.astype(np.float32)
        assert self.clean is not None
        noise = self.noise
        if noise is None:
            noise = np.random.default_rng(self.seed).standard_normal(self.shape, dtype=np.float32)
        return self.clean + np.float32(sigma) * noise


def squared_error(y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
    """Mean of (y − gold)² over an image's own pixels, `(batch,)` float64 on the CPU.

    `y` and `gold` are `(batch, 1, row, column)`, `mask` is `(batch, row, column)`.
    """
    squares = (y[:, 0].cpu().double() - gold[:, 0].cpu().double()).square()
    if mask is None:
        return squares.flatten(1).mean(1)
    weights = mask.cpu().double()
    return (squares * weights).flatten(1).sum(1) / weights.flatten(1).sum(1)


def psnr(error: Tensor) -> Tensor:
    """10 log10(1 / MSE), at most 100 dB: errors `(batch,)` -> `(batch,)`."""
    return -10 * error.clamp(min=10 ** (-BEST / 10)).log10()
