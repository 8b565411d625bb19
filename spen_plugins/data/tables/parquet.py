"""Tables from Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from spen_plugins.data.table import Table
from spen_plugins.data.tables.cells import KEYS, Known, Texts, is_key, table_of
from spen_plugins.data.text import check_size
from spen_plugins.errors import ConfigError, DataError

_INDEX = "__index_level_0__"  # how pandas writes the column of row numbers
MOST_CELLS = 1 << 30
"""Most cells of a file that is kept in memory."""


def read_parquet(path: str | Path, known: Known | None = None, unused: Collection[str] = ()) -> Table:
    """Read a file; nulls are missing values. A row's line is its number, from 1.

    Args:
        path: the file.
        known: columns of the training file, if this is another.
        unused: columns that are not looked at.

    Raises:
        ConfigError: pyarrow is not installed.
        DataError: with the row, what was found and what was expected.
    """
    found = stored(path)
    if not found.num_rows:
        raise DataError(path, None, "no rows", "at least one")
    names = list(enumerate(found.column_names))
    named = found.select([i for i, name in names if name.casefold() in KEYS and name not in (known or {})])
    check_valid(path, named)
    columns_named = zip(named.column_names, named.columns, strict=True)
    keys = tuple(name for name, cells in columns_named if is_key(name, list(map(str, cells_of(path, name, cells)))))
    unused = {*unused, *keys}
    check_valid(path, found.select([i for i, name in names if name not in unused]))
    columns: dict[str, np.ndarray | Texts] = {}
    for field, column in zip(found.schema, found.columns, strict=True):
        if field.name == _INDEX:
            continue
        if field.name in unused:
            columns[field.name] = np.zeros(found.num_rows, dtype=np.float32)
        else:
            columns[field.name] = _cells(path, field, column)
    table = table_of(path, columns, list(range(1, found.num_rows + 1)), known, unused)
    table.keys = keys
    return table


def stored(path: str | Path) -> Any:
    """A file's columns as a `pyarrow.Table`.

    Raises:
        ConfigError: pyarrow is not installed.
        DataError: the file is too large, or damaged.
    """
    check_size(path)
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ConfigError(
            f"{path} is a Parquet file, which needs pyarrow: pip install 'spen-plugins[tables]'"
        ) from None
    try:
        about = parquet.read_metadata(path)
        if (cells := about.num_rows * about.num_columns) > MOST_CELLS:  # a few bytes may stand for many equal cells
            raise DataError(path, None, f"{cells:,} cells", f"at most {MOST_CELLS:,}, as they are kept in memory")
        return parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(path, None, f"a damaged Parquet file ({error})", "a whole one") from None


def check_valid(path: str | Path, rows: Any) -> None:
    """Check a table's or batch's columns, which pyarrow believes when it reads them; a DataError names the column."""
    import pyarrow as pa

    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            reason = str(error).rpartition("Invalid: ")[2]
            raise DataError(path, None, f"column {name!r} damaged ({reason})", "valid values, texts in UTF-8") from None


def cells_of(path: str | Path, name: str, column: Any) -> list[Any]:
    """The cells of a valid column. Times in an unknown zone are texts, in UTC; those after the year 9999 are None.

    Raises:
        DataError: they have no such values.
    """
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
        found = f"values in column {name!r} of type {column.type} that can't be read ({error})"
        raise DataError(path, None, found, "texts, numbers, or lists of them") from None


def column_names(path: str | Path) -> list[str]:
    """Names of a file's columns; errors as `stored`."""
    return [name for name in stored(path).column_names if name != _INDEX]


def _cells(path: str | Path, field: Any, column: Any) -> np.ndarray | Texts:
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_string(kind) or types.is_large_string(kind):
        return Texts([None if cell is None else cell.strip() or None for cell in column.to_pylist()])
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
        wanted = "numbers, booleans or texts; drop=NAME leaves it out"
        raise DataError(path, None, f"column {field.name!r} of type {field.type}", wanted)
    missing = np.asarray(column.is_null())
    with np.errstate(over="ignore"):
        values = np.array([0 if cell is None else cell for cell in column.to_pylist()], dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        wanted = "a finite number, or null where there is none"
        raise DataError(path, int(bad[0]) + 1, f"{values[bad[0]]:g} in column {field.name!r}", wanted)
    values[missing] = np.nan
    return values
