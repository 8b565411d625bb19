"""Tables of features and labels from files of any format, recognised by content."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from spen_plugins.data.csv_rows import CSV
from spen_plugins.data.formats import ARFF, PARQUET, recognise
from spen_plugins.data.table import Table
from spen_plugins.data.tables.arff import read_arff
from spen_plugins.data.tables.cells import Known
from spen_plugins.data.tables.label_lists import ListColumn, holds_lists, move_lists
from spen_plugins.data.tables.libsvm import LIBSVM, read_libsvm
from spen_plugins.data.tables.named_columns import read_named_columns

FORMATS = (PARQUET, ARFF, LIBSVM, CSV)


def read_table(
    path: str | Path, known: Known | None = None, unused: Collection[str] = (), lists: ListColumn | None = None
) -> Table:
    """Read a file in the format that it looks like; its name is `Table.format`.

    `known` are columns of the training file, if this is another, whose header does not say their kinds (all but ARFF);
    `lists` is the column of label lists, which is moved to the table's sets of labels.
    """
    form = recognise(path, FORMATS)
    if form is ARFF:
        table = read_arff(path)
    elif form is LIBSVM:
        table = read_libsvm(path, known)
    else:
        apart = [] if lists is None else [lists.name]
        table = read_named_columns(Path(path), form, known, [*unused, *apart])
        if lists is not None:
            move_lists(table, Path(path), form, lists)
    table.format = form.name
    return table


def list_column(path: Path, labels: Any, separator: str | None) -> ListColumn | None:
    """The column of label lists that a setting `labels` names; None if its columns are of 0 and 1, or it is none."""
    if not isinstance(labels, str) or labels.endswith("*"):
        return None
    form = recognise(path, FORMATS)
    return ListColumn(labels, separator) if form in (CSV, PARQUET) and holds_lists(path, form, labels) else None
