"""Synthetic colour images of one object with its mask: a disc, a block or both joined, on textured ground.

Thin bars of the object's colours lie beside it, so a pixel's colour alone does not tell whether it is of the object.
"""

from __future__ import annotations

import numpy as np

SIZES = {"train": 96, "validation": 32, "test": 32}
SIDE = 24
"""Rows and columns."""


def make(seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Part -> images `(image, row, column, 3)` and masks `(image, row, column)`, uint8; the same for the same seed."""
    rng = np.random.default_rng(seed)
    drawn_examples = {part: [_draw_example(rng) for _ in range(size)] for part, size in SIZES.items()}
    return {
        part: (np.stack([image for image, _ in examples]), np.stack([mask for _, mask in examples]))
        for part, examples in drawn_examples.items()
    }


def _draw_example(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    row, column = np.mgrid[:SIDE, :SIDE] / SIDE
    inside = _draw_object(rng, row, column)
    bars = np.zeros_like(inside)
    for _ in range(3):
        angle, centre = rng.uniform(0, np.pi), rng.uniform(0.1, 0.9, 2)
        distance = (row - centre[0]) * np.cos(angle) + (column - centre[1]) * np.sin(angle)
        bars |= np.abs(distance) < rng.uniform(0.02, 0.04)
    ground, colour = rng.uniform(0.15, 0.85, (2, 3))
    colour = ground + np.where(colour > ground, 1, -1) * rng.uniform(0.2, 0.4, 3)
    has_colour = (inside | bars)[..., None]
    image = (
        np.where(has_colour, colour, ground)
        + _draw_texture(rng, row, column)[..., None]
        + rng.normal(0, 0.06, (SIDE, SIDE, 3))
    )
    return np.round(image.clip(0, 1) * 255).astype(np.uint8), inside.astype(np.uint8)


def _draw_object(rng: np.random.Generator, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """The inside of a disc and of a block that touches it, boolean; one may be missing."""
    top, left = rng.uniform(0.3, 0.7, 2)
    disc = np.hypot(row - top, column - left) < rng.uniform(0.15, 0.28)
    angle, (half_height, half_width) = rng.uniform(0, np.pi), rng.uniform(0.08, 0.25, 2)
    y, x = row - top - rng.uniform(-0.2, 0.2), column - left - rng.uniform(-0.2, 0.2)
    block = np.abs(y * np.cos(angle) + x * np.sin(angle)) < half_height
    block &= np.abs(x * np.cos(angle) - y * np.sin(angle)) < half_width
    kind = rng.integers(3)
    return disc | block if kind == 0 else disc if kind == 1 else block


def _draw_texture(rng: np.random.Generator, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    angle, rate = rng.uniform(0, np.pi), rng.uniform(10, 40)
    return rng.uniform(0.02, 0.12) * np.sin(rate * (row * np.cos(angle) + column * np.sin(angle)))
