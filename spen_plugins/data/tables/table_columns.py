"""Columns of a table as features and labels: one-hot nominals, sparse binaries, reals; label numbers of its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spen_plugins.data.table import BINARY, Ragged, Table, true_value
from spen_plugins.data.tables.arff import class_sets
from spen_plugins.data.tables.label_columns import find_label_columns
from spen_plugins.errors import ConfigError, DataError, did_you_mean

ROOT = "root"
"""Name of a hierarchy's root, if it is a label."""


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
    is_sparse = table.dense is None and all(value == 1 for value in true)
    if is_sparse and np.isin(table.sparse[:, columns].data, (0, 1)).all():
        return list(pick_ones(table, columns))
    codes = table.filled()[:, columns]
    missing = np.isnan(codes)
    wrong = np.where(missing, ~missing.all(1, keepdims=True), ~np.isin(codes, (0, 1)))
    if wrong.any():
        row, label = np.argwhere(wrong)[0]
        empty = "?" if table.format == "ARFF" else "an empty cell"
        code = empty if missing[row, label] else f"{codes[row, label]:g}"
        wanted = f"0 or 1 (or {empty} for all labels of a row)"
        raise DataError(table.path, table.line[row], f"{code} for label {attributes[label].name!r}", wanted)
    gold, absent = Ragged.of(codes == np.array(true, dtype=np.float32)), missing.all(1)
    return [None if absent[i] else gold[i] for i in range(len(gold))]


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
        apart: if true, labels are no attributes: a table has them as sets.
        listed: if true, these stand in a column of lists.
        sparse: if true, real features are mostly 0, and an example is the list of the others.
        label_values: the two values of each label that are not 0 and 1, by name, if the files' headers don't tell them.
    """

    features: Mapping[str, tuple[str, ...]]
    labels: tuple[str, ...]
    classes: str | None = None
    drop: tuple[str, ...] = ()
    apart: bool = False
    sparse: bool = False
    label_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    listed: bool = False

    @classmethod
    def of(cls, table: Table, labels: Sequence[str] | int | None, drop: Sequence[str], root: bool = False) -> Columns:
        """From a header; labels by name, or the last n attributes, or None with a hierarchical attribute.

        With `root` the hierarchy's root, which is on in every example, is a label too.
        """
        drop = list(dict.fromkeys([*drop, *table.keys]))
        taken, classes = find_label_columns(table, labels)
        is_apart = table.sets is not None
        own = {classes} if classes is not None else set() if is_apart else {*taken}  # those that are attributes
        _check_dropped(table, drop, own)
        features = _choose_features(table, {*own, *drop})
        if root and classes is None:
            raise ConfigError(f"task.root: {table.path} has no hierarchical attribute; remove the key")
        is_sparse = is_apart and table.density < SPARSE and not all(features.values())
        words = {}
        if classes is None and table.format != "ARFF":  # whose header tells them
            words = {a.name: a.values for a in table.attributes if a.name in own and a.values not in ((), BINARY)}
        names = (ROOT, *taken) if root else taken
        return cls(features, names, classes, tuple(drop), is_apart, is_sparse, words, table.listed)

    @cached_property
    def names(self) -> list[str]:
        """Names of an example's features: `colour` or, one-hot, `colour=red`."""
        return [n for name, values in self.features.items() for n in _feature_names(name, values)]

    @property
    def known(self) -> dict[str, tuple[str, ...]]:
        """Features and labels by name, with their values, for readers of formats whose header does not tell them."""
        own = {} if self.apart or self.classes is not None else dict.fromkeys(self.labels, BINARY)
        return {**own, **self.label_values, **self.features}

    @cached_property
    def places(self) -> dict[str, int]:
        """Attribute -> the index of its first feature."""
        widths = [len(_feature_names(name, values)) for name, values in self.features.items()]
        return dict(zip(self.features, np.cumsum([0, *widths[:-1]]).tolist(), strict=True))

    @cached_property
    def real(self) -> np.ndarray:
        """Mask of the real features, boolean `(size,)`; the others are 0 or 1."""
        return np.array([not values for values in self.features.values() for _ in _feature_names("", values)])

    def encode(self, table: Table) -> tuple[Ragged | np.ndarray, list[np.ndarray | None]]:
        """Features and gold label numbers of each row (None without gold).

        Features are the numbers of the non-zero ones if all are binary, with their values if they are sparse reals,
        else `(rows, size)` float32 with NaN for a missing real value. A missing nominal value is zero in all its
        columns.
        """
        where = {a.name: i for i, a in enumerate(table.attributes)}
        known = {*self.features, *self.labels, *self.drop, *table.keys, *filter(None, [self.classes])}
        column = "attribute" if table.format == "ARFF" else "column"
        for a in table.attributes:
            if a.name not in known:
                remedy = f"remove it (to predict or evaluate with a finished run, pass drop={a.name})"
                wanted = f"{column}s of the training file; {remedy}.{did_you_mean(a.name, known - where.keys())}"
                raise DataError(table.path, a.line, f"{column} {a.name!r}", wanted)
        for name, values in self.features.items():
            if name not in where:
                raise DataError(table.path, None, f"no {column} {name!r}", "all features of the training file")
            a = table.attributes[where[name]]
            if {*a.values} != {*values} or (a.kind == "numeric") != (not values):
                actual, wanted = (", ".join(names) or "numeric" for names in (a.values, values))
                raise DataError(table.path, a.line, f"{column} {name!r} of type {actual}", f"{wanted}, as in training")
        return self._features(table, where), self.gold(table)

    def _features(self, table: Table, where: Mapping[str, int]) -> Ragged | np.ndarray:
        attributes = [table.attributes[where[name]] for name in self.features]
        true = [true_value(a.values) for a in attributes]
        if self.sparse:
            return Ragged(table.sparse.indptr, table.sparse.indices.astype(np.int32), table.sparse.data)
        if table.dense is None and all(t == 1 for t in true):  # omitted cells are "no": keep the written ones
            return pick_ones(table, [where[name] for name in self.features])
        filled = table.filled()
        matrix = np.empty((len(table), len(self.names)), dtype=np.float32)
        for a, t, values in zip(attributes, true, self.features.values(), strict=True):
            codes, at = filled[:, where[a.name]], self.places[a.name]
            if not values:
                matrix[:, at] = codes
            elif t is not None:
                matrix[:, at] = codes == t
            else:
                for i, value in enumerate(values):
                    matrix[:, at + i] = codes == a.values.index(value)
        return matrix if self.real.any() else Ragged.of(matrix != 0)

    def gold(self, table: Table) -> list[np.ndarray | None]:
        """Label numbers of each row; None without gold."""
        if table.sets is not None:
            return number_sets(table, self.labels)
        names = {a.name for a in table.attributes}
        if self.classes is not None and self.classes in names:
            return number_classes(table, self.labels, self.classes)
        absent = [label for label in self.labels if label not in names]
        if self.apart or self.classes is not None or len(absent) == len(self.labels):
            return [None] * len(table)
        if absent:
            raise DataError(table.path, None, f"some labels, but not {absent[0]!r}", "all labels or none")
        return number_columns(table, self.labels)


def _choose_features(table: Table, others: Collection[str]) -> dict[str, tuple[str, ...]]:
    kept = [a for a in table.attributes if a.name not in others]
    for a in kept:
        if a.kind in ("text", "hierarchical"):
            wanted = f"numeric or nominal features; drop={a.name} ignores it"
            wanted += f"; `spen-run texts text={a.name}` learns from texts" if a.kind == "text" else ""
            raise DataError(table.path, a.line, f"attribute {a.name!r} of type {a.kind}", wanted)
    if not kept:
        raise DataError(table.path, None, "no feature: all columns are labels or dropped", "at least one feature")
    return {a.name: a.values for a in kept}


def _check_dropped(table: Table, drop: Sequence[str], labels: Collection[str]) -> None:
    names = [a.name for a in table.attributes]
    for name in drop:
        if name not in names or name in labels:
            why = "is a label; name another column" if name in names else f"is not a column.{did_you_mean(name, names)}"
            raise ConfigError(f"drop= or task.sample_weight=: {name!r} of {table.path} {why}")


def _feature_names(name: str, values: Sequence[str]) -> list[str]:
    return [name] if not values or true_value(values) is not None else [f"{name}={value}" for value in values]
