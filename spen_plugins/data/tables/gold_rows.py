"""Label numbers of a table's rows, from columns of yes and no, class paths or sets of names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spen_plugins.data.table import Ragged, Table
from spen_plugins.data.tables.arff import class_sets
from spen_plugins.errors import DataError, did_you_mean

ROOT = "root"
"""Name of a hierarchy's root, if it is a label."""
_TRUE_OF = {("0", "1"): "1", ("no", "yes"): "yes", ("false", "true"): "true", ("f", "t"): "t", ("n", "y"): "y"}


def true_value(values: Sequence[str]) -> int | None:
    """Index of the "true" value of a yes-no attribute; None for any other nominal."""
    true = _TRUE_OF.get(tuple(sorted(value.lower() for value in values)))
    return None if true is None else [value.lower() for value in values].index(true)


def number_sets(table: Table, labels: Sequence[str]) -> list[np.ndarray | None]:
    """Label numbers of each row of a table with sets of names."""
    place = {label: i for i, label in enumerate(labels)}
    rows: list[np.ndarray | None] = []
    for line, names in zip(table.line, table.sets or (), strict=True):
        unknown = next((name for name in names or () if name not in place), None)
        if unknown is not None:
            wanted = f"one of the {len(place)} labels of the training file.{did_you_mean(unknown, place)}"
            raise DataError(table.path, line, f"label {unknown!r}", wanted)
        rows.append(None if names is None else np.array(sorted({place[name] for name in names}), dtype=np.int32))
    return rows


def number_classes(table: Table, labels: Sequence[str], classes: str) -> list[np.ndarray | None]:
    """Label numbers of each row by its paths in the attribute `classes`."""
    attribute = next(a for a in table.attributes if a.name == classes)
    place = {label: i for i, label in enumerate(labels)}
    for value in attribute.values:
        if value not in place:
            wanted = f"the training file's hierarchy.{did_you_mean(value, labels)}"
            raise DataError(table.path, attribute.line, f"class {value!r}", wanted)
    moved = np.array([place[value] for value in attribute.values], dtype=np.int32)
    always = [place[ROOT]] if ROOT in place and ROOT not in attribute.values else []
    sets = class_sets(table)
    return [None if row is None else np.sort(np.append(moved[row], always)).astype(np.int32) for row in sets]


def number_columns(table: Table, labels: Sequence[str]) -> list[np.ndarray | None]:
    """Label numbers of each row by its columns of the labels' names; a row with all labels missing has no gold."""
    where = {a.name: i for i, a in enumerate(table.attributes)}
    columns = [where[label] for label in labels]
    attributes = [table.attributes[column] for column in columns]
    true = [1 if a.kind == "numeric" else true_value(a.values) for a in attributes]
    for a, value in zip(attributes, true, strict=True):
        if value is None:
            raise DataError(table.path, a.line, f"{{{', '.join(a.values)}}} for label {a.name!r}", "{0, 1}")
    if table.dense is None and all(value == 1 for value in true) and _has_only_0_and_1(table, columns):
        return list(pick_ones(table, columns))
    codes = table.filled()[:, columns]
    missing = np.isnan(codes)
    wrong = np.where(missing, ~missing.all(1, keepdims=True), ~np.isin(codes, (0, 1)))
    if wrong.any():
        row, label = np.argwhere(wrong)[0]
        code = "?" if missing[row, label] else f"{codes[row, label]:g}"
        wanted = "0 or 1 (or ? for all labels of a row)"
        raise DataError(table.path, table.line[row], f"{code} for label {attributes[label].name!r}", wanted)
    gold, absent = Ragged.of(codes == np.array(true, dtype=np.float32)), missing.all(1)
    return [None if absent[i] else gold[i] for i in range(len(gold))]


def _has_only_0_and_1(table: Table, columns: Sequence[int]) -> bool:
    ours = np.zeros(len(table.attributes), dtype=bool)
    ours[list(columns)] = True
    return bool(np.isin(table.code[ours[table.column]], (0, 1)).all())


def pick_ones(table: Table, columns: Sequence[int]) -> Ragged:
    """The columns that are 1 in each row of a sparse table, as sorted indices into `columns`."""
    place = np.full(len(table.attributes), -1, dtype=np.int32)
    place[list(columns)] = np.arange(len(columns))
    row = np.repeat(np.arange(len(table)), np.diff(table.start))
    keep = (place[table.column] >= 0) & (table.code == 1)
    row, value = row[keep], place[table.column[keep]]
    order = np.lexsort((value, row))
    start = np.concatenate([[0], np.bincount(row, minlength=len(table)).cumsum()])
    return Ragged(start, value[order])
