"""Splits of a file's rows into training, validation and test."""

from __future__ import annotations

from pathlib import Path

from spen_plugins.data.text import read_in_encoding, read_lines
from spen_plugins.errors import DataError
from spen_plugins.files import from_json

PARTS = ("train", "validation", "test")


def read_split(path: str | Path, total: int) -> dict[str, list[int]]:
    """A JSON file {"train": rows, "validation" (or "valid"): rows, "test": rows}; rows are counted from 0."""
    with read_in_encoding(None):  # `spen data split` writes it
        text = "\n".join(read_lines(path))
    try:
        if not isinstance(split := from_json(text), dict):
            raise ValueError("no table")
    except ValueError as error:
        wanted = '{"train": rows, "validation": rows, "test": rows}'
        raise DataError(path, None, f"not JSON of a table ({error})", wanted) from None
    parts = {"validation" if name == "valid" else name: rows for name, rows in split.items()}
    if not {"train", "validation"} <= {*parts} <= {*PARTS} or len(parts) < len(split):
        raise DataError(path, None, ", ".join(split) or "no parts", "the parts train, validation (or valid) and test")
    seen: dict[int, str] = {}
    for name, rows in parts.items():
        if not isinstance(rows, list):
            raise DataError(path, None, f"{rows!r:.80} as the rows of {name}", "a list of row numbers")
        for row in rows:
            if type(row) is not int or not 0 <= row < total:
                raise DataError(path, None, f"row {row!r:.80} in {name}", f"numbers from 0 to {total - 1}")
            if row in seen:
                raise DataError(path, None, f"row {row} in {seen[row]} and in {name}", "each row once")
            seen[row] = name
    return {name: parts.get(name, []) for name in PARTS}
