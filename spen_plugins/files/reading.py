"""Files read without trust in what they hold: JSON and tensors; anything but a file is refused."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins.errors import RunError
from spen_plugins.files.values import from_json

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_JSON = 1 << 28
"""Most bytes of a JSON file that is read."""
_KINDS = {
    stat.S_ISDIR: "a folder",
    stat.S_ISFIFO: "a pipe",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISSOCK: "a socket",
}


def read_json(path: Path, constants: bool = False) -> dict[str, Any]:
    """The table in a JSON file; `constants` as in `from_json`.

    Raises:
        FileNotFoundError: there is none.
        RunError: it is no file, larger than `LARGEST_JSON` bytes, not UTF-8, no JSON, or another value than a table.
    """
    with _damage(path):
        return _table(_content(path), constants)


def read_json_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """The tables in a file of JSON lines, each with the number of its line, from 1; errors as `read_json`."""
    found = []
    with _damage(path):
        lines = _content(path).splitlines()
    for number, line in enumerate(lines, 1):
        with _damage(path, number):
            found.append((number, _table(line)))
    return found


def _content(path: Path) -> bytes:
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size  # `read` takes as much memory as it may have to return
        data = file.read(min(size, LARGEST_JSON) + 1)
    if len(data) > LARGEST_JSON:
        raise ValueError(f"found more than {LARGEST_JSON >> 20} MiB; expected fewer, as it is kept in memory")
    return data


def _table(data: bytes, constants: bool = False) -> dict[str, Any]:
    value = from_json(data, constants)
    if not isinstance(value, dict):
        raise ValueError(f"found a {type(value).__name__}; expected a table")
    return value


def read_tensors(path: Path, infinite: bool = False) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a safetensors file by name, all numbers finite, and its metadata.

    Args:
        path: the file.
        infinite: if true, infinities are read; who knows which are meant checks them (`check_finite`).

    Raises:
        FileNotFoundError: there is none.
        RunError: it is no file, is damaged, or a tensor has a number that is NaN or infinite.
    """
    from safetensors import safe_open

    with _damage(path):
        open_file(path).close()
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a mapping
            metadata = file.metadata() or {}
        for name, tensor in tensors.items():
            check_finite(name, tensor, tensor if infinite else None)
    return tensors, metadata


def check_kind(name: str, found: Tensor, wanted: Tensor) -> None:
    """Raise a ValueError if a tensor of integers is to become one of floats, or the other way round."""
    same = found.dtype == wanted.dtype or (found.is_floating_point() and wanted.is_floating_point())
    if not same:
        kinds = (str(tensor.dtype).removeprefix("torch.") for tensor in (found, wanted))
        raise ValueError("found {1} in {0}; expected {2}".format(name, *kinds))


def check_finite(name: str, tensor: Tensor, like: Tensor | None = None) -> None:
    """Raise a ValueError that names a tensor in which a number is NaN or infinite.

    An infinity that `like`, of the same shape, has at the same place is meant: a net's mask may hold it. A sum is about
    ten times as fast as looking at each number (25 ms for 100 MB), and not finite if one is not.
    """
    from torch import finfo

    if not tensor.is_floating_point():
        return
    tensor = tensor.float() if finfo(tensor.dtype).bits < 16 else tensor  # 8 bits have no sum
    if tensor.sum().isfinite():
        return
    odd = tensor.isfinite().logical_not()
    if like is not None:
        like = like.to(tensor.device)  # in its own type: a large number would be infinite in another
        odd &= ~(tensor.isinf() & like.isinf() & (tensor.sign() == like.sign()))
    if count := int(odd.sum()):
        raise ValueError(f"found {count} of {tensor.numel()} numbers in {name} NaN or infinite; expected finite ones")


@contextmanager
def _damage(path: Path, line: int | None = None) -> Iterator[None]:
    """Errors of reading a file, whatever its library raises for a damaged one, as a `RunError`."""
    try:
        yield
    except (FileNotFoundError, MemoryError):
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        where = path if line is None else f"{path}:{line}"
        raise RunError(f"{where} is damaged and can't be read: {' '.join(reason.split()):.300}") from error


def open_file(path: str | Path) -> BufferedReader:
    """A file, or what a link to one leads to, opened in binary mode.

    Anything else is refused: a pipe may hang, a device may never end.

    Raises:
        OSError: it can't be opened, or is no file; `strerror` says what was found.
    """
    if found := no_file(path):
        raise OSError(errno.EINVAL, f"found {found}; expected a file", str(path))
    return Path(path).open("rb")


def no_file(path: str | Path) -> str | None:
    """What is there in place of a file ("a folder", "a pipe", …); None of a file.

    Raises:
        OSError: there is nothing, or it can't be looked at.
    """
    try:
        mode = Path(path).stat().st_mode
    except ValueError:
        raise OSError(errno.EINVAL, "its name has a null byte", str(path)) from None
    if stat.S_ISREG(mode):
        return None
    return next((kind for is_one, kind in _KINDS.items() if is_one(mode)), "something else")
