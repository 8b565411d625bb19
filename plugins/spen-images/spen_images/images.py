"""Images of 8 bits, grayscale or in colours: PNG and JPEG files, folders of them, and PNG in base64."""

from __future__ import annotations

import base64
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from spen_plugins import DataError, locate, opened, shorten

WHITE = 255.0
SUFFIXES = (".png", ".jpg", ".jpeg")
PNG = "iVBORw0KGgo"
"""The beginning of every PNG in base64."""
_MODES = {1: "L", 3: "RGB"}
"""Number of channels -> Pillow's name."""
_EXPECTED = {"L": "an 8-bit grayscale image", "RGB": "an 8-bit RGB image"}
_BROKEN = (OSError, SyntaxError, ValueError, EOFError, ArithmeticError, LookupError, TypeError)
"""Errors of Pillow for damaged files, apart from struct.error and zlib.error, which it turns into these."""


def list_images(path: str | Path) -> list[Path]:
    """The PNG and JPEG files of a folder by name, or the file itself. Other files of a folder are skipped; `DataError`
    if there is no such file or folder, or it has no images."""
    path = Path(path)
    if not path.exists():
        raise DataError(path, None, "no such file or folder", "a folder of images, or one image")
    if not path.is_dir():
        opened(path).close()
        return [path]
    files = [p for p in path.iterdir() if p.is_file() and not p.name.startswith(".")]
    images = sorted((p for p in files if p.suffix.lower() in SUFFIXES), key=lambda p: p.name)
    if not images:
        problem = f"a folder with {len(files)} other files" if files else "an empty folder"
        if not files and any(p.is_dir() for p in path.iterdir()):
            problem = "no image directly in this folder, only folders"
        raise DataError(path, None, problem, f"images ({', '.join(SUFFIXES)})")
    return images


def read_image(path: str | Path, channels: int = 1) -> np.ndarray:
    """Levels of a PNG or JPEG file, uint8: `(row, column)` of one channel, `(row, column, 3)` of three; `DataError` if
    it is missing, not an image, damaged, or has other channels or other than 8 bits. For three channels, a grey image
    without transparency is converted."""
    with opened(path) as file:
        return _decode(file, path, channels)


def to_base64(pixels: np.ndarray) -> str:
    """Grey levels `(row, column)` uint8 -> a PNG in base64."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="PNG")
    return base64.b64encode(out.getvalue()).decode("ascii")


def read_value(value: Any, channels: int = 1, noisy: bool = False) -> tuple[np.ndarray, str]:
    """Levels of a user's image, and its file's name, "" without one: a text or a path is read by `read_text`, anything
    else by `from_rows`."""
    if isinstance(value, (str, Path)):
        return read_text(value, channels)
    return from_rows(value, channels, noisy), ""


def read_text(text: str | Path, channels: int = 1) -> tuple[np.ndarray, str]:
    """Levels, as in `read_image`, of a PNG in base64 or of a path, and the file's name, "" for base64."""
    if not isinstance(text, str) or not text.startswith(PNG):
        return read_image(locate(str(text)), channels), Path(text).name
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise DataError("input", None, f"{shorten(text)}, which is not base64", "a PNG in base64") from None
    return _decode(io.BytesIO(data), "input", channels), ""


def from_rows(rows: Any, channels: int, noisy: bool) -> np.ndarray:
    """Levels from 0 to 255 as a list of rows, an array or a tensor -> float32 in the shapes of `read_image`.

    Levels of a noisy image may be outside this range. `DataError` for rows of different lengths, or for values that
    are not numbers or levels.
    """
    expected = f"rows of levels from 0 to 255, {'(row, column)' if channels == 1 else f'(row, column, {channels})'}"
    try:
        levels = np.asarray(rows.detach().cpu() if isinstance(rows, Tensor) else rows, dtype=np.float32)
    except (TypeError, ValueError):
        raise DataError("input", None, f"image {rows!r:.60}", expected) from None
    if channels == 1 and levels.shape[2:] == (1,):
        levels = levels[..., 0]
    if levels.ndim < 2 or levels.shape[2:] != (() if channels == 1 else (channels,)) or not levels.size:
        raise DataError("input", None, f"an image of shape {levels.shape}", expected)
    low, high, margin = float(levels.min()), float(levels.max()), 1000 if noisy else 0
    if not (low >= -margin and high <= 255 + margin):  # also if a level is NaN
        raise DataError("input", None, f"levels from {low:g} to {high:g}", expected)
    if 0 < high <= 1.5 and low >= -0.5 and (levels != np.round(levels)).any():
        raise DataError("input", None, f"levels from {low:g} to {high:g}", f"{expected}; multiply by 255 if 1 is white")
    return levels


def _decode(file: Any, source: object, channels: int) -> np.ndarray:
    from PIL import Image

    mode = _MODES[channels]
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(file, formats=("PNG", "JPEG")) as image:
                if mode == "RGB" and image.mode in ("L", "1") and "transparency" not in image.info:
                    return np.array(image.convert(mode))
                if image.mode != mode:
                    is_deep = image.mode[0] in "IF"  # convert would clip such levels
                    advice = "with white at 255" if is_deep else f"as Pillow's image.convert('{mode}') returns it"
                    raise DataError(
                        source, None, f"an image with Pillow's mode {image.mode}", f"{_EXPECTED[mode]}, {advice}"
                    )
                return np.array(image)
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
            raise DataError(source, None, str(error).rstrip("."), "a smaller image") from None
        except _BROKEN as error:
            raise DataError(source, None, f"no image, or a damaged one ({error})", "PNG or JPEG") from None
