"""Tables from Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from spen_plugins.data.table import Table
from spen_plugins.data.tables.cells import KEYS, Cells, Known, is_key, table_of
from spen_plugins.data.text import check_size
from spen_plugins.errors import ConfigError, DataError

_INDEX = "__index_level_0__"  # how pandas writes the column of row numbers
MOST_CELLS = 1 << 30
"""Most cells of a file that is kept in memory."""


def read_parquet(path: str | Path, known: Known | None = None, unused: Collection[str] = ()) -> Table:
    """Reads a file; nulls are missing values. A row's line is its number, from 1.

    Args:
        path: the file.
        known: columns of the training file, if this is another.
        unused: columns that are not looked at.

    Raises:
        ConfigError: pyarrow is not installed.
        DataError: with the row, what was found and what was expected.
    """
    stored = read_columns(path)
    if not stored.num_rows:
        raise DataError(path, None, "no rows", "at least one")
    names = [name for name in stored.column_names if name != _INDEX]
    check_valid(path, stored.select([name for name in names if name not in unused]))
    usual = [name for name in names if name.casefold() in KEYS and name not in (known or {}) and name not in unused]
    keys = tuple(name for name in usual if is_key(name, list(map(str, cells_of(path, name, stored.column(name))))))
    unused = {*unused, *keys}
    columns: dict[str, Cells] = {}
    for name in names:
        is_used = name not in unused
        columns[name] = _cells(path, name, stored.column(name)) if is_used else np.zeros(stored.num_rows, np.float32)
    table = table_of(path, columns, list(range(1, stored.num_rows + 1)), known, unused)
    table.keys = keys
    return table


def read_columns(path: str | Path) -> Any:
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
    """The cells of a valid column; a DataError if they have values that Python lacks, such as times after 9999."""
    try:
        return column.to_pylist()
    except (ValueError, OverflowError, LookupError) as error:
        found = f"values in column {name!r} of type {column.type} that can't be read ({error})"
        raise DataError(path, None, found, "texts, numbers, or lists of them") from None


def _cells(path: str | Path, name: str, column: Any) -> Cells:
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_string(kind) or types.is_large_string(kind):
        return [None if cell is None else cell.strip() or None for cell in column.to_pylist()]
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
        wanted = "numbers, booleans or texts; drop=NAME leaves it out"
        raise DataError(path, None, f"column {name!r} of type {column.type}", wanted)
    missing = np.asarray(column.is_null())
    with np.errstate(over="ignore"):
        values = np.array([0 if cell is None else cell for cell in column.to_pylist()], dtype=np.float32)
    if (bad := np.flatnonzero(~np.isfinite(values))).size:
        wanted = "a finite number, or null where there is none"
        raise DataError(path, int(bad[0]) + 1, f"{values[bad[0]]:g} in column {name!r}", wanted)
    values[missing] = np.nan
    return values
