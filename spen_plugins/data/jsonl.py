"""JSON lines: a JSON value a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from spen_plugins.data.encodings import UTF_8
from spen_plugins.data.text import open_text, shorten
from spen_plugins.errors import DataError
from spen_plugins.files import from_json

T = TypeVar("T")


def read_json_lines(path: Path, form: str, make: Callable[[Any], T]) -> Iterator[tuple[int, T]]:
    """Number and content of each line that is not blank, one at a time.

    `form` is what a line looks like, for messages; `make` turns its value into what is wanted, and its `DataError` gets
    the file and the line.
    """
    empty = True
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            empty = False
            try:
                value = from_json(line)
            except UnicodeDecodeError as error:
                raise DataError(path, number, f"byte 0x{line[error.start]:02x}, which is not UTF-8", UTF_8) from None
            except ValueError as error:
                text = shorten(line[:1000].decode("utf-8", "replace").strip())
                raise DataError(path, number, f"{text}, which is no JSON ({error})", f"a line such as {form}") from None
            try:
                yield number, make(value)
            except DataError as error:
                raise DataError(path, number, error.found, error.expected) from None
    if empty:
        raise DataError(path, None, "an empty file", f"lines such as {form}")
