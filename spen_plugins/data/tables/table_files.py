"""Tables of features and labels from files of any format, recognised by content; CSV's and Parquet's columns have
names."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spen_plugins.data.disk.shards import check_in_memory, column_names, convert_cell, pieces, read_cells
from spen_plugins.data.formats import ARFF, PARQUET, Format, read_head, recognise
from spen_plugins.data.records import CSV, find_separator, records
from spen_plugins.data.table import BINARY, KEYS, MISSING, Cells, ColumnValues, Table, is_key, make_table
from spen_plugins.data.tables.arff import read_arff
from spen_plugins.data.tables.label_cells import FALSE, TRUE, LabelCells
from spen_plugins.data.tables.libsvm import LIBSVM, read_libsvm
from spen_plugins.data.text import is_number, shorten
from spen_plugins.errors import DataError

_BLOCK = 512  # rows converted at a time: as text they take twenty times the memory
UNNAMED = ("", "Unnamed: 0", "__index_level_0__")  # pandas' names for the column of row numbers

Block = tuple[Sequence[int], Mapping[str, Sequence[str]]]
"""Lines of some rows, and their cells by column."""


def read_named_columns(
    path: Path, form: Format, training_columns: ColumnValues | None = None, unused: Collection[str] = ()
) -> Table:
    """Reads a file; empty cells, `?` and nulls are missing values. A row of Parquet has its number, from 1, as line.

    A first column without a name, in which pandas writes row numbers, is ignored. Arguments and errors are those of
    `read_table`.
    """
    names = _read_names(path, form)
    used_names = [name for name in names if name not in unused]
    text_names, keys = _survey(_read_blocks(path, form, used_names), used_names, training_columns or {})
    unused = {*unused, *keys}
    if training_columns is not None:
        text_names = {name for name, values in training_columns.items() if values not in ((), BINARY)}
        unused |= {*used_names} - training_columns.keys()  # the table's reader rejects these
    columns, line = _read_columns(path, form, [name for name in used_names if name not in unused], text_names)
    if not line:
        raise DataError(path, 1, "no rows", "at least one")
    zeros = np.zeros(len(line), dtype=np.float32)
    table = make_table(path, {name: columns.get(name, zeros) for name in names}, line, training_columns, unused)
    table.keys = keys
    return table


def _read_names(path: Path, form: Format) -> list[str]:
    if form is PARQUET:
        check_in_memory(path)
        return [name for name in column_names(path) if name not in UNNAMED]
    cells = next(records(path, find_separator(read_head(path)) or ","))[1]
    names = [cell.strip() for cell in cells]
    if all(map(is_number, cells)):
        raise DataError(path, 1, f"numbers in the first line, {shorten(','.join(cells))}", "a header of column names")
    header = names[1:] if names[0] in UNNAMED else names
    if "" in header or len({*header}) < len(header):
        column_list = f"columns {', '.join(map(repr, header))}"
        raise DataError(path, 1, column_list, "a header with a different name for each column")
    return header


def _read_blocks(path: Path, form: Format, names: Sequence[str]) -> Iterator[Block]:
    """Cells of some columns, without surrounding blanks; "" for a null."""
    if form is PARQUET:
        for first, rows in pieces(path):
            columns = {name: _read_texts(path, name, rows.column(name)) for name in names}
            yield range(first, first + len(rows)), columns
        return
    rows = records(path, find_separator(read_head(path)) or ",")
    header = [cell.strip() for cell in next(rows)[1]]
    places = [header.index(name) for name in names]
    while block := list(islice(rows, _BLOCK)):
        cells = [[row[place].strip() for _, row in block] for place in places]
        yield [line for line, _ in block], dict(zip(names, cells, strict=True))


def _read_texts(path: Path, name: str, column: Any) -> list[str]:
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    type_checks = (types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_decimal)
    if types.is_boolean(kind):
        return ["" if cell is None else str(int(cell)) for cell in read_cells(path, name, column)]
    if not any(has_type(kind) for has_type in type_checks):
        expected = f"numbers, booleans or texts; drop={name} ignores the column"
        raise DataError(path, None, f"column {name!r} of type {column.type}", expected)
    return ["" if cell is None else str(cell).strip() for cell in read_cells(path, name, column)]


def _survey(
    blocks: Iterable[Block], names: Sequence[str], training_columns: ColumnValues
) -> tuple[set[str], tuple[str, ...]]:
    """Names of the columns with cells that are not numbers, and of the columns that number the rows."""
    text_names: set[str] = set()
    key_cells: dict[str, list[str]] = {
        name: [] for name in names if name.casefold() in KEYS and name not in training_columns
    }
    for _, columns in blocks:
        for name in names:
            if name not in text_names and not all(cell in MISSING or is_number(cell) for cell in columns[name]):
                text_names.add(name)
        for name, cells in key_cells.items():
            cells += columns[name]
    return text_names, tuple(name for name, cells in key_cells.items() if is_key(name, cells))


def _read_columns(
    path: Path, form: Format, names: Sequence[str], text_names: Collection[str]
) -> tuple[dict[str, Cells], list[int]]:
    numbers: dict[str, list[np.ndarray]] = {name: [] for name in names if name not in text_names}
    texts: dict[str, list[str | None]] = {name: [] for name in names if name in text_names}
    line: list[int] = []
    for lines, columns in _read_blocks(path, form, names):
        line += lines
        for name, blocks in numbers.items():
            blocks.append(_parse_numbers(path, lines, name, columns[name]))
        for name, cells in texts.items():
            cells += [None if cell in MISSING else cell for cell in columns[name]]
    return texts | {name: np.concatenate(blocks) for name, blocks in numbers.items() if blocks}, line


def _parse_numbers(path: Path, lines: Sequence[int], name: str, cells: Sequence[str]) -> np.ndarray:
    """The cells as numbers, `(rows,)` float32 with NaN for missing ones; a DataError if one is not a finite number."""
    with np.errstate(over="ignore"):
        values = np.array([_parse_number(cell) for cell in cells], dtype=np.float32)
    if (invalid_rows := np.flatnonzero(np.isinf(values))).size:
        expected = f"a finite number, or an empty cell if it is missing; drop={name} ignores the column"
        raise DataError(path, lines[invalid_rows[0]], f"{shorten(cells[invalid_rows[0]])} in column {name!r}", expected)
    return values


def _parse_number(cell: str) -> float:
    """A cell's number; NaN if it is missing, infinite if it is not a finite number."""
    if cell in MISSING:
        return math.nan
    value = float(cell) if is_number(cell) else math.inf
    return value if math.isfinite(value) else math.inf


_FLAGS = frozenset((*TRUE, *FALSE, "no", "yes", "f", "t", "n", "y"))


class ListColumn(NamedTuple):
    """A column of label lists. If `gold` is None, its labels are not read; if false, a null is a row without gold; if
    true, a null is an error."""

    name: str
    separator: str | None = None
    gold: bool | None = True


def holds_lists(path: Path, form: Format, name: str) -> bool:
    """True for a column of label names; false for numbers, and for cells that are mostly 0 and 1, or yes and no."""
    cells = [cell for _, cell in _read_column(path, form, name) if cell is not None]
    if any(isinstance(cell, list) for cell in cells):
        return True
    filled = [text for cell in cells if (text := cell.strip().casefold()) not in MISSING]
    return 2 * sum(text in _FLAGS for text in filled) <= len(filled) and not all(map(is_number, filled))


def move_lists(table: Table, path: Path, form: Format, column: ListColumn) -> None:
    """Turn a column of a table, if it exists, into the table's sets of labels."""
    index = next((i for i, a in enumerate(table.attributes) if a.name == column.name), None)
    if index is None:
        return
    assert table.dense is not None
    table.attributes.pop(index)
    table.dense = np.delete(table.dense, index, 1)
    if column.gold is None:
        return
    cells, table.sets, table.listed = LabelCells(path, column.separator), [], True
    for line, cell in _read_column(path, form, column.name):
        if cell is None and column.gold:
            raise DataError(path, line, f"null in column {column.name!r}", "labels; for none, an empty list or text")
        table.sets.append(None if cell is None else cells.read(line, cell))
    if column.gold:
        cells.check()


def _read_column(path: Path, form: Format, name: str) -> Iterator[tuple[int, Any]]:
    """Line and cell of each row: a text, a list of texts, or None; no rows if there is no such column."""
    if form is PARQUET:
        for first, rows in pieces(path) if name in column_names(path) else ():
            for number, cell in enumerate(read_cells(path, name, rows.column(name)), first):
                yield number, convert_cell(cell)
        return
    rows = records(path, find_separator(read_head(path)) or ",")
    names = [cell.strip() for cell in next(rows)[1]]
    if name in names:
        yield from ((line, cells[names.index(name)]) for line, cells in rows)


FORMATS = (PARQUET, ARFF, LIBSVM, CSV)


def read_table(
    path: str | Path,
    training_columns: ColumnValues | None = None,
    unused: Collection[str] = (),
    lists: ListColumn | None = None,
) -> Table:
    """Read a file in the format that it looks like; its name is `Table.format`.

    `training_columns` are the training file's, if this is another file and its header does not have their kinds (all
    formats but ARFF). `lists` is the column of label lists, which becomes the table's sets of labels.
    """
    form = recognise(path, FORMATS)
    if form is ARFF:
        table = read_arff(path)
    elif form is LIBSVM:
        table = read_libsvm(path, training_columns)
    else:
        list_names = [] if lists is None else [lists.name]
        table = read_named_columns(Path(path), form, training_columns, [*unused, *list_names])
        if lists is not None:
            move_lists(table, Path(path), form, lists)
    table.format = form.name
    return table


def list_column(path: Path, labels: Any, separator: str | None) -> ListColumn | None:
    """The column of label lists that a setting `labels` names; None if it names columns of 0 and 1, or no column."""
    if not isinstance(labels, str) or labels.endswith("*"):
        return None
    form = recognise(path, FORMATS)
    return ListColumn(labels, separator) if form in (CSV, PARQUET) and holds_lists(path, form, labels) else None
