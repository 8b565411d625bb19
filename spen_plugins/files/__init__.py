"""Files: written under a temporary name, then renamed; read without trust in what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins.errors import RunError
from spen_plugins.files.reading import (
    check_finite,
    check_kind,
    no_file,
    open_file,
    read_json,
    read_json_lines,
    read_tensors,
)
from spen_plugins.files.values import from_json, to_json

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "check_finite",
    "check_kind",
    "from_json",
    "no_file",
    "open_file",
    "read_json",
    "read_json_lines",
    "read_tensors",
    "remove_partial",
    "save_json",
    "save_tensors",
    "save_text",
    "to_json",
    "writing",
]


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary name to write to, renamed to `path` on success and removed on failure.

    Raises:
        RunError: the disk is full or read-only, for example.
    """
    temporary = path.with_name(path.name + ".partial")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise RunError(
            f"{path} can't be written: {error.strerror or error}; what stood there before is whole"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def save_tensors(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write safetensors under a temporary name, then rename.

    Raises:
        RunError: the file can't be written.
    """
    from safetensors.torch import save

    # Not `save_file`, which makes a file that only its owner can read.
    data = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, metadata)
    with writing(path) as temporary:
        temporary.write_bytes(data)


def save_json(value: Any, path: Path, indent: int | None = 2) -> None:
    """Write JSON under a temporary name, then rename.

    Raises:
        RunError: the file can't be written.
    """
    with writing(path) as temporary:
        temporary.write_text(to_json(value, indent) + "\n", encoding="utf-8")


def save_text(text: str, path: Path) -> None:
    """Write a text under a temporary name, then rename; its folder is created.

    Raises:
        RunError: the file can't be written.
    """
    with writing(path) as temporary:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")


def remove_partial(folder: Path) -> None:
    """Delete unfinished files of a killed process."""
    for path in folder.rglob("*.partial"):
        path.unlink()
