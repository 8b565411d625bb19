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
from spen_plugins.data.tables.cells import BINARY, KEYS, MISSING, Known, Texts, is_key, table_of
from spen_plugins.data.text import is_number, shorten
from spen_plugins.errors import DataError

_BLOCK = 512  # rows converted at a time: as text they take twenty times the memory
_UNNAMED = ("", "Unnamed: 0")  # how pandas writes the column of row numbers


def read_csv(path: str | Path, known: Known | None = None, unused: Collection[str] = ()) -> Table:
    """Read a file; empty cells and `?` are missing values.

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
    keys = _keys(path, separator, known or {})
    unused = {*unused, *keys}
    texts = {name for name, values in (known or {}).items() if values and values != BINARY}
    columns, line, more = _columns(path, separator, texts, unused)
    if more and known is None:  # a number, until a later row has a word: read once more, as text
        columns, line, _ = _columns(path, separator, texts | more, unused)
    table = table_of(path, columns, line, known, unused)
    table.keys = keys
    return table


def _keys(path: str | Path, separator: str, known: Known) -> tuple[str, ...]:
    """Names of the columns that number the rows."""
    rows = records(path, separator)
    names = list(enumerate(_names(path, next(rows)[1])))
    places = {name: at for at, name in names if name and name.casefold() in KEYS and name not in known}
    cells = [[row[at].strip() for at in places.values()] for _, row in rows] if places else []
    return tuple(name for i, name in enumerate(places) if is_key(name, [row[i] for row in cells]))


def _columns(
    path: str | Path, separator: str, texts: Collection[str], unused: Collection[str]
) -> tuple[dict[str, np.ndarray | Texts], list[int], set[str]]:
    """Columns by name, line numbers of the rows, and the names of columns with cells that are not numbers."""
    rows = records(path, separator)
    names = _names(path, next(rows)[1])
    kept = [(at, name) for at, name in enumerate(names) if name is not None]
    numbers: dict[str, list[np.ndarray]] = {name: [] for _, name in kept}
    words: dict[str, list[str | None]] = {name: [] for _, name in kept}
    found: set[str] = set()
    line: list[int] = []
    for block in _blocks(rows):
        lines = [start for start, _ in block]
        cells = list(zip(*(row for _, row in block), strict=True))
        line += lines
        for at, name in kept:
            if name in unused:
                continue
            if name in texts or name in found:
                words[name] += [None if cell.strip() in MISSING else cell.strip() for cell in cells[at]]
            elif (values := _numbers(path, lines, name, cells[at])) is None:
                found.add(name)
                words[name] = [None] * (len(line) - len(lines))
                words[name] += [None if cell.strip() in MISSING else cell.strip() for cell in cells[at]]
            else:
                numbers[name].append(values)
    if not line:
        raise DataError(path, 1, "a header alone", "rows below it")
    columns: dict[str, np.ndarray | Texts] = {}
    for _, name in kept:
        if name in unused:
            columns[name] = np.zeros(len(line), dtype=np.float32)
        elif name in texts or name in found:
            columns[name] = Texts(words[name])
        else:
            columns[name] = np.concatenate(numbers[name])
    return columns, line, found


def _blocks(rows: Iterator[tuple[int, list[str]]]) -> Iterator[list[tuple[int, list[str]]]]:
    while block := list(islice(rows, _BLOCK)):
        yield block


def _names(path: str | Path, cells: Sequence[str]) -> list[str | None]:
    """Names of the columns; None for one to leave out."""
    names: list[str | None] = [cell.strip() for cell in cells]
    if all(is_number(cell) for cell in cells):
        raise DataError(path, 1, f"numbers in the first line, {shorten(','.join(cells))}", "a header of column names")
    if names[0] in _UNNAMED:
        names[0] = None
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name is not None and (not name or name in seen):
            found = f"column {name!r} twice" if name else f"no name of column {at + 1}"
            raise DataError(path, 1, found, "a header with a name for each column, each once")
        seen.add(name or "")
    return names


def _numbers(path: str | Path, lines: Sequence[int], name: str, cells: Sequence[str]) -> np.ndarray | None:
    """The cells as numbers, `(rows,)` float32 with NaN for missing ones; None if one is a word.

    Raises:
        DataError: NaN or infinity.
    """
    try:
        found = [math.nan if cell.strip() in MISSING else float(cell) for cell in cells]
    except ValueError:
        return None
    with np.errstate(over="ignore"):
        values = np.array(found, dtype=np.float32)
    if not np.isfinite(values).all():
        for row in np.flatnonzero(~np.isfinite(values)).tolist():
            if cells[row].strip() not in MISSING:
                wanted = "a finite number, or an empty cell where there is none; drop=NAME leaves it out"
                raise DataError(path, lines[row], f"{shorten(cells[row])} in column {name!r}", wanted)
    return values
