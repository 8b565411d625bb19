"""Columns of texts and their labels: their places in a file, and the labels in their cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.data.records import looks_like_header
from spen_plugins.data.tables.label_cells import FALSE, SEPARATOR, TRUE, LabelCells
from spen_plugins.data.text import shorten
from spen_plugins.errors import DataError, did_you_mean

TEXT = ("text",)
LABELS = ("labels", "label")
"""Names of columns that are looked for where none is given, in any case."""


class Row(NamedTuple):
    """A text, its labels as written (None without their column), the number of its line or row, from 1."""

    text: str
    labels: tuple[str, ...] | None
    line: int


@dataclass(frozen=True)
class Layout:
    """Columns of a file.

    Args:
        text, labels: column numbers from 1, or names in a header; `labels` may be several names, or `tag_*`, of
            columns of 0 and 1.
        separator: separator of a line's labels; None: `SEPARATOR`, which a file for training must have.
        drop: names of columns that are neither.
        header: if true, the first line names the columns; None: if a column is named, or one is called `text`,
            `labels` or `label`, or, of CSV with columns by number, if the cells below it show it.
    """

    text: int | str = 1
    labels: int | str | Sequence[str] = 2
    separator: str | None = None
    header: bool | None = None
    drop: tuple[str, ...] = ()

    @property
    def is_default(self) -> bool:
        """True if neither column is given."""
        return (self.text, self.labels) == (Layout.text, Layout.labels)

    @property
    def has_names(self) -> bool:
        """True if a column is given by its name."""
        return bool(self.drop) or not (isinstance(self.text, int) and isinstance(self.labels, int))


class TextColumns(NamedTuple):
    """Columns of a file's texts and labels, by their places from 0: names of all columns, None without a header; the
    texts' place; the place of a column of names of labels, or of columns of 0 and 1 by their names, None: not read."""

    names: list[str] | None
    text: int
    labels: int | dict[str, int] | None


def is_header(cells: Iterable[str]) -> bool:
    """True if a first record names the text's or the labels' column by one of the usual names."""
    return any(cell.strip().casefold() in (*TEXT, *LABELS) for cell in cells)


def find_columns(
    path: str | Path,
    layout: Layout,
    first: Sequence[str],
    gold: bool | None,
    below: Sequence[Sequence[str]] = (),
    is_named: bool = False,
) -> TextColumns:
    """Columns of texts and labels; without gold the labels' column may be missing, and if `gold` is None, it is not
    read.

    `first` are the cells of the first record, which is the columns' names in a format with `is_named`; the records
    `below` may show that it is a header.
    """
    names = [cell.strip() for cell in first]
    is_usual = layout.has_names or is_header(names)
    is_guessed = (is_named or layout.header is None) and not is_usual
    has_header = is_named or (looks_like_header(names, below) if is_guessed else layout.header is not False)
    text, labels = layout.text, layout.labels
    needs_names = has_header and (gold or not is_named or len(names) != 1)
    if layout.is_default and is_guessed and (needs_names or (gold and Path(path).suffix.lower() == ".csv")):
        raise _open_columns(path, names, gold)
    if has_header and is_usual:
        text, labels = _choose_columns(path, layout, names, gold)
    known = names if has_header else None
    text_place = _find_place(path, text, known, len(names), "text")
    label_places = _label_places(path, labels, known, len(names), gold)
    if text_place != label_places:
        return TextColumns(known, text_place, label_places)
    if gold:
        problem = f"both the text and its labels in column {text!r}"
        raise DataError(path, 1, problem, "two different columns, text=NAME and labels=NAME")
    return TextColumns(known, text_place, None)


def _open_columns(path: str | Path, names: Sequence[str], gold: bool | None) -> DataError:
    """The error of a file whose columns of text and labels are neither given nor have their usual names."""
    wanted, keys = "a header with a text column named 'text'", "pass text= with its name"
    if gold:
        wanted += f" and a label column named {' or '.join(map(repr, LABELS))}"
        keys = "pass text= and labels= with the column names"
    column_list = f"columns {', '.join(shorten(name)[1:-1] for name in names)}"
    return DataError(path, 1, column_list, f"{wanted}; or {keys}; or task.header=false if there is no header")


def _choose_columns(
    path: str | Path, layout: Layout, names: Sequence[str], gold: bool | None
) -> tuple[int | str, int | str | Sequence[str]]:
    """The columns of text and labels, those that are not given by their usual names, or as the only ones left; "" for
    labels that are not there."""
    for name in layout.drop if gold else ():
        if name not in names:
            wanted = f"the column {name!r} of drop= or task.sample_weight=.{did_you_mean(name, names)}"
            raise DataError(path, 1, f"columns {', '.join(names)}", wanted)
    free = [name for name in names if name not in layout.drop]
    text, labels = layout.text, layout.labels
    if isinstance(labels, str) and labels.endswith("*"):
        labels = [name for name in free if name.startswith(labels[:-1])] or labels
    if text == Layout.text:
        text = named_as(free, TEXT)
    if labels == Layout.labels:
        labels = named_as(free, LABELS)
        if not labels and gold:
            labels = _find_only_other(names, free, find_places(text, names))
    if not text:
        text = _find_only_other(names, free, find_places(labels, names))
    if not text or (gold and not labels):
        raise _open_columns(path, names, gold)
    return text, labels


def _find_only_other(names: Sequence[str], free: Sequence[str], taken: set[int]) -> int:
    """The number of the only free column that is not taken; 0 without one."""
    left = [at for at, name in enumerate(names, 1) if name in free and at - 1 not in taken]
    return left[0] if len(left) == 1 else 0


def named_as(names: Sequence[str], wanted: Sequence[str]) -> str:
    """The first name that is one of some, in any case; "" without one."""
    return next((name for name in names if name.casefold() in wanted), "")


def find_places(column: int | str | Sequence[str], names: Sequence[str]) -> set[int]:
    """Indices, from 0, of the columns meant."""
    if isinstance(column, int):
        return {column - 1}
    if isinstance(column, str) and column.endswith("*"):
        return {at for at, name in enumerate(names) if name.startswith(column[:-1])}
    wanted = (column,) if isinstance(column, str) else column
    return {at for at, name in enumerate(names) if name in wanted}


def _find_place(path: str | Path, column: int | str, names: Sequence[str] | None, width: int, what: str) -> int:
    column_list = f"columns {', '.join(names)}" if names else f"{width} column{'s' * (width != 1)}"
    if isinstance(column, int):
        if column > width:
            raise DataError(path, 1, column_list, f"{what}s in column {column}")
        return column - 1
    if names is None or column not in names:
        raise DataError(path, 1, column_list, f"a {what} column named {column!r}.{did_you_mean(column, names or ())}")
    return names.index(column)


def _label_places(
    path: str | Path, labels: int | str | Sequence[str], names: Sequence[str] | None, width: int, gold: bool | None
) -> int | dict[str, int] | None:
    """The place, or places, of labels; None if they are not there and need not be, or are not read."""
    if gold is None or labels == "":
        return None
    if isinstance(labels, (int, str)):
        is_there = labels <= width if isinstance(labels, int) else labels in (names or ())
        return _find_place(path, labels, names, width, "label") if gold or is_there else None
    there = [name for name in labels if name in (names or ())]
    if not there and not gold:
        return None
    return {name: _find_place(path, name, names, width, "label") for name in labels}


def read_labels(
    path: Path, columns: TextColumns, line: int, record: Sequence[Any], gold: bool, cells: LabelCells
) -> tuple[str, ...] | None:
    """Labels of a record, given its line and cells; `cells` reads cells of names.

    Without gold, labels may be missing: a null, and a row that is empty in all columns of 0 and 1, are None.
    """
    if columns.labels is None:
        return None
    if isinstance(columns.labels, int):
        cell = record[columns.labels]
        if cell is None and gold:
            where = columns.names[columns.labels] if columns.names else columns.labels + 1
            raise DataError(path, line, f"null in column {where!r}", "labels; for none, an empty list or text")
        return None if cell is None else cells.read(line, cell)
    switches = {name: record[at] for name, at in columns.labels.items()}
    values = {name: "" if cell is None else str(cell).strip().casefold() for name, cell in switches.items()}
    if not gold and not any(values.values()):
        return None
    for name, value in values.items():
        if value not in (*TRUE, *FALSE):
            cell = shorten(str(switches[name])) if value else "an empty cell"
            raise DataError(path, line, f"{cell} for label {name!r}", "0 or 1; 0 if the text does not have the label")
    return tuple(name for name, value in values.items() if value in TRUE)


def describe_labels(columns: TextColumns, layout: Layout) -> str:
    """The place of the labels, for a note."""
    if columns.labels is None:
        return "no labels"
    if isinstance(columns.labels, dict):
        return f"{len(columns.labels)} labels as columns of 0 and 1"
    name = columns.names[columns.labels] if columns.names else columns.labels + 1
    return f"labels in column {name!r}, separated by {layout.separator or SEPARATOR!r}"


_FEWEST = 5
"""Rows that show it."""


def check_order(path: Path, rows: Sequence[Row]) -> None:
    """Raise a DataError if texts recur below labels that all differ and are longer: their columns are swapped."""
    texts, labels = [row.text for row in rows], [" ".join(row.labels or ()) for row in rows]
    is_longer = sum(len(cell.split()) for cell in labels) > 3 * sum(len(text.split()) for text in texts)
    is_headed = bool(rows) and rows[0].line > 1
    if not is_headed and len(rows) >= _FEWEST and 2 * len({*texts}) <= len(rows) == len({*labels}) and is_longer:
        wanted = "a text and then its labels; or pass text=2 labels=1; or task.header=false if this order is right"
        raise DataError(path, rows[0].line, f"labels before texts, as in {shorten(texts[0])}", wanted)
