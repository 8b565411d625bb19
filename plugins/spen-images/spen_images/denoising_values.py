"""Examples of denoising, and images that are given as Python or JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spen_images import images


class Example(NamedTuple):
    """An image: clean with noise to add, noisy as it was given, or both. Grey levels are from 0 to 255."""

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
        return self.clean + np.float32(sigma) * (
            _draw_noise(self.seed, self.shape) if self.noise is None else self.noise
        )


def _draw_noise(seed: Sequence[int], shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def to_image(value: Any) -> tuple[np.ndarray, str]:
    """Grey levels of an image in a form of `Denoising.parse`, and its file's name, if it has one."""
    return images.read_text(value) if isinstance(value, (str, Path)) else (images.from_rows(value, noisy=True), "")
