"""Task `multilabel`: from vectors to label sets; ARFF, CSV, Parquet and libsvm files, arrays, or the sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from spen_plugins.builtin.tasks.labels.label_hierarchy import list_path_parents
from spen_plugins.builtin.tasks.labels.label_parts import Columns as OwnColumns
from spen_plugins.builtin.tasks.labels.label_parts import find_table_columns
from spen_plugins.builtin.tasks.labels.label_settings import VectorsConfig, check_data
from spen_plugins.builtin.tasks.labels.vector_parts import (
    Example,
    Scaling,
    Size,
    VectorParts,
    collate_vectors,
    make_example,
    name_features,
)
from spen_plugins.data.equal_inputs import make_row_keys
from spen_plugins.data.parts import given
from spen_plugins.data.table import Ragged
from spen_plugins.data.tables.label_cells import SEPARATOR
from spen_plugins.data.tables.matrix import Matrix, parse_item
from spen_plugins.data.tables.table_columns import Columns
from spen_plugins.data.tables.table_files import ListColumn, read_table
from spen_plugins.errors import ConfigError
from spen_plugins.settings.facts import listed
from spen_plugins.task import HELD_OUT, Shown
from spen_plugins.task_parts import TakesMatrices


class MultiLabel(VectorParts, TakesMatrices):
    """Multi-label classification; labels are columns, a column of lists, or paths of a hierarchical class."""

    Config = VectorsConfig
    column_keys = ("labels", "separator", "drop")

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._label_settings = config.labels, config.separator

    def _finish(self) -> None:
        self._hide_gold()
        self._check_parts()
        self._describe_labels()

    def take(self, parts: Mapping[str, Any], held_out: float = HELD_OUT, seed: int = 0) -> None:
        """Parts are pairs of vectors and labels.

        Vectors are rows of numbers: a NumPy array, a matrix of scipy.sparse, a DataFrame or a list, `(n, features)`.
        Features are binary if all are 0 or 1 in every training example, and must be in the other parts; otherwise all
        are scaled, those of a sparse matrix by one number, and NaN is a missing value. Labels are a matrix of 0 and 1,
        `(n, labels)`, or a list with each example's label names.
        """
        self._check_config()
        matrices, sets, columns, weights = given.rows(parts)
        self._set_columns(columns)
        features = {name: self._select_features(matrix) for name, matrix in matrices.items()}
        inputs = {name: make_row_keys(values) for name, values in features.items()}
        numbers = {name: range(len(matrix)) for name, matrix in matrices.items()}
        rows, self._split, self._notes = given.divide(numbers, inputs, sets["train"], held_out, seed)
        self._fit_scaling(features["train"], rows["train"])
        for values in features.values():
            self._scale(values)
        source = {name: name if name in matrices else "train" for name in rows}
        self._parts = {
            n: [make_example(features[source[n]], sets[source[n]], i) for i in part_rows]
            for n, part_rows in rows.items()
        }
        self._files = given.checksums(
            {n: [(e.features, e.gold, e.values) for e in examples] for n, examples in self._parts.items()}
        )
        if weights is not None:
            train = zip(self._parts["train"], rows["train"], strict=True)
            self._parts["train"] = [replace(example, weight=weights[i]) for example, i in train]
        self._hide_gold()
        self._describe_labels()

    def _check_config(self) -> None:
        check_data(self.config, ("corpus", "in_memory"), ("labels", "label_count"))
        if isinstance(self.config.labels, int):
            raise ConfigError(f"task.labels: found {self.config.labels}; expected column names, or label_count=")
        if self.config.labels is not None and self.config.label_count is not None:
            raise ConfigError("task: found labels and label_count; expected one of them")

    def _list_parents(self) -> list[int | None] | None:
        return None if self.columns.classes is None else list_path_parents(self.columns.labels)

    def collate_inputs(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        return collate_vectors(self.inputs, examples)

    def show(self, example: Example) -> Shown:
        """Names of the features that are 1; for real features the largest, scaled, with their values."""
        return Shown(name_features(example, self.columns.names, self.inputs.binary))

    def _find_separator(self) -> str | None:
        return (self.config.separator or SEPARATOR) if self.columns.listed else None

    def _read_own_columns(self, path: Path) -> OwnColumns | None:
        return find_table_columns(path)

    def _read(self, path: Path, gold: bool | None) -> tuple[str, list[Example]]:
        c = self.config
        if not self.columns.listed and (c.labels, c.separator) != self._label_settings:
            raise ConfigError("labels= and separator= require a column of lists; this run has columns of 0 and 1")
        if used_features := [name for name in c.unused if name in self.columns.features]:
            raise ConfigError(f"drop=: found {used_features[0]!r}, a feature of the run; keep this column")
        columns = replace(self.columns, drop=(*self.columns.drop, *c.unused))
        lists = ListColumn(c.labels, c.separator, gold) if self.columns.listed else None
        table = read_table(path, columns.column_values, columns.drop, lists)
        features, label_sets = columns.encode(table)
        self._scale(features)
        examples = [make_example(features, label_sets, i) for i in range(len(table))]
        return table.note, examples

    def parse(self, item: Any) -> Example:
        """One example from a Python or JSON value, features as in a data file (not scaled).

        `{"vector": [0, 1, ...]}`: every feature in order. `{"features": {"age": 3.5, "colour": "red"}}`: by name;
        omitted features are 0, or missing if real. `{"features": ["word", ...]}`: the names of the features that are 1.
        Optional `"labels": ["a", "b"]` are gold.
        """
        vector, gold = parse_item(self.columns, item)
        if self.inputs.binary:
            return Example(np.flatnonzero(vector).astype(np.int32), gold)
        if self.inputs.sparse:
            indices = np.flatnonzero(np.nan_to_num(vector)).astype(np.int32)
            values = vector[indices]
            self._scale(Ragged(np.array([0, len(indices)]), indices, values))
            return Example(indices, gold, values)
        self._scale(vector[None])
        return Example(vector, gold)

    def parse_matrix(self, matrix: Any) -> Sequence[Example]:
        """Rows of numbers, as in `take`."""
        matrix = Matrix.from_data(matrix, "items").ordered(self.columns.names, "items")
        matrix.check_binary(self.columns.names, "items", ~self.columns.real)
        features = self._select_features(matrix)
        self._scale(features)
        return [make_example(features, [None] * len(matrix), i) for i in range(len(matrix))]

    def facts(self) -> dict[str, Any]:
        c = self.columns
        label_values = [[name, list(values)] for name, values in c.label_values.items()]
        return {
            "labels": list(c.labels),
            "classes": c.classes,
            "features": [[name, list(values)] for name, values in c.features.items()],
            "drop": list(c.drop),
            "apart": c.has_sets,
            "sparse": c.sparse,
            **({"listed": True} if c.listed else {}),
            "scaling": None if self.scaling is None else self.scaling.facts(),
            **self.label_facts(),
            "split": self._split,
            **({"label_values": label_values} if label_values else {}),
        }

    def restore(self, facts: Mapping[str, Any]) -> None:
        features = {name: tuple(values) for name, values in facts["features"]}
        flags = {"has_sets": facts["apart"], "sparse": facts["sparse"], "listed": facts.get("listed", False)}
        label_values = {name: tuple(values) for name, values in facts.get("label_values", ())}
        labels, drop = tuple(listed(facts, "labels")), tuple(listed(facts, "drop"))
        self._set_columns(Columns(features, labels, facts["classes"], drop, **flags, label_values=label_values))
        if facts["scaling"] is not None:
            self.scaling = (Size if self.columns.sparse else Scaling).restore(facts["scaling"], self.columns.real)
        self.restore_labels(facts)
        self._split = facts["split"]
