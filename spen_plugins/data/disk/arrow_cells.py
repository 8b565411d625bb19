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
    """The cells of a valid column. Times in an unknown zone are texts, in UTC; those after the year 9999 are None."""
    import pyarrow as pa

    try:
        return column.to_pylist()
    except (ValueError, OverflowError, LookupError):  # Python has no such time, or no such zone
        pass
    try:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp(column.type.unit))
        texts = column.cast(pa.string()).to_pylist()
        return [None if text and text.startswith("<value out of range") else text for text in texts]
    except pa.ArrowException as error:
        problem = f"values in column {name!r} of type {column.type} that can't be read ({error})"
        raise DataError(path, None, problem, "texts, numbers, or lists of them") from None
