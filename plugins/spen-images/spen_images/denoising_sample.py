"""Synthetic grayscale images: smooth gradients with discs, bars and textures, in two orientations."""

from __future__ import annotations

import numpy as np

SIZES = {"train": 24, "validation": 8, "test": 8}
SHAPES = ((48, 40), (40, 48))
"""Rows and columns, in turns."""


def make(seed: int = 0) -> dict[str, list[np.ndarray]]:
    """Part -> images, `(row, column)` uint8; the same for the same seed."""
    rng = np.random.default_rng(seed)
    return {part: [_draw_image(rng, *SHAPES[i % 2]) for i in range(size)] for part, size in SIZES.items()}


def _draw_image(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    row, column = np.mgrid[:rows, :columns] / 40.0
    slope = rng.uniform(-0.4, 0.4, 2)
    image = rng.uniform(0.3, 0.7) + slope[0] * (row - 0.5) + slope[1] * (column - 0.5)
    for _ in range(rng.integers(1, 4)):
        inside, level = _draw_shape(rng, row, column), rng.uniform(0, 1)
        image = np.where(inside, level + _draw_texture(rng, row, column), image)
    return np.round(image.clip(0, 1) * 255).astype(np.uint8)


def _draw_shape(rng: np.random.Generator, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """The inside of a disc or of a bar, boolean."""
    y, x = row - rng.uniform(0.1, 0.9), column - rng.uniform(0.1, 0.9)
    if rng.random() < 0.5:
        return np.hypot(y, x) < rng.uniform(0.12, 0.35)
    angle = rng.uniform(0, np.pi)
    return np.abs(y * np.cos(angle) + x * np.sin(angle)) < rng.uniform(0.04, 0.15)


def _draw_texture(rng: np.random.Generator, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Waves for half of the shapes, nothing for the others."""
    angle, rate = rng.uniform(0, np.pi), rng.uniform(20, 60)
    height = rng.uniform(0.05, 0.2) * (rng.random() < 0.5)
    return height * np.sin(rate * (row * np.cos(angle) + column * np.sin(angle)))
