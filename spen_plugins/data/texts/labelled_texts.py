"""Texts with labels from files of several formats, recognised by content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.data.disk.shards import (
    check_in_memory,
    column_names,
    convert_cell,
    is_sharded,
    pieces,
    read_cells,
    shards,
)
from spen_plugins.data.formats import JSON_LINES, PARQUET, Format, Head, one_of, read_head
from spen_plugins.data.records import CSV, find_separator, looks_like_header, read_header, read_json_lines, records
from spen_plugins.data.tables.label_cells import LabelCells
from spen_plugins.data.text import read_lines, shorten
from spen_plugins.data.texts.fasttext import FASTTEXT, read_fasttext
from spen_plugins.data.texts.text_columns import (
    LABELS,
    TEXT,
    Layout,
    Row,
    TextColumns,
    check_order,
    describe_labels,
    find_columns,
    find_places,
    is_header,
    named_as,
    read_labels,
)
from spen_plugins.errors import DataError
from spen_plugins.files import to_json

_EXAMPLE = '{"text": "What a day!", "labels": ["joy"]}'
_SAMPLE_LINES = 50
_NO_SEPARATOR = "\x1f"
"""Separates the cells of CSV of one column: no text has it."""


class TextFile(NamedTuple):
    """A file's rows, and a description of its format."""

    rows: list[Row]
    description: str

    @property
    def note(self) -> str:
        """The format and the number of texts, for the user."""
        return f"{self.description} ({len(self.rows)} text{'s' * (len(self.rows) != 1)})"


def _is_tsv(head: Head) -> bool:
    sample = head.filled[:_SAMPLE_LINES]
    is_quoted = all(cell[:1] == cell[-1:] == '"' for line in sample for cell in line.split("\t"))  # CSV, then
    return not is_quoted and 2 * sum("\t" in line for line in sample) > len(sample)


def _is_csv(head: Head) -> bool:
    separator = find_separator(head)
    if separator is None:
        return False
    counts = {line.count(separator) for line in head.filled[:_SAMPLE_LINES]}
    return len(counts) == 1 or b'"' in head.data or is_header(head.lines[0].split(separator))


def is_libmultilabel(head: Head) -> bool:
    """True if every line has three cells: a word that no other line has, labels, and mostly several words; and there is
    no header."""
    rows = [line.split("\t") for line in head.filled[:_SAMPLE_LINES]]
    if rows and named_as(rows[0], TEXT) and named_as(rows[0], LABELS):
        return False  # a TSV file's header
    if not rows or any(len(row) != 3 or not row[0] or len(row[0].split()) != 1 for row in rows):
        return False
    long_texts = sum(len(row[2].split()) > 1 for row in rows)
    return len({row[0] for row in rows}) == len(rows) and 2 * long_texts > len(rows)


JSON = Format("JSONL", _EXAMPLE, JSON_LINES.fits)
LIBMULTILABEL = Format("LibMultiLabel", "ID<TAB>labels, separated by blanks<TAB>text", is_libmultilabel)
TSV = Format("TSV", "text<TAB>labels, without quoting", _is_tsv)
_CSV = Format("CSV", CSV.shape, _is_csv)
FORMATS = (JSON, PARQUET, FASTTEXT, LIBMULTILABEL, TSV, _CSV)


def has_labels(head: Head) -> bool:
    """True for a file in a format that has labels, whatever its name is."""
    return FASTTEXT.fits(head) or LIBMULTILABEL.fits(head)


def find_format(path: Path, layout: Layout, gold: bool | None) -> Format | None:
    """The format that a file looks like, None for one text per line; arguments and errors are as in `read_texts`."""
    head = read_head(path)
    has_header = layout.header is not False and _has_header(head, layout)
    has_columns = not layout.is_default and (gold or has_header or not layout.has_names)
    formats = (JSON, PARQUET, TSV, _CSV) if has_columns else FORMATS
    form = next((form for form in formats if form.fits(head)), None)
    if head.is_json_list:
        raise DataError(path, head.first, head.found, one_of(FORMATS))
    says_csv = has_header or path.suffix.lower() == ".csv"
    may_be_lines = not gold and _may_be_lines(head, layout)
    if form is None and says_csv and (has_header or not may_be_lines):
        return _CSV  # of one column
    if not gold and (form is None or (form is _CSV and not says_csv and may_be_lines)):
        return None
    if form is None:
        raise DataError(path, head.first, head.found, one_of(FORMATS))
    return form


def _has_header(head: Head, layout: Layout) -> bool:
    """True if the first line names a column of text or labels, by a usual name or the configured one."""
    names = read_header(head) or [line.strip(' "') for line in head.filled[:1]]
    columns = [column for column in (layout.text, layout.labels) if not isinstance(column, int)]
    return is_header(names) or any(find_places(column, names) for column in columns)


def _may_be_lines(head: Head, layout: Layout) -> bool:
    """True if a file that looks like CSV without a header may also be one text per line, with a comma in each."""
    if layout.header or isinstance(layout.text, str) or b'"' in head.data:
        return False
    cells = [line.strip() for line in head.filled[:_SAMPLE_LINES]]
    return not (cells and looks_like_header(cells[:1], [[cell] for cell in cells[1:]]))


def read_texts(path: Path, layout: Layout, gold: bool | None = True) -> TextFile:
    """Rows of a file.

    With gold, every text must have labels, perhaps none. Otherwise a file may contain texts alone: CSV of one column,
    or one text per line if only a separator suggests CSV, and neither a header, a quote nor the name .csv does. If
    `gold` is None, labels are not read, and no row has any.
    """
    form = PARQUET if is_sharded(path) or path.is_dir() else find_format(path, layout, gold)
    if form is None:
        return TextFile([Row(line, None, n) for n, line in enumerate(read_lines(path), 1)], "one text per line")
    if form is JSON:
        rows, description = _read_json(path, layout, gold), "JSONL"
    elif form is FASTTEXT:
        rows, description = read_fasttext(path, gold), form.name
    elif form is LIBMULTILABEL:
        stream, _ = stream_rows(path, TSV, Layout(3, 2, " ", False), gold)
        rows, description = list(stream), "LibMultiLabel's ID, labels and text"
    else:
        rows, description = [], ""
        for file in shards(path):
            if form is PARQUET:
                check_in_memory(file)
            stream, description = stream_rows(file, form, layout, gold)
            rows += stream
        if gold and form is not PARQUET and layout.is_default and layout.header is None:
            check_order(path, rows[:_SAMPLE_LINES])
    if not rows:
        raise DataError(path, None, "no row", "at least one")
    return TextFile(rows, description)


def _read_json(path: Path, layout: Layout, gold: bool | None) -> list[Row]:
    text_name = layout.text if isinstance(layout.text, str) else TEXT[0]
    label_names = (layout.labels,) if isinstance(layout.labels, str) and not layout.labels.endswith("*") else LABELS
    example = _EXAMPLE.replace('"text"', to_json(text_name)).replace('"labels"', to_json(label_names[0]))

    def read_item(item: Any) -> tuple[str, str | list[str] | None]:
        text = item.get(text_name) if isinstance(item, Mapping) else None
        if not isinstance(text, str):
            raise DataError(path, None, f"{item!r:.60} without a text under {text_name!r}", f"a line such as {example}")
        labels = None if gold is None else next((item[n] for n in label_names if item.get(n) is not None), None)
        if isinstance(labels, str) or (labels is None and not gold):
            return text, labels
        if not isinstance(labels, list) or not all(type(label) in (str, int) for label in labels):
            null_key = next((name for name in label_names if name in item), None)
            problem = f"no {label_names[0]!r}" if null_key is None else f"null under {null_key!r}"
            problem = problem if labels is None else f"labels {labels!r:.60}"
            raise DataError(path, None, problem, f"a list of names, as in {example}; for none, an empty list")
        return text, list(map(str, labels))

    cells, lines = LabelCells(path, layout.separator), read_json_lines(path, example, read_item)
    rows = [Row(text, None if labels is None else cells.read(n, labels), n) for n, (text, labels) in lines]
    if gold:
        cells.check()
    return rows


def stream_rows(path: Path, form: Format, layout: Layout, gold: bool | None = True) -> tuple[Iterator[Row], str]:
    """Rows of a file of columns (TSV, CSV, Parquet or Arrow), one at a time, and a description of its format; arguments
    and errors are as in `read_texts`."""
    columns, file_rows = open_columns(path, form, layout, gold)
    cells = LabelCells(path, layout.separator)
    text = columns.names[columns.text] if columns.names else columns.text + 1

    def read_rows() -> Iterator[Row]:
        for line, record in file_rows:
            if not isinstance(record[columns.text], str):
                problem = "null" if record[columns.text] is None else f"the list {record[columns.text]!r:.60}"
                raise DataError(path, line, f"{problem} in column {text!r}", "a text")
            yield Row(record[columns.text], read_labels(path, columns, line, record, bool(gold), cells), line)
        if gold:
            cells.check()

    if form is TSV and columns.names is None:
        return read_rows(), form.name
    return read_rows(), f"{form.name}, texts in column {text!r}, {describe_labels(columns, layout, gold)}"


def open_columns(
    path: Path, form: Format, layout: Layout, gold: bool | None
) -> tuple[TextColumns, Iterator[tuple[int, list[Any]]]]:
    """A file's columns, and its records without the header; arguments and errors are as in `find_columns`."""
    separator = (find_separator(read_head(path)) or _NO_SEPARATOR) if form is _CSV else ""
    rows = file_records(path, form, separator)
    first = next(rows)
    may_have_header = form is _CSV or (form is TSV and path.suffix.lower() == ".csv")
    sample = list(islice(rows, _SAMPLE_LINES)) if may_have_header else []
    columns = find_columns(path, layout, first[1], gold, [cells for _, cells in sample], form is PARQUET)
    return columns, chain([first] if columns.names is None else [], sample, rows)


def file_records(path: Path, form: Format, separator: str) -> Iterator[tuple[int, list[Any]]]:
    """Number and cells of each row; for Parquet, the columns' names come first, and lists of labels stay lists."""
    if form is TSV:
        yield from _read_tsv(path)
    elif form is not PARQUET:
        yield from records(path, separator)
    else:
        yield 0, column_names(path)
        for first, rows in pieces(path):
            pairs = zip(rows.schema.names, rows.columns, strict=True)
            columns = ([convert_cell(value) for value in read_cells(path, name, column)] for name, column in pairs)
            yield from enumerate(map(list, zip(*columns, strict=True)), first)


def _read_tsv(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line; all must have as many cells as the first. Empty lines are skipped."""
    width = None
    for number, line in enumerate(read_lines(path), 1):
        if not line:
            continue
        cells = line.split("\t")
        width = width or len(cells)
        if len(cells) != width:
            problem = f"{len(cells)} cell{'s' * (len(cells) != 1)} in {shorten(line)}"
            raise DataError(path, number, problem, f"{width}, as in the first line, separated by tabs")
        yield number, cells
