"""Examples of segmentation, and images and masks that are given as Python or JSON values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from spen_images import images, masks
from spen_plugins import DataError


class Example(NamedTuple):
    """An image, with or without its mask."""

    name: str
    image: np.ndarray
    """Levels from 0 to 255, `(row, column)` or `(row, column, 3)`."""
    mask: np.ndarray | None
    """0 and 1, `(row, column)`; None without gold."""


def to_image(value: Any, channels: int) -> np.ndarray:
    """Levels from 0 to 255 of an image in a form of `Segmentation.parse`; `DataError` if it is none of these."""
    if isinstance(value, (str, Path)):
        return images.read_text(value, channels)[0]
    return images.from_rows(value, channels=channels)


def to_mask(value: Any, size: tuple[int, ...]) -> np.ndarray:
    """0 and 1 of a mask in a form of `Segmentation.parse`, of this size; `DataError` if it is none of these."""
    if isinstance(value, (str, Path)):
        mask = images.read_text(value)[0]
    else:
        try:
            mask = np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value, np.float32)
        except (TypeError, ValueError):
            wanted = "rows of 0 and 1, a PNG in base64, or a path"
            raise DataError("input", None, f"mask {value!r:.60}", wanted) from None
    if mask.shape != tuple(size):
        raise DataError("input", None, f"a mask of {mask.shape}", f"{tuple(size)}, as the image")
    return masks.to_binary(mask, "input", "the mask")
