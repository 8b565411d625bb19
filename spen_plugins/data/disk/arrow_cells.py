"""Cells of Parquet and Arrow files, by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spen_plugins.errors import DataError

MOST_CELLS = 1 << 30
"""Most cells of a file that is kept in memory."""


def check_valid(path: str | Path, rows: Any) -> None:
    """Check a table's or batch's columns, which pyarrow believes when it reads them; a DataError names the column."""
    import pyarrow as pa

    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            reason = str(error).rpartition("Invalid: ")[2]
            raise DataError(path, None, f"column {name!r} damaged ({reason})", "valid values, texts in UTF-8") from None


def read_cells(path: str | Path, name: str, column: Any) -> list[Any]:
    """The cells of a valid column; a DataError if they have values that Python lacks, such as times after 9999."""
    try:
        return column.to_pylist()
    except (ValueError, OverflowError, LookupError) as error:
        found = f"values in column {name!r} of type {column.type} that can't be read ({error})"
        raise DataError(path, None, found, "texts, numbers, or lists of them") from None
