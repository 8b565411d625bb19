"""Examples of segmentation, and images and masks that are given as Python or JSON values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from spen_images import images, masks
from spen_plugins import DataError, locate


class Example(NamedTuple):
    """An image, with or without its mask."""

    name: str
    image: np.ndarray
    """Levels from 0 to 255, `(row, column)` or `(row, column, 3)`."""
    mask: np.ndarray | None
    """0 and 1, `(row, column)`; None without gold."""


def image_of(given: Any, channels: int) -> np.ndarray:
    """Levels from 0 to 255 of an image in a form of `Segmentation.parse`; `DataError` if it is none of these."""
    found = _from_file(given, channels)
    if found is not None:
        return found
    shape = "(row, column)" if channels == 1 else f"(row, column, {channels})"
    wanted = f"rows of levels from 0 to 255, {shape}, a PNG in base64, or a path"
    levels = _array(given, wanted)
    if channels == 1 and levels.shape[2:] == (1,):
        levels = levels[..., 0]
    if levels.shape[2:] != (() if channels == 1 else (channels,)) or levels.ndim < 2 or not levels.size:
        raise DataError("input", None, f"an image of shape {levels.shape}", wanted)
    low, high = float(levels.min()), float(levels.max())
    if not (low >= 0 and high <= 255):
        raise DataError("input", None, f"levels from {low:g} to {high:g}", wanted)
    if 0 < high <= 1 and (levels != np.round(levels)).any():
        raise DataError("input", None, f"levels from {low:g} to {high:g}", f"{wanted}; times 255, if 1 is white")
    return levels


def mask_of(given: Any, size: tuple[int, ...]) -> np.ndarray:
    """0 and 1 of a mask in a form of `Segmentation.parse`, of this size; `DataError` if it is none of these."""
    found = _from_file(given, 1)
    if found is None:
        found = _array(given, "rows of 0 and 1, a PNG in base64, or a path")
    if found.shape != tuple(size):
        raise DataError("input", None, f"a mask of {found.shape}", f"{tuple(size)}, as the image")
    return masks.binary(found, "input", "the mask")


def _from_file(given: Any, channels: int) -> np.ndarray | None:
    """Levels of a PNG in base64, or of a path; None for other values."""
    if isinstance(given, str) and given.startswith(images.PNG):
        return images.from_base64(given, channels=channels)
    if isinstance(given, (str, Path)):
        return images.read_image(locate(str(given)), channels)
    return None


def _array(given: Any, wanted: str) -> np.ndarray:
    if isinstance(given, Tensor):
        given = given.detach().cpu().numpy()
    try:
        return np.asarray(given, np.float32)
    except (TypeError, ValueError):
        raise DataError("input", None, f"{given!r:.60}", wanted) from None
