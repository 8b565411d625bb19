"""Tables from CSV files, with a header of column names."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from spen_plugins.data.csv_rows import SEPARATORS, records, separator_of
from spen_plugins.data.formats import head_of
from spen_plugins.data.table import Table
from spen_plugins.data.tables.cells import BINARY, KEYS, MISSING, Cells, Known, is_key, table_of
from spen_plugins.data.text import is_number, shorten
from spen_plugins.errors import DataError

_BLOCK = 512  # rows converted at a time: as text they take twenty times the memory
_UNNAMED = ("", "Unnamed: 0")  # how pandas writes the column of row numbers


def read_csv(path: str | Path, known: Known | None = None, unused: Collection[str] = ()) -> Table:
    """Reads a file; empty cells and `?` are missing values.

    A first column without a name, in which pandas writes row numbers, is left out.

    Args:
        path: the file.
        known: columns of the training file, if this is another.
        unused: columns that are not looked at.

    Raises:
        DataError: with the line, what was found and what was expected.
    """
    separator = separator_of(head_of(path))
    if separator is None:
        raise DataError(path, 1, "one column", f"several, separated by {', '.join(SEPARATORS.values())}")
    names = _names(path, next(records(path, separator))[1])
    places = {name: at for at, name in names.items() if name not in unused}
    words, keys = _survey(path, separator, places, known or {})
    unused = {*unused, *keys}
    if known is not None:
        words = {name for name, values in known.items() if values not in ((), BINARY)}
        unused |= places.keys() - known.keys()  # these are for the reader of the table to reject
    columns, line = _read_columns(path, separator, names, words, unused)
    table = table_of(path, columns, line, known, unused)
    table.keys = keys
    return table


def _names(path: str | Path, cells: Sequence[str]) -> dict[int, str]:
    """Names of the columns by their places, without one to leave out."""
    names = {at: cell.strip() for at, cell in enumerate(cells)}
    if all(map(is_number, cells)):
        raise DataError(path, 1, f"numbers in the first line, {shorten(','.join(cells))}", "a header of column names")
    if names[0] in _UNNAMED:
        del names[0]
    if "" in names.values() or len({*names.values()}) < len(names):
        found = f"columns {', '.join(map(repr, names.values()))}"
        raise DataError(path, 1, found, "a header with a name for each column, each once")
    return names


def _blocks(path: str | Path, separator: str) -> Iterator[tuple[list[int], list[tuple[str, ...]]]]:
    """Lines of some rows below the header, and their cells by column, without surrounding blanks."""
    rows = islice(records(path, separator), 1, None)
    while block := list(islice(rows, _BLOCK)):
        columns = zip(*(row for _, row in block), strict=True)
        yield [line for line, _ in block], [tuple(map(str.strip, cells)) for cells in columns]


def _survey(path: str | Path, separator: str, places: dict[str, int], known: Known) -> tuple[set[str], tuple[str, ...]]:
    """Names of the columns with cells that are not numbers, and of those that number the rows."""
    words: set[str] = set()
    usual: dict[str, list[str]] = {name: [] for name in places if name.casefold() in KEYS and name not in known}
    for _, columns in _blocks(path, separator):
        for name, at in places.items():
            if name not in words and not all(cell in MISSING or is_number(cell) for cell in columns[at]):
                words.add(name)
        for name, cells in usual.items():
            cells += columns[places[name]]
    return words, tuple(name for name, cells in usual.items() if is_key(name, cells))


def _read_columns(
    path: str | Path, separator: str, names: dict[int, str], words: Collection[str], unused: Collection[str]
) -> tuple[dict[str, Cells], list[int]]:
    """Columns by name, and line numbers of the rows; unused columns are of zeros."""
    numbers: dict[str, list[np.ndarray]] = {name: [] for name in names.values()}
    texts: dict[str, list[str | None]] = {name: [] for name in words}
    line: list[int] = []
    for lines, columns in _blocks(path, separator):
        line += lines
        for at, name in names.items():
            if name in unused:
                numbers[name].append(np.zeros(len(lines), dtype=np.float32))
            elif name in texts:
                texts[name] += [None if cell in MISSING else cell for cell in columns[at]]
            else:
                numbers[name].append(_numbers(path, lines, name, columns[at]))
    if not line:
        raise DataError(path, 1, "a header alone", "rows below it")
    return {name: texts[name] if not (some := numbers[name]) else np.concatenate(some) for name in names.values()}, line


def _numbers(path: str | Path, lines: Sequence[int], name: str, cells: Sequence[str]) -> np.ndarray:
    """The cells as numbers, `(rows,)` float32 with NaN for missing ones; a DataError if one is no finite number."""
    with np.errstate(over="ignore"):
        values = np.array([_number(cell) for cell in cells], dtype=np.float32)
    if (bad := np.flatnonzero(np.isinf(values))).size:
        wanted = "a finite number, or an empty cell where there is none; drop=NAME leaves it out"
        raise DataError(path, lines[bad[0]], f"{shorten(cells[bad[0]])} in column {name!r}", wanted)
    return values


def _number(cell: str) -> float:
    """A cell's number, NaN where it is missing, infinite where it is none."""
    if cell in MISSING:
        return math.nan
    value = float(cell) if is_number(cell) else math.inf
    return value if math.isfinite(value) else math.inf
