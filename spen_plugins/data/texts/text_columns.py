"""Columns of texts and their labels: which of a file's they are, and the labels in their cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.data.tables.label_cells import FALSE, SEPARATOR, TRUE, LabelCells
from spen_plugins.data.text import is_number, shorten
from spen_plugins.errors import DataError, did_you_mean

TEXT = ("text",)
LABELS = ("labels", "label")
"""Names of columns that are looked for where none is given, in any case."""

_NAME = re.compile(r"[^\W\d]\w*([ ._/-]\w+){0,2}")  # is_joy, Review Text


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
        header: if true, the first line names the columns; None: if a column is named, or one is called
            `text`, `labels` or `label`, or, of CSV with columns by number, if the cells below it show it.
    """

    text: int | str = 1
    labels: int | str | Sequence[str] = 2
    separator: str | None = None
    header: bool | None = None
    drop: tuple[str, ...] = ()


def is_header(cells: Sequence[str]) -> bool:
    """Whether a first record names the text's or the labels' column by one of the usual names."""
    return any(cell.strip().casefold() in (*TEXT, *LABELS) for cell in cells)


def looks_like_header(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first record without usual names is a header all the same, by the records below it.

    Its cells are different names that don't recur in their columns, and there is a column of numbers, or of texts most
    of which have more words than its name. The first cell may be empty, as over a table's index.
    """
    columns = list(zip(*below, strict=False))
    named = names[1:] if not names[0] else names
    if not (columns and named and all(map(_NAME.fullmatch, named)) and len({*named}) == len(named)):
        return False
    if any(name and name in map(str.strip, cells) for name, cells in zip(names, columns, strict=False)):
        return False
    return any(_differs(name, cells) for name, cells in zip(names, columns, strict=False))


def _differs(name: str, cells: Sequence[str]) -> bool:
    """Whether cells are numbers, or most have more words than the name above them."""
    filled = [cell for cell in cells if cell.strip()]
    longer = sum(len(cell.split()) > len(name.split()) for cell in filled)
    return bool(filled) and (all(map(is_number, filled)) or (name != "" and 2 * longer > len(filled)))


def settle(
    path: str | Path,
    layout: Layout,
    first: Sequence[str],
    gold: bool | None,
    below: Sequence[Sequence[str]] = (),
    named: bool = False,
) -> tuple[list[str] | None, Layout]:
    """Which columns text and labels are in.

    Args:
        path: the file.
        layout: its columns as given; those that are not are looked for in the header.
        first: cells of the first record.
        gold: if false, the labels' column, `""`, may be missing.
        below: cells of some records after it, which may show that it is a header; none of a format without headers.
        named: if true, the first record is the columns' names, as in every file of the format.

    Returns:
        The names of the columns, None without a header, and the layout with the columns found.

    Raises:
        DataError: the header leaves open which column it is, or text and labels are in the same one; or columns are
            not given, and a header, or the first line of a file named .csv with gold, has no usual name.
    """
    names = [cell.strip() for cell in first]
    given = bool(layout.drop) or not (isinstance(layout.text, int) and isinstance(layout.labels, int))
    usual = given or is_header(names)
    guessed = (named or layout.header is None) and not usual
    headed = named or (looks_like_header(names, below) if guessed else layout.header is not False)
    text, labels = layout.text, layout.labels
    alone = named and len(names) == 1 and not gold
    needed = (headed and not alone) or (gold and Path(path).suffix.lower() == ".csv")
    if guessed and needed and (text, labels) == (Layout.text, Layout.labels):
        raise _unusual(path, names, gold, named)
    if isinstance(labels, str) and labels.endswith("*") and layout.drop:
        labels = [name for name in names if name.startswith(labels[:-1]) and name not in layout.drop] or labels
    if headed and usual:
        dropped = _dropped(path, names, layout.drop, gold)
        free = [name for name in names if name not in layout.drop]
        if text == Layout.text:
            text = named_as(free, TEXT)
        if labels == Layout.labels:
            labels = named_as(free, LABELS)
        if not labels and gold:
            labels = _other(path, names, places_of(text, names) | dropped, "label")
        if not text:
            text = _other(path, names, places_of(labels, names) | dropped, "text")
    if places_of(text, names) & places_of(labels, names):
        if gold:
            where = names[min(places_of(text, names))] if headed and usual else text
            found = f"both the text and its labels in column {where!r}"
            raise DataError(path, 1, found, "two columns, text=NAME and labels=NAME")
        labels = ""
    return names if headed else None, replace(layout, text=text, labels=labels)


def _dropped(path: str | Path, names: Sequence[str], drop: Sequence[str], gold: bool | None) -> set[int]:
    """Indices of the columns that are not used; with gold, as a file for training has it, all are there."""
    for name in drop if gold else ():
        if name not in names:
            wanted = f"the column {name!r} of drop= or task.sample_weight=.{did_you_mean(name, names)}"
            raise DataError(path, 1, f"columns {', '.join(names)}", wanted)
    return {at for at, name in enumerate(names) if name in drop}


def _unusual(path: str | Path, names: Sequence[str], gold: bool, named: bool) -> DataError:
    """A first record without usual names, where no columns are given."""
    header = "" if named else "a header with "
    wanted, keys = f"{header}a text column named 'text'", "text="
    if gold:
        wanted += f" and a label column named {' or '.join(map(repr, LABELS))}"
        keys += " and labels="
    whose = "the names of the columns" if gold else "its name"
    found = f"columns {', '.join(shorten(name)[1:-1] for name in names)}"
    unheaded = "" if named else "; or task.header=false if it is no header"
    return DataError(path, None if named else 1, found, f"{wanted}; or {keys} with {whose}{unheaded}")


def named_as(names: Sequence[str], wanted: Sequence[str]) -> str:
    """The first name that is one of some, in any case; "" without one."""
    return next((name for name in names if name.casefold() in wanted), "")


def places_of(column: int | str | Sequence[str], names: Sequence[str]) -> set[int]:
    """Indices, from 0, of the columns meant."""
    if isinstance(column, int):
        return {column - 1}
    if isinstance(column, str) and column.endswith("*"):
        return {at for at, name in enumerate(names) if name.startswith(column[:-1])}
    wanted = (column,) if isinstance(column, str) else column
    return {at for at, name in enumerate(names) if name in wanted}


def _other(path: str | Path, names: Sequence[str], taken: set[int], what: str) -> int:
    """The number of the only column that is not taken."""
    left = [at for at in range(len(names)) if at not in taken]
    if len(left) != 1:
        usual, key = (" or ".join(map(repr, LABELS)), "labels=") if what == "label" else (repr(*TEXT), "text=")
        wanted = f"a {what} column named {usual}, or {key} with the name of one of them"
        raise DataError(path, 1, f"columns {', '.join(names)}", wanted)
    return left[0] + 1


def column_of(path: str | Path, column: int | str, names: list[str] | None, what: str) -> int:
    """A column's index, from 0."""
    if isinstance(column, int):
        if names is not None and column > len(names):
            raise DataError(path, 1, f"columns {', '.join(names)}", f"{what}s in column {column}")
        return column - 1
    if names is None or column not in names:
        near = did_you_mean(column, names or ())
        found = "no header" if names is None else f"columns {', '.join(names)}"
        raise DataError(path, 1, found, f"a {what} column named {column!r}.{near}")
    return names.index(column)


def _no_switch(path: Path, line: int, name: str, cell: Any, may_be_empty: bool) -> DataError:
    """A cell for a label that is neither 0 nor 1."""
    if cell is not None and str(cell).strip():
        return DataError(path, line, f"{shorten(str(cell))} for label {name!r}", "0 or 1")
    found = "null" if cell is None else "an empty cell"
    wanted = "0 or 1, or nothing for any label of the row" if may_be_empty else "0 or 1"
    return DataError(path, line, f"{found} for label {name!r}", f"{wanted}; 0 where the text doesn't have the label")


def label_reader(
    path: Path, layout: Layout, names: list[str] | None, gold: bool | None, label_cells: LabelCells
) -> tuple[Callable[[int, Sequence[Any]], tuple[str, ...] | None], str]:
    """Reads the labels of a row, given its line and cells, None if these end before; and where they are, in words.

    Args:
        path: the file.
        layout: settled.
        names: of the columns; None without a header.
        gold: if false, labels may be missing: a null, and a row that is empty in all columns of 0 and 1, are None.
        label_cells: reads cells of names.
    """
    labels = layout.labels
    if isinstance(labels, str) and labels.endswith("*"):
        labels = [name for name in names or () if name.startswith(labels[:-1])] or labels
    if isinstance(labels, (list, tuple)):
        missing = [name for name in labels if name not in (names or ())]
        if missing and (gold or len(missing) < len(labels)):
            near = did_you_mean(missing[0], names or ())
            raise DataError(path, 1, f"columns {', '.join(names or ())}", f"a label column named {missing[0]!r}.{near}")
        if missing:
            return lambda line, cells: None, "no labels"
        places = [(name, (names or []).index(name)) for name in labels]

        def switched(line: int, cells: Sequence[Any]) -> tuple[str, ...] | None:
            found = {name: "" if cells[at] is None else str(cells[at]).strip().casefold() for name, at in places}
            if not gold and not any(found.values()):
                return None
            for name, at in places:
                if found[name] not in (*TRUE, *FALSE):
                    raise _no_switch(path, line, name, cells[at], not gold)
            return tuple(name for name, value in found.items() if value in TRUE)

        return switched, f"{len(places)} labels as columns of 0 and 1"
    absent = labels not in (names or ()) if isinstance(labels, str) else names is not None and labels > len(names)
    if not gold and absent:
        return lambda line, cells: None, "no labels"
    at = column_of(path, labels, names, "label")

    def listed(line: int, row: Sequence[Any]) -> tuple[str, ...] | None:
        if at < len(row) and row[at] is not None:
            return label_cells.read(line, row[at])
        if gold:
            where = names[at] if names else at + 1
            raise DataError(path, line, f"null in column {where!r}", "labels; an empty list or text for none")
        return None

    where = f"labels in column {names[at] if names else at + 1!r}"
    return listed, f"{where}, separated by {layout.separator or SEPARATOR!r}"
