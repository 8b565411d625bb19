"""Task `multilabel`: from vectors to label sets; ARFF, CSV, Parquet and libsvm files, arrays, or the sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spen_plugins.builtin.tasks.labels.label_settings import VectorsConfig, check_vectors
from spen_plugins.builtin.tasks.labels.label_task import LabelTask
from spen_plugins.data.catalogue import locate
from spen_plugins.data.equal_inputs import keys_of_rows
from spen_plugins.data.parts import given
from spen_plugins.data.parts.file_parts import in_file_encoding, named_files
from spen_plugins.data.table import Ragged, Table
from spen_plugins.data.tables.cells import left_out
from spen_plugins.data.tables.label_columns import chosen_labels, lists_names
from spen_plugins.data.tables.label_lists import ListColumn
from spen_plugins.data.tables.label_names import label_sets
from spen_plugins.data.tables.matrix import Matrix
from spen_plugins.data.tables.scaling import Scaling, Size
from spen_plugins.data.tables.table_columns import Columns
from spen_plugins.data.tables.table_files import list_column, read_table
from spen_plugins.data.tables.vector_items import parse_item
from spen_plugins.data.text import sha256
from spen_plugins.data.texts.own_columns import Columns as OwnColumns
from spen_plugins.data.texts.own_columns import columns_of_table
from spen_plugins.errors import ConfigError
from spen_plugins.settings.facts import listed
from spen_plugins.spaces import LabelSet
from spen_plugins.task import HELD_OUT, Shown, VectorInputs
from spen_plugins.task_parts import ReadsInputs, TakesExamples, TakesMatrices

SHOWN_FEATURES = 12  # most features shown if they are real, as reals are hardly ever 0


class Example(NamedTuple):
    """One row: the indices of its non-zero features, or its scaled vector; its label indices, None without gold; the
    scaled values of the non-zero features, if they are not all 1; and the weight of its loss."""

    features: np.ndarray
    gold: np.ndarray | None
    values: np.ndarray | None = None
    weight: float = 1.0


class MultiLabel(LabelTask, TakesExamples, TakesMatrices, ReadsInputs):
    """Multi-label classification; labels are columns, a column of lists, or paths of a hierarchical class."""

    inputs: VectorInputs
    Config = VectorsConfig
    kind = "vectors"
    column_keys = ("labels", "separator", "drop")

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._labels_keys = config.labels, config.separator

    @in_file_encoding
    def load(self) -> None:
        check_vectors(self.config)
        if self.config.in_memory:
            raise given.not_kept()
        if self.config.corpus:
            self._load_sample()
        else:
            self._load_files()
        self._hide_gold(_hidden, lambda path: self._read(path, gold=None)[1])
        self._check_parts()
        self._weigh_classes()

    def take(self, parts: Mapping[str, Any], held_out: float = HELD_OUT, seed: int = 0) -> None:
        """Parts are pairs of vectors and labels.

        Vectors are rows of numbers: a NumPy array, a matrix of scipy.sparse, a DataFrame or a list, `(n, features)`.
        Features are binary if all are 0 or 1 in every training example, and must be in the other parts; otherwise all
        are scaled, those of a sparse matrix by one number, and NaN is a missing value. Labels are a matrix of 0 and 1,
        `(n, labels)`, or a list with each example's label names.
        """
        check_vectors(self.config)
        matrices, sets, columns, weights = given.rows(parts)
        self._set_columns(columns)
        features = {name: self._features(matrix) for name, matrix in matrices.items()}
        inputs = {name: keys_of_rows(some) for name, some in features.items()}
        numbers = {name: range(len(matrix)) for name, matrix in matrices.items()}
        rows, self._split, self._notes = given.divide(numbers, inputs, sets["train"], held_out, seed)
        self._fit_scaling(features["train"], rows["train"])
        for some in features.values():
            self._scale(some)
        source = {name: name if name in matrices else "train" for name in rows}
        self._parts = {n: [_example(features[source[n]], sets[source[n]], i) for i in some] for n, some in rows.items()}
        self._files = given.checksums({n: [example[:3] for example in some] for n, some in self._parts.items()})
        if weights is not None:
            train = zip(self._parts["train"], rows["train"], strict=True)
            self._parts["train"] = [self._weighted(example, weights[i]) for example, i in train]
        self._hide_gold(_hidden, lambda path: self._read(path, gold=None)[1])
        self._weigh_classes()

    def _features(self, matrix: Matrix) -> Ragged | np.ndarray:
        """Of each row, not scaled."""
        if self.inputs.binary:
            return matrix.on()
        return matrix.listed() if self.inputs.sparse else matrix.dense()

    def _load_files(self) -> None:
        c = self.config
        files = {key: name for key, name in named_files(c).items() if key != "split"}
        first, *others = files.values()
        lists = None if lists_names(c.labels) else list_column(locate(first), c.labels, c.separator)
        tables = [read_table(locate(first), unused=c.unused, lists=lists)]
        labels, listed = chosen_labels(first, tables[0], c.labels, c.label_count, c.unused)
        if listed is not None:
            self._files[listed] = sha256(locate(listed))
        start = Columns.of(tables[0], labels, c.unused, c.root)
        if tables[0].sets is None:
            start.gold(tables[0])  # an error in it comes before those of files that are read like it
        tables += [read_table(locate(path), start.known, start.drop, lists) for path in others]
        if tables[0].sets is not None:
            start = replace(start, labels=tuple(label_sets(tables)))
        self._set_columns(start)
        encoded = dict(zip(files, map(self.columns.encode, tables), strict=True))
        inputs = {key: keys_of_rows(features) for key, (features, _) in encoded.items()}
        labelled = {key: gold for key, (_, gold) in encoded.items()}
        parts = self._divide(labelled, inputs)
        if c.unseen and "test" in parts:
            parts["test"] = self._unseen(parts, {key: _contents(inputs[key], gold) for key, gold in labelled.items()})
        self._warn_of_shared(parts, inputs)
        key, rows = parts["train"]
        self._fit_scaling(encoded[key][0], rows)
        for matrix, _ in encoded.values():
            self._scale(matrix)
        self._parts = {n: [_example(*encoded[key], i) for i in rows] for n, (key, rows) in parts.items()}
        self._weigh_examples(parts)
        self._notes.insert(0, self._described(zip(files.values(), tables, strict=True)))
        self._notes += [left_out(name) for name in start.drop if name not in c.unused]

    def _unseen(
        self, parts: Mapping[str, tuple[str, Sequence[int]]], contents: Mapping[str, Sequence[Any]]
    ) -> tuple[str, Sequence[int]]:
        """The test rows that repeat no training row."""
        (train, trained), (key, rows) = parts["train"], parts["test"]
        seen = {contents[train][row] for row in trained}
        kept = [row for row in rows if contents[key][row] not in seen]
        self._split += f"; {len(rows) - len(kept)} of {len(rows)} test rows repeat a training row and are left out"
        return key, kept

    def _fit_scaling(self, features: Ragged | np.ndarray, rows: Sequence[int]) -> None:
        rows = rows[: None if self.config.rest else self.config.labelled]  # those that are trained on
        if isinstance(features, np.ndarray):
            self.scaling = Scaling.fit(features[list(rows)], self.columns.real)
        elif features.weight is not None:
            self.scaling = Size.fit(np.concatenate([features.weights(i) for i in rows]))

    def _scale(self, features: Ragged | np.ndarray) -> None:
        values = features if isinstance(features, np.ndarray) else features.weight
        if self.scaling is not None and values is not None:
            self.scaling.apply(values)

    def _described(self, tables: Iterable[tuple[str, Table]]) -> str:
        """What was recognised, in a sentence."""
        files = ", ".join(f"{path} as {table.format} ({len(table)} rows)" for path, table in tables)
        real = int(self.columns.real.sum())
        kinds = f"{real} real, {self.inputs.size - real} binary" + ", mostly 0" * self.columns.sparse
        columns = "" if self.columns.apart and not self.columns.listed else f"; {self._columns_named()}"
        return f"read {files}; {self.inputs.size} features ({kinds}); {self._labels_named()}{columns}"

    def _columns_named(self) -> str:
        """The first ten columns that are features, and how to leave some out."""
        names = list(self.columns.features)
        some = ", ".join(names[:10]) + ", …" * (len(names) > 10)
        return f"feature columns: {some} (to leave some out: drop=NAME)"

    def _load_sample(self) -> None:
        from spen_plugins.samples import labels as sample

        words = dict.fromkeys(sample.words(), ("0", "1"))
        self._set_columns(Columns(words, tuple(sample.labels())))
        self._parts = {n: list(map(Example, x, y)) for n, (x, y) in sample.bags().items()}
        self._split = "the sample corpus's own (synthetic)"

    def _set_columns(self, columns: Columns) -> None:
        self.columns = columns
        self.scaling: Scaling | Size | None = None
        self.space = LabelSet(list(columns.labels))
        self.inputs = VectorInputs(len(columns.names), not columns.real.any(), columns.sparse)

    def collate_inputs(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        if not self.inputs.listed:
            return {"vector": torch.from_numpy(np.stack([example.features for example in examples]))}
        lengths = [len(example.features) for example in examples]
        indices = np.concatenate([example.features for example in examples]).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]).astype(np.int64)
        inputs = {"indices": torch.from_numpy(indices), "offsets": torch.from_numpy(offsets)}
        if self.inputs.sparse:
            inputs["values"] = torch.from_numpy(np.concatenate([example.values for example in examples]))
        return inputs

    def show(self, example: Example) -> Shown:
        """Names of the features that are 1; for real features the largest, scaled, with their values."""
        names, features = self.columns.names, example.features
        if self.inputs.binary:
            return Shown([names[i] for i in features.tolist()])
        if example.values is not None:
            order = np.argsort(-np.abs(example.values), kind="stable")[:SHOWN_FEATURES]
            return Shown([f"{names[features[i]]} {example.values[i]:.3g}" for i in order.tolist()])
        order = np.argsort(-np.abs(features), kind="stable")[:SHOWN_FEATURES]
        return Shown([f"{names[i]} {features[i]:.3g}" for i in order.tolist() if features[i]])

    def read(self, path: str) -> Sequence[Example]:
        return self._noted(path)

    def read_inputs(self, path: str) -> Sequence[Example]:
        """As `read`; labels in a column of lists are not looked at."""
        return self._noted(path, gold=None)

    def _noted(self, path: str, gold: bool | None = False) -> Sequence[Example]:
        table, examples = self._read(locate(path), gold)
        self._notes = [f"{path}: read as {table.format} ({len(table)} rows)"]
        self._source = locate(path)
        return examples

    def _weighted(self, example: Example, weight: float) -> Example:
        return example._replace(weight=weight)

    def _own_columns(self, path: Path) -> OwnColumns | None:
        return columns_of_table(path)

    def _read(self, path: Path, gold: bool | None = False) -> tuple[Table, list[Example]]:
        c = self.config
        if not self.columns.listed and (c.labels, c.separator) != self._labels_keys:
            raise ConfigError(
                "labels= and separator= are of a column of lists; this run's labels are columns of 0 and 1"
            )
        if learned := [name for name in c.unused if name in self.columns.features]:
            raise ConfigError(f"drop=: the run learned from the column {learned[0]!r}; leave it in")
        columns = replace(self.columns, drop=(*self.columns.drop, *c.unused))
        lists = ListColumn(c.labels, c.separator, gold) if self.columns.listed else None
        table = read_table(path, columns.known, columns.drop, lists)
        features, labelled = columns.encode(table)
        self._scale(features)
        return table, [_example(features, labelled, i) for i in range(len(table))]

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
            at = np.flatnonzero(np.nan_to_num(vector)).astype(np.int32)
            values = vector[at]
            self._scale(Ragged(np.array([0, len(at)]), at, values))
            return Example(at, gold, values)
        self._scale(vector[None])
        return Example(vector, gold)

    def parse_matrix(self, matrix: Any) -> Sequence[Example]:
        """Rows of numbers, as `take` has them."""
        matrix = Matrix.of(matrix, "items").ordered(self.columns.names, "items")
        matrix.check_binary(self.columns.names, "items", ~self.columns.real)
        features = self._features(matrix)
        self._scale(features)
        return [_example(features, [None] * len(matrix), i) for i in range(len(matrix))]

    def facts(self) -> dict[str, Any]:
        c = self.columns
        words = [[name, list(values)] for name, values in c.label_values.items()]
        return {
            "labels": list(c.labels),
            "classes": c.classes,
            "features": [[name, list(values)] for name, values in c.features.items()],
            "drop": list(c.drop),
            "apart": c.apart,
            "sparse": c.sparse,
            **({"listed": True} if c.listed else {}),
            "scaling": None if self.scaling is None else self.scaling.facts(),
            **self.decoder_facts(),
            "split": self._split,
            **({"label_values": words} if words else {}),
        }

    def restore(self, facts: Mapping[str, Any]) -> None:
        features = {name: tuple(values) for name, values in facts["features"]}
        how = {name: facts.get(name, False) for name in ("apart", "sparse", "listed")}
        words = {name: tuple(values) for name, values in facts.get("label_values", ())}
        labels, drop = tuple(listed(facts, "labels")), tuple(listed(facts, "drop"))
        self._set_columns(Columns(features, labels, facts["classes"], drop, **how, label_values=words))
        if facts["scaling"] is not None:
            self.scaling = (Size if self.columns.sparse else Scaling).restore(facts["scaling"], self.columns.real)
        self.restore_decoder(facts)
        self._split = facts["split"]


def _contents(inputs: Sequence[bytes], gold: Sequence[np.ndarray | None]) -> list[tuple[bytes, bytes | None]]:
    """Of each row a key that rows of equal features and labels have in common."""
    return [(row, None if on is None else on.tobytes()) for row, on in zip(inputs, gold, strict=True)]


def _hidden(example: Example) -> Example:
    return example._replace(gold=None)


def _example(features: Ragged | np.ndarray, gold: Sequence[np.ndarray | None], row: int) -> Example:
    values = None if isinstance(features, np.ndarray) or features.weight is None else features.weights(row)
    return Example(features[row], gold[row], values)
