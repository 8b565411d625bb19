"""Images of 8 bits, grayscale or in colours: PNG and JPEG files, folders of them, and PNG in base64."""

from __future__ import annotations

import base64
import binascii
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spen_plugins import DataError, opened, shorten

WHITE = 255.0
SUFFIXES = (".png", ".jpg", ".jpeg")
PNG = "iVBORw0KGgo"
"""How every PNG begins in base64."""
_KINDS = {
    "1": "a bilevel image",
    "L": "a grayscale image",
    "LA": "a grayscale image with transparency",
    "La": "a grayscale image with transparency",
    "P": "an image with a palette of colours",
    "PA": "an image with a palette of colours",
    "I": "an image of 32 bits",
    "F": "an image of real numbers",
}
_MODES = {1: "L", 3: "RGB"}
"""Number of channels -> Pillow's name."""
_WANTED = {"L": "a grayscale image of 8 bits", "RGB": "a colour image of 8 bits, red, green and blue"}
_BROKEN = (OSError, SyntaxError, ValueError, EOFError, ArithmeticError, LookupError, TypeError)
"""What Pillow raises for damaged files, apart from struct.error and zlib.error, which it turns into these."""


def image_files(path: str | Path) -> list[Path]:
    """The PNG and JPEG files of a folder by name, or the file itself. Other files of a folder are left out.

    Raises:
        DataError: no such file or folder, or a folder without images.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(path, None, "no such file or folder", "a folder with images, or one image")
    if not path.is_dir():
        opened(path).close()
        return [path]
    files = [p for p in path.iterdir() if p.is_file() and not p.name.startswith(".")]
    found = sorted((p for p in files if p.suffix.lower() in SUFFIXES), key=lambda p: p.name)
    if not found:
        has = f"a folder of {len(files)} other files" if files else "an empty folder"
        raise DataError(path, None, has, f"a folder with images ({', '.join(SUFFIXES)})")
    return found


def read_image(path: str | Path, channels: int = 1) -> np.ndarray:
    """Levels of a PNG or JPEG file, uint8: `(row, column)` of one channel, `(row, column, 3)` of three.

    Raises:
        DataError: no such file, no image, a damaged one, one of other channels, or other than 8 bits.
    """
    with opened(path) as file:
        return _decoded(file, path, channels)


def from_base64(text: str, where: object = "input", channels: int = 1) -> np.ndarray:
    """Levels of a PNG in base64, uint8, in the shapes of `read_image`; `DataError` as there."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise DataError(where, None, f"{shorten(text)}, which is not base64", "a PNG in base64") from None
    return _decoded(io.BytesIO(data), where, channels)


def to_base64(pixels: np.ndarray) -> str:
    """Grey levels `(row, column)` uint8 -> a PNG in base64."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="PNG")
    return base64.b64encode(out.getvalue()).decode("ascii")


def from_rows(rows: Any, where: object = "input") -> np.ndarray:
    """Grey levels from 0 to 255 as a list of rows, or an array -> `(row, column)` float32.

    Levels of a noisy image may be outside this range, and need not be whole.

    Raises:
        DataError: rows of different lengths, no number, or numbers that are no grey levels.
    """
    wanted = "rows of grey levels from 0 to 255, all of one length"
    try:
        levels = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError):
        raise DataError(where, None, f"image {rows!r:.60}", wanted) from None
    if levels.ndim != 2 or not levels.size:
        raise DataError(where, None, f"an image of shape {levels.shape}", wanted)
    if not np.isfinite(levels).all():
        raise DataError(where, None, "an image with a level that is no finite number", wanted)
    low, high = float(levels.min()), float(levels.max())
    if low < -1000 or high > 1255:
        raise DataError(where, None, f"levels from {low:g} to {high:g}", wanted)
    if 0 < high <= 1.5 and low >= -0.5 and (levels != np.round(levels)).any():
        raise DataError(where, None, f"levels from {low:g} to {high:g}", f"{wanted}; times 255, if 1 is white")
    return levels


def smallest_side(images: Sequence[np.ndarray]) -> int:
    """The fewest rows or columns of any image."""
    return min(min(image.shape) for image in images)


def _decoded(file: Any, where: object, channels: int) -> np.ndarray:
    from PIL import Image

    mode = _MODES[channels]
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(file, formats=("PNG", "JPEG")) as image:
                if image.mode != mode:
                    deep = image.mode[0] in "IF"  # convert would clip such levels
                    convert = f"Pillow makes one: Image.open(FILE).convert('{mode}').save(NEW)"
                    how = "divide its levels, so that white is 255" if deep else convert
                    raise DataError(where, None, _kind(image.mode), f"{_WANTED[mode]}; {how}")
                return np.array(image)
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
            raise DataError(where, None, str(error).rstrip("."), "a smaller image") from None
        except Image.UnidentifiedImageError:
            raise DataError(where, None, "a file that is no image, or a damaged one", "PNG or JPEG") from None
        except _BROKEN as error:
            raise DataError(where, None, f"a damaged image ({error})", "PNG or JPEG that can be read") from None


def _kind(mode: str) -> str:
    if mode.startswith("I;16"):
        return "an image of 16 bits"
    return _KINDS.get(mode, f"a colour image ({mode})")
