"""Columns of texts and labels: their places in a file, and the labels in their cells."""

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
"""Names of columns, in any case, that are looked for if no column is given."""


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
        header: if true, the first line names the columns. None: it does if a column is given by name, or one is called
            `text`, `labels` or `label`, or, in CSV with columns given by number, if the cells below show it.
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
    """Columns of a file's texts and labels, with places from 0: names of all columns, None without a header; the place
    of the texts; the place of a column of label names, or the places of columns of 0 and 1 by name, None: not read."""

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
    has_usual_names = layout.has_names or is_header(names)
    is_guessed = (is_named or layout.header is None) and not has_usual_names
    has_header = is_named or (looks_like_header(names, below) if is_guessed else layout.header is not False)
    text, labels = layout.text, layout.labels
    needs_names = has_header and (gold or not is_named or len(names) != 1)
    if layout.is_default and is_guessed and (needs_names or (gold and Path(path).suffix.lower() == ".csv")):
        raise _make_columns_error(path, names, gold)
    if has_header and has_usual_names:
        text, labels = _choose_columns(path, layout, names, gold)
    header = names if has_header else None
    text_place = _find_place(path, text, header, len(names), "text")
    label_places = _find_label_places(path, labels, header, len(names), gold)
    if text_place != label_places:
        return TextColumns(header, text_place, label_places)
    if gold:
        problem = f"both the text and its labels in column {text!r}"
        raise DataError(path, 1, problem, "two different columns, text=NAME and labels=NAME")
    return TextColumns(header, text_place, None)


def _make_columns_error(path: str | Path, names: Sequence[str], gold: bool | None) -> DataError:
    """The error for a file whose columns of text and labels are not given and don't have the usual names."""
    expected, remedy = "a header with a text column named 'text'", "pass text= with its name"
    if gold:
        expected += f" and a label column named {' or '.join(map(repr, LABELS))}"
        remedy = "pass text= and labels= with the column names"
    column_list = f"columns {', '.join(shorten(name)[1:-1] for name in names)}"
    return DataError(path, 1, column_list, f"{expected}; or {remedy}; or task.header=false if there is no header")


def _choose_columns(
    path: str | Path, layout: Layout, names: Sequence[str], gold: bool | None
) -> tuple[int | str, int | str | Sequence[str]]:
    """The columns of text and labels. A column that is not given is found by its usual name, or is the only other one;
    "" for missing labels."""
    for name in layout.drop if gold else ():
        if name not in names:
            expected = f"the column {name!r} of drop= or task.sample_weight=.{did_you_mean(name, names)}"
            raise DataError(path, 1, f"columns {', '.join(names)}", expected)
    candidates = [name for name in names if name not in layout.drop]
    text, labels = layout.text, layout.labels
    if isinstance(labels, str) and labels.endswith("*"):
        labels = [name for name in candidates if name.startswith(labels[:-1])] or labels
    if text == Layout.text:
        text = named_as(candidates, TEXT)
    if labels == Layout.labels:
        labels = named_as(candidates, LABELS)
        if not labels and gold:
            labels = _find_only_other(names, candidates, find_places(text, names))
    if not text:
        text = _find_only_other(names, candidates, find_places(labels, names))
    if not text or (gold and not labels):
        raise _make_columns_error(path, names, gold)
    return text, labels


def _find_only_other(names: Sequence[str], candidates: Sequence[str], used: set[int]) -> int:
    """The number of the only candidate column that is not used; 0 if there is none, or several."""
    numbers = [number for number, name in enumerate(names, 1) if name in candidates and number - 1 not in used]
    return numbers[0] if len(numbers) == 1 else 0


def named_as(names: Sequence[str], allowed_names: Sequence[str]) -> str:
    """The first name that is one of `allowed_names`, in any case; "" without one."""
    return next((name for name in names if name.casefold() in allowed_names), "")


def find_places(column: int | str | Sequence[str], names: Sequence[str]) -> set[int]:
    """Indices, from 0, of the columns that `column` names."""
    if isinstance(column, int):
        return {column - 1}
    if isinstance(column, str) and column.endswith("*"):
        return {index for index, name in enumerate(names) if name.startswith(column[:-1])}
    chosen_names = (column,) if isinstance(column, str) else column
    return {index for index, name in enumerate(names) if name in chosen_names}


def _find_place(path: str | Path, column: int | str, names: Sequence[str] | None, width: int, kind: str) -> int:
    column_list = f"columns {', '.join(names)}" if names else f"{width} column{'s' * (width != 1)}"
    if isinstance(column, int):
        if column > width:
            raise DataError(path, 1, column_list, f"{kind}s in column {column}")
        return column - 1
    if names is None or column not in names:
        raise DataError(path, 1, column_list, f"a {kind} column named {column!r}.{did_you_mean(column, names or ())}")
    return names.index(column)


def _find_label_places(
    path: str | Path, labels: int | str | Sequence[str], names: Sequence[str] | None, width: int, gold: bool | None
) -> int | dict[str, int] | None:
    """The place, or places, of labels; None if they are missing and optional, or are not read."""
    if gold is None or labels == "":
        return None
    if isinstance(labels, (int, str)):
        is_present = labels <= width if isinstance(labels, int) else labels in (names or ())
        return _find_place(path, labels, names, width, "label") if gold or is_present else None
    present = [name for name in labels if name in (names or ())]
    if not present and not gold:
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
            column_name = columns.names[columns.labels] if columns.names else columns.labels + 1
            raise DataError(path, line, f"null in column {column_name!r}", "labels; for none, an empty list or text")
        return None if cell is None else cells.read(line, cell)
    flags = {name: record[index] for name, index in columns.labels.items()}
    values = {name: "" if cell is None else str(cell).strip().casefold() for name, cell in flags.items()}
    if not gold and not any(values.values()):
        return None
    for name, value in values.items():
        if value not in (*TRUE, *FALSE):
            cell = shorten(str(flags[name])) if value else "an empty cell"
            raise DataError(path, line, f"{cell} for label {name!r}", "0 or 1; 0 if the text does not have the label")
    return tuple(name for name, value in values.items() if value in TRUE)


def describe_labels(columns: TextColumns, layout: Layout, gold: bool | None) -> str:
    """The place of the labels, in words, for a note; `gold` as in `find_columns`."""
    if columns.labels is None:
        return "labels not read" if gold is None else "no labels"
    if isinstance(columns.labels, dict):
        return f"{len(columns.labels)} labels as columns of 0 and 1"
    name = columns.names[columns.labels] if columns.names else columns.labels + 1
    return f"labels in column {name!r}, separated by {layout.separator or SEPARATOR!r}"


_MIN_ROWS = 5
"""Minimum number of rows that show a wrong order."""


def check_order(path: Path, rows: Sequence[Row]) -> None:
    """Raise a DataError if texts recur below labels that all differ and are longer: their columns are swapped."""
    texts, labels = [row.text for row in rows], [" ".join(row.labels or ()) for row in rows]
    is_longer = sum(len(cell.split()) for cell in labels) > 3 * sum(len(text.split()) for text in texts)
    is_headed = bool(rows) and rows[0].line > 1
    if not is_headed and len(rows) >= _MIN_ROWS and 2 * len({*texts}) <= len(rows) == len({*labels}) and is_longer:
        expected = "a text and then its labels; or pass text=2 labels=1; or task.header=false if this order is right"
        raise DataError(path, rows[0].line, f"labels before texts, as in {shorten(texts[0])}", expected)
