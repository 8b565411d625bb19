"""Texts with labels from files of any of several formats, recognised by content."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.data.csv_rows import CSV, SEPARATORS, records, separator_of
from spen_plugins.data.disk.shards import check_in_memory, column_names, of_shards, pieces, shards
from spen_plugins.data.formats import JSON_LINES, PARQUET, Format, Head, head_of, one_of
from spen_plugins.data.jsonl import read_json_lines
from spen_plugins.data.tables.label_cells import SEPARATOR, LabelCells
from spen_plugins.data.tables.parquet import cells_of
from spen_plugins.data.text import read_lines, shorten
from spen_plugins.data.texts.column_order import check_order
from spen_plugins.data.texts.fasttext import FASTTEXT, read_fasttext
from spen_plugins.data.texts.text_columns import (
    LABELS,
    TEXT,
    Layout,
    Row,
    column_of,
    is_header,
    label_reader,
    looks_like_header,
    named_as,
    places_of,
    settle,
)
from spen_plugins.errors import DataError

_FORM = '{"text": "What a day!", "labels": ["joy"]}'
_LOOKED_AT = 50


class TextFile(NamedTuple):
    """A file's rows, and what it was recognised as."""

    rows: list[Row]
    said: str


def _is_tsv(head: Head) -> bool:
    some = head.filled[:_LOOKED_AT]
    quoted = all(cell[:1] == cell[-1:] == '"' for line in some for cell in line.split("\t"))  # CSV, then
    return not quoted and 2 * sum("\t" in line for line in some) > len(some)


def _is_csv(head: Head) -> bool:
    separator = separator_of(head)
    if separator is None:
        return False
    commas = [line.count(separator) for line in head.filled[:_LOOKED_AT]]
    return (
        len(set(commas)) == 1
        or '"' in head.data.decode("utf-8", "replace")
        or is_header(head.lines[0].split(separator))
    )


def _one_column(head: Head) -> tuple[str, list[str]]:
    """The cells of CSV of one column, and a separator that none of them has without quotes; commas and no cell of
    anything else."""
    for separator in SEPARATORS:
        try:
            records = [cells for cells in csv.reader(head.lines, delimiter=separator, strict=head.whole) if cells]
        except csv.Error:
            continue
        if all(len(cells) == 1 for cells in records):
            return separator, [cell.strip() for [cell] in records]
    return ",", []


def _cells(head: Head, form: Format) -> list[list[str]]:
    """The cells of the first lines of TSV or CSV without a header; none below one."""
    lines = head.filled[:_LOOKED_AT]
    if form is TSV:
        rows = [line.split("\t") for line in lines]
    else:
        rows = list(csv.reader(lines, delimiter=separator_of(head) or ","))
    return [] if is_header(rows[0]) or looks_like_header(rows[0], rows[1:]) else rows


def _is_one_column(head: Head, layout: Layout) -> bool:
    """Whether a file without separators is CSV: its header names the text, or it is named .csv and has a header or
    quoted cells."""
    _, cells = _one_column(head)
    first = (cells or [line.strip() for line in head.filled] or [""])[0]
    if layout.header is not False and (first == layout.text or first.casefold() in TEXT):
        return True
    if head.path.suffix.lower() != ".csv" or not cells:
        return False
    quoted = any(line.startswith('"') for line in head.lines)
    return bool(layout.header) or quoted or looks_like_header(cells[:1], [[cell] for cell in cells[1:]])


def _are_lines(head: Head, layout: Layout) -> bool:
    """Whether what looks like CSV without a header may as well be a text a line, with a comma in each."""
    if head.path.suffix.lower() == ".csv" or layout.header or isinstance(layout.text, str):
        return False
    quoted = '"' in head.data.decode("utf-8", "replace")
    names = [cell.strip() for cell in head.lines[0].split(separator_of(head))]
    return not (quoted or is_header(names) or (not isinstance(layout.labels, int) and places_of(layout.labels, names)))


def is_libmultilabel(head: Head) -> bool:
    """Three cells a line, the first a word that no other line has, the last mostly of several words; no header."""
    rows = [line.split("\t") for line in head.filled[:_LOOKED_AT]]
    if rows and named_as(rows[0], TEXT) and named_as(rows[0], LABELS):
        return False  # a TSV file's header
    if not rows or any(len(row) != 3 or not row[0] or len(row[0].split()) != 1 for row in rows):
        return False
    sentences = sum(len(row[2].split()) > 1 for row in rows)
    return len({row[0] for row in rows}) == len(rows) and 2 * sentences > len(rows)


JSON = Format("JSONL", _FORM, JSON_LINES.fits)
LIBMULTILABEL = Format("LibMultiLabel", "ID<TAB>labels, divided by blanks<TAB>text", is_libmultilabel)
TSV = Format("TSV", "text<TAB>labels, without quoting", _is_tsv)
_CSV = Format("CSV", CSV.shape, _is_csv)
FORMATS = (JSON, PARQUET, FASTTEXT, LIBMULTILABEL, TSV, _CSV)


def has_labels(head: Head) -> bool:
    """True for a file in a format that has labels, whatever its name says."""
    return FASTTEXT.fits(head) or LIBMULTILABEL.fits(head)


def read_texts(path: Path, layout: Layout, gold: bool | None = True) -> TextFile:
    """Rows of a file.

    Args:
        path: the file.
        layout: its columns. LibMultiLabel is tried only if none are given, fastText unless the file has them.
        gold: if true, every text must have labels, perhaps none; otherwise a file may be of texts alone: CSV of one
            column, or a text a line if nothing but a separator in it, neither header, quote nor the name .csv, speaks
            for CSV. If None, labels aren't looked at either, and no row has any.

    Raises:
        DataError: the file looks like none of the formats, or is not what its format asks for.
    """
    if of_shards(path) or path.is_dir():
        return _of_shards(path, layout, gold)
    form = form_of(path, layout, gold)
    if form is None:
        return TextFile([Row(line, None, n) for n, line in enumerate(read_lines(path), 1)], "a text a line")
    if form is JSON:
        rows, said = _read_json(path, layout, gold), "JSONL"
    elif form is FASTTEXT:
        rows, said = read_fasttext(path, gold), form.name
    elif form is LIBMULTILABEL:
        cells = ((n, line.split("\t")) for n, line in enumerate(read_lines(path), 1))
        rows, said = [_libmultilabel(path, n, row) for n, row in cells], "LibMultiLabel's ID, labels and text"
        rows = [row._replace(labels=None) for row in rows] if gold is None else rows
    else:
        if gold and replace(layout, separator=None) == Layout():
            check_order(path, _cells(head_of(path), form))
        rows, said = text_rows(path, form, layout, gold)
    if not rows:
        raise DataError(path, None, "no row", "at least one")
    return TextFile(rows, said)


def _fits(form: Format, head: Head, layout: Layout) -> bool:
    """True if a file looks like a format; formats without named columns yield to columns that are given."""
    if form is LIBMULTILABEL and layout not in (Layout(), Layout(separator=SEPARATOR)):
        return False
    return form.fits(head) and not (form is FASTTEXT and _has_columns(head, layout))


def _has_columns(head: Head, layout: Layout) -> bool:
    """True if columns are given by number, or the first line names one that is given."""
    given = [one for one, usual in ((layout.text, Layout.text), (layout.labels, Layout.labels)) if one != usual]
    names = [name.strip(' "') for name in re.split(r"[\t,;|]", head.filled[0])]
    return any(places_of(one, names) for one in given)


def form_of(path: Path, layout: Layout, gold: bool | None) -> Format | None:
    """The format that a file looks like, None for a text a line; arguments and errors as of `read_texts`."""
    head = head_of(path)
    form = next((form for form in FORMATS if _fits(form, head, layout)), None)
    if form is None and _is_one_column(head, layout):
        return _CSV
    if not gold and not head.is_json_list and (form is None or (form is _CSV and _are_lines(head, layout))):
        return None
    if form is None:
        raise DataError(path, head.first, head.found, one_of(FORMATS))
    return form


def _of_shards(path: Path, layout: Layout, gold: bool | None) -> TextFile:
    """Rows of Parquet and Arrow files, kept in memory."""
    rows, said = [], ""
    for shard in shards(path):
        check_in_memory(shard)
        some, said = stream_rows(shard, PARQUET, layout, gold)
        rows += some
    if not rows:
        raise DataError(path, None, "no row", "at least one")
    return TextFile(rows, said)


def _libmultilabel(path: Path, line: int, row: Sequence[str]) -> Row:
    if len(row) != 3:
        raise DataError(path, line, f"{len(row)} cells in {shorten(chr(9).join(row))}", "ID<TAB>labels<TAB>text")
    return Row(row[2], tuple(row[1].split()), line)


def _read_json(path: Path, layout: Layout, gold: bool | None) -> list[Row]:
    text_name = layout.text if isinstance(layout.text, str) else TEXT[0]
    label_names = (layout.labels,) if isinstance(layout.labels, str) and not layout.labels.endswith("*") else LABELS

    def row(item: Any) -> tuple[str, str | list[str] | None]:
        text = item.get(text_name) if isinstance(item, Mapping) else None
        if not isinstance(text, str):
            raise DataError(path, None, f"{item!r:.60} without a text under {text_name!r}", f"a line such as {_FORM}")
        if gold is None:
            return text, None
        labels = next((item[name] for name in label_names if item.get(name) is not None), None)
        if labels is None and not gold:
            return text, None
        if isinstance(labels, str):
            return text, labels
        if not isinstance(labels, list) or not all(type(label) in (str, int) for label in labels):
            found = f"labels {labels!r:.60}" if labels is not None else f"no {label_names[0]!r}"
            raise DataError(path, None, found, f"a list of names, as in {_FORM}")
        return text, list(map(str, labels))

    cells, lines = LabelCells(path, layout.separator), read_json_lines(path, _FORM, row)
    rows = [Row(text, None if labels is None else cells.read(n, labels), n) for n, (text, labels) in lines]
    if gold:
        cells.check()
    return rows


def text_rows(path: Path, form: Format, layout: Layout, gold: bool | None = True) -> tuple[list[Row], str]:
    """Rows of a file of columns, TSV or CSV, and what it was recognised as; arguments as `read_texts`."""
    rows, said = stream_rows(path, form, layout, gold)
    return list(rows), said


def stream_rows(path: Path, form: Format, layout: Layout, gold: bool | None = True) -> tuple[Iterator[Row], str]:
    """The same of TSV, CSV, Parquet or Arrow, rows one at a time."""
    first, names, layout, records = below_header(path, form, layout, gold)
    separator = _separator(path, form)
    at = column_of(path, layout.text, names, "text")
    label_cells = LabelCells(path, layout.separator)
    read, what = label_reader(path, layout, names, gold, label_cells)
    taken = places_of(layout.labels, names or ())
    needed = max(at, *taken) if taken and (gold or len(taken) > 1) else at
    width = len(first) if gold else max(len(first), at + 1, *(place + 1 for place in taken))

    def rows() -> Iterator[Row]:
        for line, cells in records:
            if len(cells) <= needed:
                found = f"{len(cells)} columns in {shorten(separator.join(map(str, cells)))}"
                raise DataError(path, line, found, f"at least {needed + 1}, apart by {SEPARATORS[separator]}")
            if len(cells) > width or (gold and len(cells) < width):
                found = f"{len(cells)} cells in {shorten(separator.join(cells))}"
                wanted = f"{width}, as in the first line, separated by {SEPARATORS[separator]}"
                raise DataError(path, line, found, wanted)
            if not isinstance(cells[at], str):
                found = "null" if cells[at] is None else f"the list {cells[at]!r:.60}"
                raise DataError(path, line, f"{found} in column {first[at]!r}", "a text")
            labels = None if gold is None else read(line, cells)
            if labels and None in labels:
                raise DataError(path, line, "null among the labels", "names")
            yield Row(cells[at], labels, line)
        if gold:
            label_cells.check()

    if form is TSV and names is None:
        return rows(), form.name
    header = " with a header" if names else ""
    apart = "" if form in (PARQUET, TSV) else f" separated by {SEPARATORS[separator]}{header}"
    return rows(), f"{form.name}{apart}, texts in column {names[at] if names else at + 1!r}, {what}"


def below_header(
    path: Path, form: Format, layout: Layout, gold: bool | None
) -> tuple[list[Any], list[str] | None, Layout, Iterator[tuple[int, list[Any]]]]:
    """The first record's cells, names and settled layout as of `settle`, and the records without the header."""
    records = file_records(path, form, _separator(path, form))
    first = next(records)
    may_be_headed = form is _CSV or (form is TSV and Path(path).suffix.lower() == ".csv")
    below = list(islice(records, _LOOKED_AT)) if may_be_headed and layout.header is None else []
    names, layout = settle(path, layout, first[1], gold, [cells for _, cells in below], form is PARQUET)
    return first[1], names, layout, chain([first] if names is None else [], below, records)


def _separator(path: Path, form: Format) -> str:
    if form in (PARQUET, TSV):
        return "\t"
    head = head_of(path)
    return separator_of(head) or _one_column(head)[0]


def file_records(path: Path, form: Format, separator: str) -> Iterator[tuple[int, list[Any]]]:
    """Number and cells of each row; of Parquet the columns' names come first, and lists of labels are lists."""
    if form is PARQUET:
        yield 0, column_names(path)
        for piece in pieces(path):
            named = zip(piece.rows.schema.names, piece.rows.columns, strict=True)
            columns = ([_cell(value) for value in cells_of(path, name, column)] for name, column in named)
            yield from enumerate(map(list, zip(*columns, strict=True)), piece.first)
    elif form is TSV:
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                raise DataError(path, number, "a blank line", "a text and its labels, apart by tabs")
            yield number, line.split("\t")
    else:
        yield from records(path, separator)


def _cell(value: Any) -> Any:
    """A cell as text, a list of texts, or None where it is null or NaN."""
    if isinstance(value, list):
        return [_cell(one) for one in value]
    return None if value is None or value != value else str(value)
