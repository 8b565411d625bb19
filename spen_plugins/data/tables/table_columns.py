"""Columns of a table as features and labels: one-hot nominals, sparse binaries, reals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spen_plugins.data.table import Attribute, Ragged, Table
from spen_plugins.data.tables.arff import class_sets
from spen_plugins.data.tables.cells import BINARY
from spen_plugins.data.tables.label_names import label_columns
from spen_plugins.errors import ConfigError, DataError, did_you_mean

_TRUE_OF = {("0", "1"): "1", ("no", "yes"): "yes", ("false", "true"): "true", ("f", "t"): "t", ("n", "y"): "y"}


def positive(values: Sequence[str]) -> int | None:
    """Index of the "true" value of a yes-no attribute; None for any other nominal."""
    true = _TRUE_OF.get(tuple(sorted(value.lower() for value in values)))
    return None if true is None else [value.lower() for value in values].index(true)


ROOT = "root"
"""Name of a hierarchy's root, if it is a label."""
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
        names = [a.name for a in table.attributes]
        drop = list(dict.fromkeys([*drop, *table.keys]))
        for name in drop:
            if name not in names:
                near = did_you_mean(name, names)
                raise ConfigError(f"drop= or task.sample_weight=: {table.path} has no attribute {name!r}.{near}")
        taken, classes = label_columns(table, labels)
        apart = table.sets is not None
        own = () if apart else taken  # those that are attributes
        for name in drop:
            if name == classes or (classes is None and name in own):
                raise ConfigError(
                    f"drop= or task.sample_weight=: {name!r} of {table.path} is a label; name another column"
                )
        not_features = {*drop, *own, classes}
        features = {a.name: a.values for a in table.attributes if a.name not in not_features}
        for a in table.attributes:
            if a.name in features and a.kind in ("text", "hierarchical"):
                raise DataError(
                    table.path, a.line, f"attribute {a.name!r} of type {a.kind}",
                    "numeric or nominal features; drop=NAME leaves it out",
                )  # fmt: skip
        if not features:
            raise DataError(table.path, None, "no column that is neither a label nor left out", "features")
        if root and classes is None:
            raise ConfigError(f"task.root: {table.path} has no hierarchical attribute whose root could be a label")
        sparse = apart and table.density < SPARSE and not all(features.values())
        told = classes is not None or table.format == "ARFF"  # by each file's header
        words = {a.name: a.values for a in table.attributes if a.name in own and a.values not in ((), BINARY)}
        named = (ROOT, *taken) if root else taken
        return cls(features, named, classes, tuple(drop), apart, sparse, {} if told else words, table.listed)

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
        known = {*self.features, *self.labels, *self.drop, *table.keys, self.classes}
        for a in table.attributes:
            if a.name not in known:
                near = did_you_mean(a.name, [n for n in known if n])
                raise DataError(table.path, a.line, f"attribute {a.name!r}", f"attributes of the training file.{near}")
        for name, values in self.features.items():
            if name not in where:
                raise DataError(table.path, None, f"no attribute {name!r}", "all features of the training file")
            a = table.attributes[where[name]]
            if set(a.values) != set(values) or (a.kind == "numeric") != (not values):
                found = "{" + ", ".join(a.values) + "}" if a.values else a.kind
                wanted = "{" + ", ".join(values) + "}" if values else "numeric"
                raise DataError(table.path, a.line, f"attribute {name!r} of type {found}", f"{wanted}, as in training")
        return self._features(table, where), self.gold(table)

    def _features(self, table: Table, where: Mapping[str, int]) -> Ragged | np.ndarray:
        attributes = [table.attributes[where[name]] for name in self.features]
        true = [positive(a.values) for a in attributes]
        if self.sparse:
            assert table.start is not None and table.column is not None
            return Ragged(table.start, table.column, table.code)
        if table.dense is None and all(t == 1 for t in true):  # omitted cells are "no": keep the written ones
            return _picked(table, [where[name] for name in self.features])
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
            return self._sets(table)
        if self.apart:
            return [None] * len(table)
        where = {a.name: i for i, a in enumerate(table.attributes)}
        if self.classes is not None:
            if self.classes not in where:
                return [None] * len(table)
            a = table.attributes[where[self.classes]]
            place = {label: i for i, label in enumerate(self.labels)}
            for value in a.values:
                if value not in place:
                    near = did_you_mean(value, self.labels)
                    raise DataError(table.path, a.line, f"class {value!r}", f"the training file's hierarchy.{near}")
            moved = np.array([place[value] for value in a.values], dtype=np.int32)
            always = [place[ROOT]] if ROOT in place and ROOT not in a.values else []
            return [
                None if row is None else np.sort(np.append(moved[row], always)).astype(np.int32)
                for row in class_sets(table)
            ]
        there = [label for label in self.labels if label in where]
        if not there:
            return [None] * len(table)
        if len(there) < len(self.labels):
            absent = next(label for label in self.labels if label not in where)
            raise DataError(table.path, None, f"no label {absent!r} beside others", "all labels, or none of them")
        attributes = [table.attributes[where[label]] for label in self.labels]
        true = [1 if a.kind == "numeric" else positive(a.values) for a in attributes]
        for a, t in zip(attributes, true, strict=True):
            if t is None:
                raise DataError(table.path, a.line, f"{{{', '.join(a.values)}}} for label {a.name!r}", "{0, 1}")
        columns = [where[label] for label in self.labels]
        if table.dense is None and all(t == 1 for t in true) and _only_0_and_1(table, columns):
            return list(_picked(table, columns))
        codes = table.filled()[:, columns]
        return _gold_rows(table, codes, attributes, np.array(true, dtype=np.float32))

    def _sets(self, table: Table) -> list[np.ndarray | None]:
        """Label numbers of each row, of labels that are no attributes."""
        place = {label: i for i, label in enumerate(self.labels)}
        rows: list[np.ndarray | None] = []
        for line, names in zip(table.line, table.sets or (), strict=True):
            for name in names or ():
                if name not in place:
                    wanted = f"one of the {len(place)} labels of the training file.{did_you_mean(name, place)}"
                    raise DataError(table.path, line, f"label {name!r}", wanted)
            rows.append(None if names is None else np.array(sorted({place[name] for name in names}), dtype=np.int32))
        return rows


def _feature_names(name: str, values: Sequence[str]) -> list[str]:
    return [name] if not values or positive(values) is not None else [f"{name}={value}" for value in values]


def _picked(table: Table, columns: Sequence[int]) -> Ragged:
    """The columns that are 1 in each row of a sparse table, as sorted indices into `columns`."""
    place = np.full(len(table.attributes), -1, dtype=np.int32)
    place[list(columns)] = np.arange(len(columns))
    row = np.repeat(np.arange(len(table)), np.diff(table.start))
    keep = (place[table.column] >= 0) & (table.code == 1)
    row, value = row[keep], place[table.column[keep]]
    order = np.lexsort((value, row))
    start = np.concatenate([[0], np.bincount(row, minlength=len(table)).cumsum()])
    return Ragged(start, value[order])


def _only_0_and_1(table: Table, columns: Sequence[int]) -> bool:
    ours = np.zeros(len(table.attributes), dtype=bool)
    ours[list(columns)] = True
    return bool(np.isin(table.code[ours[table.column]], (0, 1)).all())


def _gold_rows(
    table: Table, codes: np.ndarray, attributes: list[Attribute], true: np.ndarray
) -> list[np.ndarray | None]:
    """Label numbers from codes `(rows, labels)`; a row with all labels missing has no gold."""
    missing = np.isnan(codes)
    bad = ~missing & ~np.isin(codes, (0, 1))
    half = missing & ~missing.all(1, keepdims=True)
    if bad.any() or half.any():
        row, label = np.argwhere(bad | half)[0]
        found = "?" if half[row, label] else f"{codes[row, label]:g}"
        wanted = "0 or 1 (or ? for all labels of a row)"
        raise DataError(table.path, table.line[row], f"{found} for label {attributes[label].name!r}", wanted)
    gold, absent = Ragged.of(codes == true), missing.all(1)
    return [None if absent[i] else gold[i] for i in range(len(gold))]
