"""Files: written under a temporary name, then renamed; read without trust in their content."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins.files.reading import (
    check_finite,
    from_json,
    no_file,
    open_file,
    read_json,
    read_json_tables,
    read_tensors,
    to_json,
)
from spen_plugins.files.unfinished import (
    append,
    is_free,
    is_stream,
    make_folder,
    remove_partial,
    writing,
    writing_folder,
)

if TYPE_CHECKING:
    from torch import Tensor


def save_tensors(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write safetensors under a temporary name, then rename.

    Raises:
        RunError: the file can't be written.
    """
    from safetensors.torch import save

    # Not `save_file`, which makes a file that only its owner can read.
    data = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, metadata)
    save_bytes(data, path)


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
    save_bytes(text.encode(), path, parents=True)


def save_bytes(data: bytes, path: Path, parents: bool = False) -> None:
    """Write bytes under a temporary name, then rename; its folder is created if `parents` is true.

    Raises:
        RunError: the file can't be written.
    """
    with writing(path, parents) as temporary, temporary.open("ab") as file:
        file.write(data)
