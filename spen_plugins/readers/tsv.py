"""Texts with labels, one per line in tab-separated columns; and lists of label names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from spen_plugins.errors import DataError, did_you_mean
from spen_plugins.readers.text import read_lines, shorten

TEXT = ("text",)
LABELS = ("labels", "label")
"""Names of columns that are looked for where none is given, in any case."""


class Row(NamedTuple):
    """One line: its text, its labels as written (None without their column), its number from 1."""

    text: str
    labels: tuple[str, ...] | None
    line: int


@dataclass(frozen=True)
class Layout:
    """Columns of a file.

    Args:
        text, labels: column numbers from 1, or names in a header; of CSV files `labels` may be several names, or
            `tag_*`, of columns of 0 and 1.
        separator: separator of a line's labels.
        header: if true, the first line names the columns; None: if a column is named, or one is called
            `text`, `labels` or `label`.
    """

    text: int | str = 1
    labels: int | str | Sequence[str] = 2
    separator: str = ","
    header: bool | None = None


def read_tsv(path: str | Path, layout: Layout, gold: bool = True) -> list[Row]:
    """Rows of a UTF-8 file without quoting: all text between two tabs is a column's value.

    Args:
        path: the file.
        layout: its columns.
        gold: if true, every line must have labels; otherwise a line may end before their column.

    Raises:
        DataError: a line is blank or lacks a column, or the header lacks a name.
    """
    lines = read_lines(path)
    names, layout = settle(path, layout, lines[0].split("\t"), gold)
    named = names is not None
    text = column_of(path, layout.text, names, "text")
    labels = column_of(path, layout.labels, names, "label") if gold or _known(layout.labels, names) else None
    needed = max(text, labels) if gold and labels is not None else text
    rows = []
    for number, line in enumerate(lines[named:], 1 + named):
        fields = line.split("\t")
        if len(fields) <= needed or not line.strip():
            found = f"{len(fields)} columns in {shorten(line)}" if line.strip() else "a blank line"
            raise DataError(path, number, found, f"at least {needed + 1} columns divided by tabs")
        found = None if labels is None or len(fields) <= labels else fields[labels]
        rows.append(Row(fields[text], None if found is None else split_labels(found, layout.separator), number))
    return rows


def read_names(path: str | Path) -> list[str]:
    """Label names, one per line, in the order of their numbers.

    Raises:
        DataError: a line is blank, or a name occurs twice.
    """
    names = [line.strip() for line in read_lines(path)]
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name or name in seen:
            found = f"label {name!r} again, as in line {seen[name]}" if name else "a blank line"
            raise DataError(path, number, found, "one label name a line, each once")
        seen[name] = number
    return names


def is_header(cells: Sequence[str]) -> bool:
    """Whether a first record names the text's or the labels' column by one of the usual names."""
    return any(cell.strip().casefold() in (*TEXT, *LABELS) for cell in cells)


def settle(path: str | Path, layout: Layout, first: Sequence[str], gold: bool) -> tuple[list[str] | None, Layout]:
    """Which columns a TSV or CSV file's text and labels are in.

    Args:
        path: the file.
        layout: its columns as given; those that are not are looked for in the header.
        first: cells of the first record.
        gold: if false, the labels' column, `""`, may be missing.

    Returns:
        The names of the columns, None without a header, and the layout with the columns found.

    Raises:
        DataError: the header leaves open which column it is, or text and labels are in the same one.
    """
    names = [cell.strip() for cell in first]
    given = not (isinstance(layout.text, int) and isinstance(layout.labels, int))
    headed = layout.header is not False and (bool(layout.header) or given or is_header(names))
    text, labels = layout.text, layout.labels
    if headed and (given or is_header(names)):
        if text == Layout.text:
            text = named_as(names, TEXT)
        if labels == Layout.labels:
            labels = named_as(names, LABELS)
        if not labels and gold:
            labels = _other(path, names, places_of(text, names), "label")
        if not text:
            text = _other(path, names, places_of(labels, names), "text")
    if places_of(text, names) & places_of(labels, names):
        if gold:
            where = names[min(places_of(text, names))] if headed else text
            found = f"both the text and its labels in column {where!r}"
            raise DataError(path, 1, found, "two columns, task.text_column and task.label_column")
        labels = ""
    return names if headed else None, replace(layout, text=text, labels=labels)


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
        usual = " or ".join(map(repr, LABELS if what == "label" else TEXT))
        wanted = f"a {what} column named {usual}, or task.{what}_column with the name of one of them"
        raise DataError(path, 1, f"columns {', '.join(names)}", wanted)
    return left[0] + 1


def column_of(path: str | Path, column: int | str | Sequence[str], names: list[str] | None, what: str) -> int:
    """A column's index, from 0."""
    if isinstance(column, int):
        return column - 1
    if not isinstance(column, str):
        raise DataError(path, 1, "a TSV file", f"a CSV file, where labels are columns of 0 and 1: {', '.join(column)}")
    if names is None or column not in names:
        near = did_you_mean(column, names or ())
        found = "no header" if names is None else f"columns {', '.join(names)}"
        raise DataError(path, 1, found, f"a {what} column named {column!r}.{near}")
    return names.index(column)


def _known(column: int | str | Sequence[str], names: list[str] | None) -> bool:
    return isinstance(column, int) or column in (names or ())


def split_labels(field: str, separator: str) -> tuple[str, ...]:
    """The labels of a cell, without surrounding blanks."""
    return tuple(label.strip() for label in field.split(separator)) if field.strip() else ()
