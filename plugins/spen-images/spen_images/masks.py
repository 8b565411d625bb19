"""Images with binary masks in .npz files: `train_images` and `train_masks`, and so on, or `images` and `masks`."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from spen_plugins import DataError, opened

PREFIXES = {"train": ("train",), "validation": ("validation", "val", "valid"), "test": ("test",)}
"""Prefixes of the keys of each part."""
LARGEST = 1 << 30
"""Maximal number of bytes of a file's arrays."""
_BROKEN = (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, RuntimeError, MemoryError, OverflowError)
"""Errors of NumPy and zipfile for damaged files, and for a header that claims more than the file has."""


def read_arrays(path: str | Path) -> Mapping[str, np.ndarray]:
    """The arrays of a .npz file by key, loaded without unpickling anything; `DataError` if the file is missing or
    damaged, is not .npz, or has pickled Python objects."""
    expected = "a .npz file of uint8 arrays, as from numpy.savez"
    try:
        with opened(path) as file:
            arrays = np.load(file, allow_pickle=False)
            if isinstance(arrays, np.ndarray):
                raise DataError(path, None, "one array (.npy)", expected)
            if (size := sum(entry.file_size for entry in arrays.zip.infolist())) > LARGEST:
                raise DataError(path, None, f"arrays of {size / 1e9:.1f} GB", f"at most {LARGEST / 1e9:.1f} GB")
            return {key: arrays[key] for key in arrays.files}
    except _BROKEN as error:
        if "pickle" in str(error):  # NumPy takes any file of another kind for a pickle
            raise DataError(path, None, "a file of another type, or pickled Python objects", expected) from None
        raise DataError(path, None, f"a damaged file ({error!s:.80})", expected) from None


def check_arrays(
    path: str | Path, arrays: Mapping[str, np.ndarray], part: str | None, need_masks: bool = True
) -> tuple[np.ndarray, np.ndarray | None]:
    """The images of a part, `(image, row, column)` or `(image, row, column, 3)`, and masks of 0 and 1, all uint8.

    Their keys are just `images` and `masks` if the part is None. `DataError` for a missing key, arrays of other shapes
    or types, a mask that is not binary.
    """
    names = [] if part is None else [f"{prefix}_" for prefix in PREFIXES[part]]
    prefix = next((name for name in names if f"{name}images" in arrays), names[0] if names else "")
    images, masks = arrays.get(f"{prefix}images"), arrays.get(f"{prefix}masks")
    if images is None or (masks is None and need_masks):
        name, keys = f"{prefix}{'images' if images is None else 'masks'}", ", ".join(arrays) or "no array"
        advice = (
            "" if part is None or "images" not in arrays else "; or, as it has one part, validation= and test=, too"
        )
        raise DataError(path, None, f"no '{name}' (it has {keys})", f"an array '{name}'{advice}")
    if images.dtype != np.uint8 or images.shape[3:] not in ((), (1,), (3,)) or images.ndim < 3 or not images.size:
        raise DataError(
            path,
            None,
            f"'{prefix}images' of shape {images.shape} and type {images.dtype}",
            "(image, row, column, 3) for colour or (image, row, column) for grey, uint8 from 0 to 255",
        )
    if images.shape[3:] == (1,):
        images = images[..., 0]
    if masks is None:
        return images, None
    if masks.shape != images.shape[:3]:
        sizes = f"'{prefix}masks' of shape {masks.shape} for '{prefix}images' of shape {images.shape}"
        raise DataError(path, None, sizes, f"{images.shape[:3]}, one mask of equal size per image")
    return images, np.stack([to_binary(mask, path, f"'{prefix}masks', image {i}") for i, mask in enumerate(masks)])


def to_binary(mask: np.ndarray, path: object, noun: str) -> np.ndarray:
    """A mask of 0 and 1, or of 0 and 255, as 0 and 1, uint8; `DataError` if it has other values."""
    values = np.unique(mask).tolist()
    if not (set(values) <= {0, 1} or set(values) <= {0, 255}):
        raise DataError(
            path,
            None,
            f"{', '.join(map(str, values[:5]))} in {noun}",
            "a binary mask, of 0 and 1 or of 0 and 255",
        )
    return (mask != 0).astype(np.uint8)
