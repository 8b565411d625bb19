"""Texts with labels from files of any of several formats, recognised by content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.errors import DataError, did_you_mean
from spen_plugins.readers.csv_rows import CSV, SEPARATORS, header, records, separator_of
from spen_plugins.readers.formats import JSON_LINES, Format, Head, head_of, one_of
from spen_plugins.readers.jsonl import read_json_lines
from spen_plugins.readers.text import read_lines, shorten
from spen_plugins.readers.tsv import (
    LABELS,
    TEXT,
    Layout,
    Row,
    column_of,
    is_header,
    named_as,
    places_of,
    read_tsv,
    settle,
    split_labels,
)

_TRUE, _FALSE = ("1", "1.0", "true"), ("0", "0.0", "false", "")
_FORM = '{"text": "What a day!", "labels": ["joy"]}'
_LOOKED_AT = 50


class TextFile(NamedTuple):
    """A file's rows, and what it was recognised as."""

    rows: list[Row]
    said: str


def _is_tsv(head: Head) -> bool:
    some = head.filled[:_LOOKED_AT]
    return bool(some) and 2 * sum("\t" in line for line in some) > len(some)


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


_JSON = Format("JSONL", _FORM, JSON_LINES.fits)
LIBMULTILABEL = Format("LibMultiLabel", "ID<TAB>labels, divided by blanks<TAB>text", is_libmultilabel)
TSV = Format("TSV", "text<TAB>labels, without quoting", _is_tsv)
_CSV = Format("CSV", CSV.shape, _is_csv)
FORMATS = (_JSON, LIBMULTILABEL, TSV, _CSV)


def read_texts(path: Path, layout: Layout, gold: bool = True) -> TextFile:
    """Rows of a file.

    Args:
        path: the file.
        layout: its columns. LibMultiLabel's are known, and tried only if none are named.
        gold: if true, every text must have labels, perhaps none; otherwise a file may be of texts alone, and is one
            of a text a line if nothing but a separator in it, neither header, quote nor the name .csv, speaks for CSV.

    Raises:
        DataError: the file looks like none of the formats, or is not what its format asks for.
    """
    head = head_of(path)
    tried = [form for form in FORMATS if form is not LIBMULTILABEL or layout == Layout()]
    form = next((form for form in tried if form.fits(head)), None)
    if not gold and (form is None or (form is _CSV and _are_lines(head, layout))):
        return TextFile([Row(line, None, n) for n, line in enumerate(read_lines(path), 1)], "a text a line")
    if form is None:
        raise DataError(path, head.first, head.found, one_of(FORMATS))
    if form is _JSON:
        rows, said = _read_json(path, layout, gold), "JSONL"
    elif form is LIBMULTILABEL:
        cells = ((n, line.split("\t")) for n, line in enumerate(read_lines(path), 1))
        rows, said = [_libmultilabel(path, n, row) for n, row in cells], "LibMultiLabel's ID, labels and text"
    elif form is TSV:
        rows, said = read_tsv(path, layout, gold), "TSV"
    else:
        rows, said = _read_csv(path, layout, gold, separator_of(head) or ",")
    if not rows:
        raise DataError(path, None, "no row", "at least one")
    return TextFile(rows, said)


def _libmultilabel(path: Path, line: int, row: Sequence[str]) -> Row:
    if len(row) != 3:
        raise DataError(path, line, f"{len(row)} cells in {shorten(chr(9).join(row))}", "ID<TAB>labels<TAB>text")
    return Row(row[2], tuple(row[1].split()), line)


def _read_json(path: Path, layout: Layout, gold: bool) -> list[Row]:
    text_name = layout.text if isinstance(layout.text, str) else TEXT[0]
    label_names = (layout.labels,) if isinstance(layout.labels, str) else LABELS

    def row(item: Any) -> tuple[str, tuple[str, ...] | None]:
        text = item.get(text_name) if isinstance(item, Mapping) else None
        if not isinstance(text, str):
            raise DataError(path, None, f"{item!r:.60} without a text under {text_name!r}", f"a line such as {_FORM}")
        labels = next((item[name] for name in label_names if item.get(name) is not None), None)
        if labels is None and not gold:
            return text, None
        if isinstance(labels, str):
            return text, split_labels(labels, layout.separator)
        if not isinstance(labels, list) or not all(type(label) in (str, int) for label in labels):
            found = f"labels {labels!r:.60}" if labels is not None else f"no {label_names[0]!r}"
            raise DataError(path, None, found, f"a list of names, as in {_FORM}")
        return text, tuple(map(str, labels))

    return [Row(text, labels, n) for n, (text, labels) in read_json_lines(path, _FORM, row)]


def _read_csv(path: Path, layout: Layout, gold: bool, separator: str) -> tuple[list[Row], str]:
    names, layout = settle(path, layout, header(path, separator), gold)
    at = column_of(path, layout.text, names, "text")
    read, what = _label_reader(path, layout.labels, names, layout, gold)
    rows, start = [], 2 if names is not None else 1
    for number, (line, cells) in enumerate(records(path, separator), 1):
        if at >= len(cells):
            raise DataError(path, line, f"{len(cells)} columns", f"a text in column {at + 1}")
        if number >= start:
            rows.append(Row(cells[at], read(line, cells), line))
    where = f"texts in column {names[at] if names else at + 1!r}"
    return rows, f"CSV separated by {SEPARATORS[separator]}{' with a header' if names else ''}, {where}, {what}"


def _label_reader(
    path: Path, labels: Any, names: list[str] | None, layout: Layout, gold: bool
) -> tuple[Callable[[int, Sequence[str]], tuple[str, ...] | None], str]:
    """Reads the labels of a record, given its line and cells; and where they are, in words."""
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

        def switched(line: int, cells: Sequence[str]) -> tuple[str, ...]:
            for name, at in places:
                if cells[at].strip().casefold() not in (*_TRUE, *_FALSE):
                    raise DataError(path, line, f"{shorten(cells[at])} for label {name!r}", "0 or 1")
            return tuple(name for name, at in places if cells[at].strip().casefold() in _TRUE)

        return switched, f"{len(places)} labels as columns of 0 and 1"
    if not gold and (isinstance(labels, str) and labels not in (names or ())):
        return lambda line, cells: None, "no labels"
    at = column_of(path, labels, names, "label")

    def listed(line: int, cells: Sequence[str]) -> tuple[str, ...] | None:
        if at >= len(cells):
            if gold:
                raise DataError(path, line, f"{len(cells)} columns", f"labels in column {at + 1}")
            return None
        return split_labels(cells[at], layout.separator)

    return listed, f"labels in column {names[at] if names else at + 1!r}, separated by {layout.separator!r}"
