"""A column of label lists beside the columns of features in CSV and Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spen_plugins.data.csv_rows import find_separator, records
from spen_plugins.data.disk.arrow_cells import read_cells
from spen_plugins.data.disk.shards import column_names, pieces
from spen_plugins.data.formats import PARQUET, Format, read_head
from spen_plugins.data.table import Table
from spen_plugins.data.tables.cells import MISSING
from spen_plugins.data.tables.label_cells import FALSE, TRUE, LabelCells
from spen_plugins.data.text import is_number
from spen_plugins.errors import DataError

_SWITCHES = frozenset((*TRUE, *FALSE, "no", "yes", "f", "t", "n", "y"))


class ListColumn(NamedTuple):
    """A column of label lists; `gold` is None: its labels are not read; false: null is a row without labels; true: it
    is an error."""

    name: str
    separator: str | None = None
    gold: bool | None = True


def holds_lists(path: Path, form: Format, name: str) -> bool:
    """True for a column of names of labels, neither of numbers nor mostly of 0 and 1, or yes and no."""
    cells = [cell for _, cell in _cells(path, form, name) if cell is not None]
    if any(isinstance(cell, list) for cell in cells):
        return True
    filled = [text for cell in cells if (text := cell.strip().casefold()) not in MISSING]
    return 2 * sum(text in _SWITCHES for text in filled) <= len(filled) and not all(map(is_number, filled))


def move_lists(table: Table, path: Path, form: Format, column: ListColumn) -> None:
    """Turn a column of a table, if it is there, into its sets of labels."""
    at = next((i for i, a in enumerate(table.attributes) if a.name == column.name), None)
    if at is None:
        return
    assert table.dense is not None
    table.attributes.pop(at)
    table.dense = np.delete(table.dense, at, 1)
    if column.gold is None:
        return
    cells, table.sets, table.listed = LabelCells(path, column.separator), [], True
    for line, cell in _cells(path, form, column.name):
        if cell is None and column.gold:
            raise DataError(path, line, f"null in column {column.name!r}", "labels; an empty list or text for none")
        table.sets.append(None if cell is None else cells.read(line, cell))
    if column.gold:
        cells.check()


def _cells(path: Path, form: Format, name: str) -> Iterator[tuple[int, Any]]:
    """Line and cell of each row: a text, a list of texts, or None; nothing if there is no such column."""
    if form is PARQUET:
        for piece in pieces(path) if name in column_names(path) else ():
            for number, cell in enumerate(read_cells(path, name, piece.rows.column(name)), piece.first):
                yield number, list(map(str, cell)) if isinstance(cell, list) else None if cell is None else str(cell)
        return
    rows = records(path, find_separator(read_head(path)) or ",")
    names = [cell.strip() for cell in next(rows)[1]]
    if name in names:
        yield from ((line, cells[names.index(name)]) for line, cells in rows)
