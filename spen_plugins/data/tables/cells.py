"""Named columns of numbers and texts -> a table: what is a yes-no column, a number, a category."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spen_plugins.data.table import Attribute, Table
from spen_plugins.data.text import is_number, shorten
from spen_plugins.errors import DataError

BINARY = ("0", "1")
CATEGORIES = 100
"""Most different texts in a column of categories; one with more is a name or a text, no feature."""
MISSING = frozenset(("", "?"))
"""Cells without a value."""

KEYS = ("id", "uid", "uuid", "index")
"""Names, in any case, of columns that number the rows if their values all differ."""

Known = Mapping[str, tuple[str, ...]]
"""Columns of the training file: name -> a category's values, `BINARY`, or () for a number."""


@dataclass(frozen=True)
class Texts:
    """Cells that are not all numbers; None where one is missing."""

    cells: Sequence[str | None]


def is_key(name: str, cells: Collection[str]) -> bool:
    """True for a column that tells rows apart and nothing else: a usual name, and different texts or whole numbers."""
    is_whole = all(not is_number(cell) or float(cell).is_integer() for cell in cells)
    return name.casefold() in KEYS and is_whole and len({*cells}) == len(cells)


def left_out(name: str) -> str:
    """A note about such a column."""
    return f"column {name!r} is left out: its values all differ"


def table_of(
    path: object,
    columns: Mapping[str, np.ndarray | Texts],
    line: list[int],
    known: Known | None = None,
    unused: Collection[str] = (),
) -> Table:
    """A table of columns.

    A column of 0 and 1 is binary, others of numbers are numeric; texts are categories if there are few of them, else
    of kind text.

    Args:
        path: the file, for messages.
        columns: by name, numbers `(rows,)` with NaN for missing ones, or texts.
        line: `(rows,)` line number of each row.
        known: columns of the training file, if this is another.
        unused: columns that are of kind text, whatever is in them.

    Raises:
        DataError: a cell is not what its column in the training file has, or a text among numbers.
    """
    table = Table(str(path), [], line, np.zeros((len(line), len(columns)), dtype=np.float32))
    assert table.dense is not None
    for at, (name, cells) in enumerate(columns.items()):
        values: tuple[str, ...] | None = ()
        if name in unused:
            values = None
        elif known is not None and name in known:
            values = known[name]
            table.dense[:, at] = _as_known(table, name, cells, values)
        elif isinstance(cells, Texts):
            values = _categories(table, name, cells)
            if values is not None:
                table.dense[:, at] = _codes(table, name, cells, values)
        else:
            table.dense[:, at] = cells
            values = BINARY if _is_binary(cells) else ()
        kind = "text" if values is None else "nominal" if values else "numeric"
        table.attributes.append(Attribute(name, kind, values or (), 1))
    return table


def _is_binary(cells: np.ndarray) -> bool:
    return bool(np.isin(cells, (0, 1)).any() and (np.isin(cells, (0, 1)) | np.isnan(cells)).all())


def _categories(table: Table, name: str, cells: Texts) -> tuple[str, ...] | None:
    """The different texts in order; None if they are too many to be categories.

    Raises:
        DataError: a word among cells that are mostly numbers, or numbers with a decimal comma.
    """
    there = [cell for cell in cells.cells if cell is not None]
    values = sorted(set(there))
    like = {value for value in values if is_number(value.replace(",", ".", 1))}
    mostly = 2 * sum(cell in like for cell in there) > len(there) or 2 * len(like) > len(values)
    row = next((i for i, cell in enumerate(cells.cells) if cell is not None and not is_number(cell)), None)
    if mostly and row is not None:
        cell = cells.cells[row] or ""
        wanted = "numbers, as most of its values are, and an empty cell for a missing one"
        if cell in like:
            wanted = f"numbers with a decimal point, {cell.replace(',', '.', 1)}"
        wanted += "; drop=NAME leaves it out"
        raise DataError(table.path, table.line[row], f"{shorten(cell)} in column {name!r}", wanted)
    return tuple(values) if len(values) <= CATEGORIES else None


def _codes(table: Table, name: str, cells: Texts, values: Sequence[str]) -> np.ndarray:
    place: dict[str | None, float] = {value: float(i) for i, value in enumerate(values)} | {None: np.nan}
    for row, cell in enumerate(cells.cells):
        if cell not in place:
            known = ", ".join(values[:8]) + (", …" if len(values) > 8 else "")
            wanted = f"{known}, as in the training file, or an empty cell"
            raise DataError(table.path, table.line[row], f"{shorten(cell or '')} in column {name!r}", wanted)
    return np.array([place[cell] for cell in cells.cells], dtype=np.float32)


def _as_known(table: Table, name: str, cells: np.ndarray | Texts, values: tuple[str, ...]) -> np.ndarray:
    """The cells as numbers, where the training file has these values."""
    if isinstance(cells, Texts) and values and values != BINARY:
        return _codes(table, name, cells, values)
    wanted = "0 or 1" if values == BINARY else "a number"
    texts = cells
    if isinstance(texts, Texts) and all(cell is None or _is_finite(cell) for cell in texts.cells):
        cells = np.array([np.nan if cell is None else float(cell) for cell in texts.cells])  # of Parquet
    if isinstance(cells, Texts):
        row = next(i for i, cell in enumerate(cells.cells) if cell is not None and not _is_finite(cell))
        found = shorten(cells.cells[row] or "")
    elif values == BINARY and not (np.isin(cells, (0, 1)) | np.isnan(cells)).all():
        row = int(np.flatnonzero(~np.isin(cells, (0, 1)) & ~np.isnan(cells))[0])
        found = f"{cells[row]:g}"
    elif values and values != BINARY:
        row, found, wanted = 0, "numbers only", f"one of {', '.join(values[:8])}"
    else:
        return cells
    raise DataError(table.path, table.line[row], f"{found} in column {name!r}", f"{wanted}, as in the training file")


def _is_finite(cell: str) -> bool:
    return is_number(cell) and math.isfinite(float(cell))
