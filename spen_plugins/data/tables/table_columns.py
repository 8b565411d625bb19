"""Columns of a table as features and labels: one-hot nominals, sparse binaries, reals; label numbers of its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spen_plugins.data.table import BINARY, Ragged, Table, true_value
from spen_plugins.data.tables.arff import class_sets
from spen_plugins.data.tables.label_columns import find_label_columns, number_labels
from spen_plugins.errors import ConfigError, DataError, did_you_mean

ROOT = "root"
"""Name of a hierarchy's root, if it is a label."""


def number_classes(table: Table, labels: Sequence[str], classes: str) -> list[np.ndarray | None]:
    """Label numbers of each row by its paths in the attribute `classes`."""
    attribute = next(a for a in table.attributes if a.name == classes)
    numbers = {label: i for i, label in enumerate(labels)}
    for value in attribute.values:
        if value not in numbers:
            expected = f"the training file's hierarchy.{did_you_mean(value, labels)}"
            raise DataError(table.path, attribute.line, f"class {value!r}", expected)
    label_numbers = np.array([numbers[value] for value in attribute.values], dtype=np.int32)
    root_numbers = [numbers[ROOT]] if ROOT in numbers and ROOT not in attribute.values else []
    sets = class_sets(table)
    return [
        None if row is None else np.sort(np.append(label_numbers[row], root_numbers)).astype(np.int32) for row in sets
    ]


def number_columns(table: Table, labels: Sequence[str]) -> list[np.ndarray | None]:
    """Label numbers of each row by the columns named after the labels; a row with all labels missing has no gold."""
    indices = {a.name: i for i, a in enumerate(table.attributes)}
    columns = [indices[label] for label in labels]
    attributes = [table.attributes[column] for column in columns]
    true_codes = [1 if a.kind == "numeric" else true_value(a.values) for a in attributes]
    for a, value in zip(attributes, true_codes, strict=True):
        if value is None:
            raise DataError(table.path, a.line, f"{{{', '.join(a.values)}}} for label {a.name!r}", "{0, 1}")
    is_sparse = table.dense is None and all(value == 1 for value in true_codes)
    if is_sparse and np.isin(table.sparse[:, columns].data, (0, 1)).all():
        return list(pick_ones(table, columns))
    codes = table.filled()[:, columns]
    is_missing = np.isnan(codes)
    is_wrong = np.where(is_missing, ~is_missing.all(1, keepdims=True), ~np.isin(codes, (0, 1)))
    if is_wrong.any():
        row, label = np.argwhere(is_wrong)[0]
        empty_cell = "?" if table.format == "ARFF" else "an empty cell"
        code = empty_cell if is_missing[row, label] else f"{codes[row, label]:g}"
        expected = f"0 or 1 (or {empty_cell} for all labels of a row)"
        raise DataError(table.path, table.line[row], f"{code} for label {attributes[label].name!r}", expected)
    gold, is_unknown = Ragged.from_mask(codes == np.array(true_codes, dtype=np.float32)), is_missing.all(1)
    return [None if is_unknown[i] else gold[i] for i in range(len(gold))]


def pick_ones(table: Table, columns: Sequence[int]) -> Ragged:
    """The columns that are 1 in each row of a sparse table, as sorted indices into `columns`."""
    ones = table.sparse[:, columns] == 1
    ones.sort_indices()
    return Ragged(ones.indptr, ones.indices.astype(np.int32))


SPARSE = 0.25
"""Share of cells that are not 0 below which real features are sparse."""


@dataclass(frozen=True)
class Columns:
    """Attributes of a table as features, with their encoding as numbers, and as labels.

    Args:
        features: the features' attributes, by name: `()` for a real number, else the nominal's values.
        labels: label names, in the order of the output.
        classes: name of the hierarchical attribute, if labels are its paths.
        drop: unused attributes.
        has_sets: if true, labels are not attributes: a table has them as sets.
        listed: if true, these sets come from a column of lists.
        sparse: if true, real features are mostly 0, and an example lists those that are not.
        label_values: name -> the two values of a label, if they are not 0 and 1 and the files' headers don't have them.
    """

    features: Mapping[str, tuple[str, ...]]
    labels: tuple[str, ...]
    classes: str | None = None
    drop: tuple[str, ...] = ()
    has_sets: bool = False
    sparse: bool = False
    label_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    listed: bool = False

    @classmethod
    def from_table(
        cls, table: Table, labels: Sequence[str] | int | None, drop: Sequence[str], root: bool = False
    ) -> Columns:
        """From a header; labels by name, or the last n attributes, or None with a hierarchical attribute.

        With `root`, the hierarchy's root, which every example has, is a label too.
        """
        drop = list(dict.fromkeys([*drop, *table.keys]))
        label_names, classes = find_label_columns(table, labels)
        has_sets = table.sets is not None
        label_attributes = {classes} if classes is not None else set() if has_sets else {*label_names}
        _check_dropped(table, drop, label_attributes)
        features = _choose_features(table, {*label_attributes, *drop})
        if root and classes is None:
            raise ConfigError(f"task.root: {table.path} has no hierarchical attribute; remove the key")
        is_sparse = has_sets and table.density < SPARSE and not all(features.values())
        label_values = {}
        if classes is None and table.format != "ARFF":  # an ARFF header has them
            label_values = {
                a.name: a.values
                for a in table.attributes
                if a.name in label_attributes and a.values not in ((), BINARY)
            }
        names = (ROOT, *label_names) if root else label_names
        return cls(features, names, classes, tuple(drop), has_sets, is_sparse, label_values, table.listed)

    @cached_property
    def names(self) -> list[str]:
        """Names of an example's features: `colour` or, one-hot, `colour=red`."""
        return [n for name, values in self.features.items() for n in _name_features(name, values)]

    @property
    def column_values(self) -> dict[str, tuple[str, ...]]:
        """Features and labels by name, with their values, for readers of formats whose header does not have them."""
        labels = {} if self.has_sets or self.classes is not None else dict.fromkeys(self.labels, BINARY)
        return {**labels, **self.label_values, **self.features}

    @cached_property
    def places(self) -> dict[str, int]:
        """Attribute -> the index of its first feature."""
        widths = [len(_name_features(name, values)) for name, values in self.features.items()]
        return dict(zip(self.features, np.cumsum([0, *widths[:-1]]).tolist(), strict=True))

    @cached_property
    def real(self) -> np.ndarray:
        """Mask of the real features, boolean `(size,)`; the others are 0 or 1."""
        return np.array([not values for values in self.features.values() for _ in _name_features("", values)])

    def encode(self, table: Table) -> tuple[Ragged | np.ndarray, list[np.ndarray | None]]:
        """Features and gold label numbers of each row (None without gold).

        If all features are binary, each row lists the numbers of those that are not zero; if they are sparse reals,
        also their values. Otherwise features are `(rows, size)` float32 with NaN for a missing real value. A missing
        nominal value is zero in all its columns.
        """
        indices = {a.name: i for i, a in enumerate(table.attributes)}
        known_names = {*self.features, *self.labels, *self.drop, *table.keys, *filter(None, [self.classes])}
        column = "attribute" if table.format == "ARFF" else "column"
        for a in table.attributes:
            if a.name not in known_names:
                remedy = f"remove it (to predict or evaluate with a finished run, pass drop={a.name})"
                expected = (
                    f"{column}s of the training file; {remedy}.{did_you_mean(a.name, known_names - indices.keys())}"
                )
                raise DataError(table.path, a.line, f"{column} {a.name!r}", expected)
        for name, values in self.features.items():
            if name not in indices:
                raise DataError(table.path, None, f"no {column} {name!r}", "all features of the training file")
            a = table.attributes[indices[name]]
            if {*a.values} != {*values} or (a.kind == "numeric") != (not values):
                actual, expected = (", ".join(names) or "numeric" for names in (a.values, values))
                raise DataError(
                    table.path, a.line, f"{column} {name!r} of type {actual}", f"{expected}, as in training"
                )
        return self._encode_features(table, indices), self.gold(table)

    def _encode_features(self, table: Table, indices: Mapping[str, int]) -> Ragged | np.ndarray:
        attributes = [table.attributes[indices[name]] for name in self.features]
        true_values = [true_value(a.values) for a in attributes]
        if self.sparse:
            return Ragged(table.sparse.indptr, table.sparse.indices.astype(np.int32), table.sparse.data)
        if table.dense is None and all(t == 1 for t in true_values):  # omitted cells are "no": keep the written ones
            return pick_ones(table, [indices[name] for name in self.features])
        filled = table.filled()
        matrix = np.empty((len(table), len(self.names)), dtype=np.float32)
        for a, t, values in zip(attributes, true_values, self.features.values(), strict=True):
            codes, column = filled[:, indices[a.name]], self.places[a.name]
            if not values:
                matrix[:, column] = codes
            elif t is not None:
                matrix[:, column] = codes == t
            else:
                for i, value in enumerate(values):
                    matrix[:, column + i] = codes == a.values.index(value)
        return matrix if self.real.any() else Ragged.from_mask(matrix != 0)

    def gold(self, table: Table) -> list[np.ndarray | None]:
        """Label numbers of each row; None without gold."""
        if table.sets is not None:
            numbers = {label: i for i, label in enumerate(self.labels)}
            kind = "labels of the training file"
            return [
                None if row is None else number_labels(row, numbers, self.labels, kind, table.path, line)
                for line, row in zip(table.line, table.sets, strict=True)
            ]
        names = {a.name for a in table.attributes}
        if self.classes is not None and self.classes in names:
            return number_classes(table, self.labels, self.classes)
        missing = [label for label in self.labels if label not in names]
        if self.has_sets or self.classes is not None or len(missing) == len(self.labels):
            return [None] * len(table)
        if missing:
            raise DataError(table.path, None, f"some labels, but not {missing[0]!r}", "all labels or none")
        return number_columns(table, self.labels)


def _choose_features(table: Table, others: Collection[str]) -> dict[str, tuple[str, ...]]:
    attributes = [a for a in table.attributes if a.name not in others]
    for a in attributes:
        if a.kind in ("text", "hierarchical"):
            expected = f"numeric or nominal features; drop={a.name} ignores it"
            expected += f"; `spen-run texts text={a.name}` learns from texts" if a.kind == "text" else ""
            raise DataError(table.path, a.line, f"attribute {a.name!r} of type {a.kind}", expected)
    if not attributes:
        raise DataError(table.path, None, "no feature: all columns are labels or dropped", "at least one feature")
    return {a.name: a.values for a in attributes}


def _check_dropped(table: Table, drop: Sequence[str], labels: Collection[str]) -> None:
    names = [a.name for a in table.attributes]
    for name in drop:
        if name not in names or name in labels:
            problem = (
                "is a label; name another column" if name in names else f"is not a column.{did_you_mean(name, names)}"
            )
            raise ConfigError(f"drop= or task.sample_weight=: {name!r} of {table.path} {problem}")


def _name_features(name: str, values: Sequence[str]) -> list[str]:
    return [name] if not values or true_value(values) is not None else [f"{name}={value}" for value in values]
