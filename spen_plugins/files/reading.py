"""Files of JSON and tensors: damaged ones, and anything but a file, are rejected. Written JSON is always valid."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from spen_plugins.errors import RunError

if TYPE_CHECKING:
    from torch import Tensor


def to_json(value: Any, indent: int | None = None) -> str:
    """Valid JSON, with null in place of numbers that are NaN or infinite."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_replace_non_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_replace_non_finite(key): _replace_non_finite(item) for key, item in value.items()}
    return [_replace_non_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def from_json(text: str | bytes) -> Any:
    """The value of a JSON text, read strictly; bytes are UTF-8, with a byte order mark or without.

    Raises:
        ValueError: it is not JSON, is nested too deeply, or has half a character or a number that is not finite.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    try:
        value = json.loads(text, parse_constant=_reject, parse_float=_read_float)
        if "\\ud" in text or "\\uD" in text:  # half of a pair can't be written again
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("tables or lists are nested too deeply") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"an unpaired surrogate ({error.object[error.start]!a})") from None
    return value


def _reject(name: str) -> NoReturn:
    raise ValueError(f"{name:.20} is not a JSON number")


def _read_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _reject(text)


_KINDS = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}


def read_json(path: Path) -> dict[str, Any]:
    """The table in a JSON file.

    Raises:
        FileNotFoundError: there is no such file.
        RunError: it is no file, not UTF-8, not JSON, or another value than a table.
    """
    with _translate_damage(path), open_file(path) as file:
        return _parse_table(file.read())


def read_json_tables(path: Path) -> list[dict[str, Any]]:
    """The tables in a file of JSON lines; raises the errors of `read_json`."""
    tables = []
    with _translate_damage(path), open_file(path) as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        with _translate_damage(f"{path}:{number}"):
            tables.append(_parse_table(line))
    return tables


def _parse_table(data: bytes) -> dict[str, Any]:
    value = from_json(data)
    if not isinstance(value, dict):
        raise ValueError(f"found a {type(value).__name__}; expected a table")
    return value


def read_tensors(path: Path, infinite: bool = False) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file by name, all numbers finite, and its metadata.

    Args:
        path: the file.
        infinite: if true, infinities are read; the caller checks with `check_finite` that they are intended.

    Raises:
        FileNotFoundError: there is no such file.
        RunError: it is no file, is damaged, or a tensor has a number that is NaN or infinite.
    """
    from safetensors import safe_open

    with _translate_damage(path):
        open_file(path).close()
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a mapping
            metadata = file.metadata() or {}
        for name, tensor in tensors.items():
            check_finite(name, tensor, tensor if infinite else None)
    return tensors, metadata


def check_finite(name: str, tensor: Tensor, like: Tensor | None = None) -> None:
    """Raise a ValueError that names a tensor in which a number is NaN or infinite.

    An infinity that `like`, of the same shape, has at the same place is allowed: a net's mask may hold it. A sum is
    about ten times as fast as a check of each number (25 ms for 100 MB), and not finite if any number is not.
    """
    from torch import finfo

    if not tensor.is_floating_point():
        return
    tensor = tensor.float() if finfo(tensor.dtype).bits < 16 else tensor  # 8 bits have no sum
    if tensor.sum().isfinite():
        return
    is_odd = tensor.isfinite().logical_not()
    if like is not None:
        like = like.to(tensor.device)  # in its own type: a large number would be infinite in another
        is_odd &= ~(tensor.isinf() & like.isinf() & (tensor.sign() == like.sign()))
    if count := int(is_odd.sum()):
        raise ValueError(
            f"found {count} of {tensor.numel()} numbers in {name} that are NaN or infinite; expected finite numbers"
        )


@contextmanager
def _translate_damage(path: Path | str) -> Iterator[None]:
    """Raises a `RunError` in place of a library's error for a damaged file."""
    try:
        yield
    except (FileNotFoundError, MemoryError):
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        raise RunError(f"{path} is damaged and can't be read: {' '.join(reason.split()):.300}") from error


def open_file(path: str | Path) -> BufferedReader:
    """A file, or the target of a link to a file, opened in binary mode.

    Anything else is rejected: a pipe may hang, a device may never end.

    Raises:
        OSError: it can't be opened, or is no file; `strerror` says what was found.
    """
    if kind := no_file(path):
        raise OSError(errno.EINVAL, f"found {kind}; expected a file", str(path))
    return Path(path).open("rb")


def no_file(path: str | Path) -> str | None:
    """The kind of thing in place of a file ("a folder", "a pipe", …); None for a file.

    Raises:
        OSError: nothing is there, or it can't be examined.
    """
    try:
        mode = Path(path).stat().st_mode
    except ValueError:  # a null byte in its name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
    if stat.S_ISREG(mode):
        return None
    return next((kind for is_kind, kind in _KINDS.items() if is_kind(mode)), "something else")
