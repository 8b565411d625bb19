"""All columns of a table as they stand in its file, for output beside predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spen_plugins.data.disk.shards import is_sharded, shards
from spen_plugins.data.formats import PARQUET, read_head, recognise
from spen_plugins.data.records import CSV, find_separator, read_json_lines, records
from spen_plugins.data.tables.table_files import FORMATS
from spen_plugins.data.texts.labelled_texts import (
    FASTTEXT,
    JSON,
    LIBMULTILABEL,
    file_records,
    find_format,
    open_columns,
)
from spen_plugins.data.texts.text_columns import Layout
from spen_plugins.files import to_json

Columns = tuple[list[str], list[list[Any]]]
"""Names of columns, and the cells of each row."""


def find_table_columns(path: Path) -> Columns | None:
    """Columns of a file that `read_table` has read; None for ARFF and libsvm."""
    form = recognise(path, FORMATS)
    if form is PARQUET:
        return _read_shards(path)
    if form is not CSV:
        return None
    names, *rows = [cells for _, cells in records(path, find_separator(read_head(path)) or ",")]
    return names, rows


def find_text_columns(path: Path, layout: Layout) -> Columns | None:
    """Columns of a file that `read_texts` has read without gold; None if they have no names."""
    if is_sharded(path):
        return _read_shards(path)
    form = find_format(path, layout, None)
    if form is JSON:
        return _align([item for _, item in read_json_lines(path, "{}", dict)], None)
    if form in (None, FASTTEXT, LIBMULTILABEL):
        return None
    columns, rows = open_columns(path, form, layout, None)
    return None if columns.names is None else (columns.names, [cells for _, cells in rows])


def _read_shards(path: Path) -> Columns:
    rows: list[dict[str, Any]] = []
    for shard in shards(path):
        names, *records = [cells for _, cells in file_records(shard, PARQUET, "")]
        rows += [dict(zip(names, cells, strict=True)) for cells in records]
    return _align(rows, "")


def _align(rows: list[dict[str, Any]], absent: str | None) -> Columns:
    """Columns by name, as rows may have them in another order, or lack some; a list or a table is JSON."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return names, [[_cell(row.get(name, absent)) for name in names] for row in rows]


def _cell(value: Any) -> Any:
    return to_json(value) if isinstance(value, (list, dict)) else value
