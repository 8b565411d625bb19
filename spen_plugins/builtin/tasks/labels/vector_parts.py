"""Examples and parts of task `multilabel`: from files and from the sample, with scaled features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.builtin.tasks.labels.label_parts import Rows
from spen_plugins.builtin.tasks.labels.label_task import LabelTask
from spen_plugins.data.catalogue import locate
from spen_plugins.data.equal_inputs import make_row_keys
from spen_plugins.data.parts.file_parts import named_files
from spen_plugins.data.table import Ragged, Table, left_out
from spen_plugins.data.tables.label_columns import chosen_labels, label_sets, lists_names
from spen_plugins.data.tables.matrix import Matrix
from spen_plugins.data.tables.table_columns import Columns
from spen_plugins.data.tables.table_files import list_column, read_table
from spen_plugins.data.text import sha256
from spen_plugins.spaces import LabelSet
from spen_plugins.task import VectorInputs


@dataclass(frozen=True)
class Scaling:
    """(value - mean) / deviation of the real features; missing values become 0, the training mean.

    Args:
        real: mask of the real features, boolean `(size,)`; the others are unchanged.
        mean: mean of the training part's known values, `(reals,)`; 0 if none is known.
        std: their standard deviation (divided by n), `(reals,)`; 1 if it is 0.
    """

    real: np.ndarray
    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def fit(cls, training: np.ndarray, real: np.ndarray) -> Scaling:
        """Fits to `(rows, size)`, with NaN for missing values."""
        values = training[:, real].astype(np.float64)
        is_known = ~np.isnan(values)
        count = np.maximum(is_known.sum(0), 1)
        mean = np.where(is_known, values, 0).sum(0) / count
        std = np.sqrt((np.where(is_known, values - mean, 0) ** 2).sum(0) / count)
        # rounding can give a constant column a tiny deviation
        is_constant = std <= 1e-7 * np.abs(mean)
        return cls(real, mean, np.where(is_constant, 1.0, std))

    def apply(self, matrix: np.ndarray) -> None:
        """Scales `(rows, size)` in place."""
        values = (matrix[:, self.real] - self.mean) / self.std
        matrix[:, self.real] = np.where(np.isnan(values), 0.0, values)

    def facts(self) -> dict[str, Any]:
        return {"mean": self.mean.tolist(), "std": self.std.tolist()}

    @classmethod
    def restore(cls, facts: Mapping[str, Any], real: np.ndarray) -> Scaling:
        mean, std = (np.array(facts[name], dtype=np.float64) for name in ("mean", "std"))
        if not mean.shape == std.shape == (int(np.sum(real)),):
            raise ValueError(f"found {mean.shape} means and {std.shape} deviations for {int(np.sum(real))} features")
        return cls(real, mean, std)


@dataclass(frozen=True)
class Size:
    """value / size, for sparse features: values are then about as large as the ones of binary features.

    Args:
        size: root mean square of the training part's values that are not 0; 1 if there is none.
    """

    size: float

    @classmethod
    def fit(cls, values: np.ndarray) -> Size:
        """Fits to `(total,)`."""
        return cls(float(np.sqrt(np.mean(values.astype(np.float64) ** 2))) if len(values) else 1.0)

    def apply(self, values: np.ndarray) -> None:
        """Scales `(total,)` in place."""
        values /= self.size

    def facts(self) -> dict[str, Any]:
        return {"size": self.size}

    @classmethod
    def restore(cls, facts: Mapping[str, Any], real: np.ndarray) -> Size:
        return cls(float(facts["size"]))


UNEQUAL = 100  # ratio of sparse columns' sizes above which the task warns
SHOWN_FEATURES = 12  # maximal number of features shown if they are real, as reals are hardly ever 0


@dataclass(eq=False, slots=True)
class Example:
    """One row: the indices of its non-zero features, or its scaled vector; its label indices, None without gold; the
    scaled values of the non-zero features, if they are not all 1; and the weight of its loss."""

    features: np.ndarray
    gold: np.ndarray | None
    values: np.ndarray | None = None
    weight: float = 1.0


def make_example(features: Ragged | np.ndarray, gold: Sequence[np.ndarray | None], row: int) -> Example:
    """The example of a row."""
    values = None if isinstance(features, np.ndarray) or features.weight is None else features.weights(row)
    return Example(features[row], gold[row], values)


def collate_vectors(inputs: VectorInputs, examples: Sequence[Example]) -> dict[str, Tensor]:
    """The tensors of `VectorInputs`."""
    if not inputs.listed:
        return {"vector": torch.from_numpy(np.stack([example.features for example in examples]))}
    lengths = [len(example.features) for example in examples]
    indices = np.concatenate([example.features for example in examples]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]).astype(np.int64)
    tensors = {"indices": torch.from_numpy(indices), "offsets": torch.from_numpy(offsets)}
    if inputs.sparse:
        tensors["values"] = torch.from_numpy(np.concatenate([example.values for example in examples]))
    return tensors


def name_features(example: Example, names: Sequence[str], binary: bool) -> list[str]:
    """Names of the features that are 1; for real features the largest, with their values."""
    features, values = example.features, example.values
    if binary:
        return [names[i] for i in features.tolist()]
    if values is None:
        features, values = np.flatnonzero(features), features[features != 0]
    order = np.argsort(-np.abs(values), kind="stable")[:SHOWN_FEATURES]
    return [f"{names[features[i]]} {values[i]:.3g}" for i in order.tolist()]


class VectorParts(LabelTask):
    """Vectors with label sets, and their known columns."""

    inputs: VectorInputs
    kind = "vectors"

    def _select_features(self, matrix: Matrix) -> Ragged | np.ndarray:
        """The features of each row, not scaled."""
        if self.inputs.binary:
            return matrix.on()
        return matrix.listed() if self.inputs.sparse else matrix.dense()

    def _load_files(self) -> None:
        c = self.config
        files = {key: name for key, name in named_files(c).items() if key != "split"}
        first_path, *other_paths = files.values()
        lists = None if lists_names(c.labels) else list_column(locate(first_path), c.labels, c.separator)
        tables = [read_table(locate(first_path), unused=c.unused, lists=lists)]
        labels, label_file = chosen_labels(first_path, tables[0], c.labels, c.label_count, c.unused)
        if label_file is not None:
            self._files[label_file] = sha256(locate(label_file))
        columns = Columns.from_table(tables[0], labels, c.unused, c.root)
        if tables[0].sets is None:
            columns.gold(tables[0])  # its errors come before those of the files that are read like it
        tables += [read_table(locate(path), columns.column_values, columns.drop, lists) for path in other_paths]
        if tables[0].sets is not None:
            columns = replace(columns, labels=tuple(label_sets(tables)))
        self._set_columns(columns)
        encoded = dict(zip(files, map(self.columns.encode, tables), strict=True))
        inputs = {key: make_row_keys(features) for key, (features, _) in encoded.items()}
        label_sets_by_file = {key: gold for key, (_, gold) in encoded.items()}
        parts = self._divide(label_sets_by_file, inputs)
        if c.unseen and "test" in parts:
            parts["test"] = self._find_unseen_rows(parts, inputs, label_sets_by_file)
        self._warn_of_shared(parts, inputs)
        key, rows = parts["train"]
        self._fit_scaling(encoded[key][0], rows)
        for matrix, _ in encoded.values():
            self._scale(matrix)
        self._parts = {n: [make_example(*encoded[key], i) for i in rows] for n, (key, rows) in parts.items()}
        self._weigh_examples(parts)
        self._notes.insert(0, self._describe(zip(files.values(), tables, strict=True)))
        self._notes += [left_out(name) for name in columns.drop if name not in c.unused]

    def _find_unseen_rows(
        self, parts: Rows, inputs: Mapping[str, Sequence[bytes]], gold: Mapping[str, Sequence[np.ndarray | None]]
    ) -> tuple[str, Sequence[int]]:
        """The test rows that repeat no training row, features and labels."""

        def find_contents(key: str, row: int) -> tuple[bytes, bytes | None]:
            labels = gold[key][row]
            return inputs[key][row], None if labels is None else labels.tobytes()

        (train_key, train_rows), (key, rows) = parts["train"], parts["test"]
        train_contents = {find_contents(train_key, row) for row in train_rows}
        unseen_rows = [row for row in rows if find_contents(key, row) not in train_contents]
        self._split += (
            f"; {len(rows) - len(unseen_rows)} of {len(rows)} test rows repeat a training row and are left out"
        )
        return key, unseen_rows

    def _fit_scaling(self, features: Ragged | np.ndarray, rows: Sequence[int]) -> None:
        rows = rows[: None if self.config.rest else self.config.labelled]  # the rows that are trained on
        if isinstance(features, np.ndarray):
            self.scaling = Scaling.fit(features[list(rows)], self.columns.real)
        elif features.weight is not None:
            self.scaling = Size.fit(np.concatenate([features.weights(i) for i in rows]))
            columns, sizes = features.measure_columns(rows)
            if len(sizes) and (ratio := sizes.max() / sizes.min()) > UNEQUAL:
                large, small = (self.columns.names[columns[index]] for index in (sizes.argmax(), sizes.argmin()))
                self._warn(
                    f"the values of feature {large!r} are {ratio:,.0f} times as large as those of {small!r}, and one "
                    "number scales all sparse features, so the net hardly sees the small ones: scale the columns, for "
                    "example with scikit-learn's MaxAbsScaler, or pass a dense array"
                )

    def _scale(self, features: Ragged | np.ndarray) -> None:
        values = features if isinstance(features, np.ndarray) else features.weight
        if self.scaling is not None and values is not None:
            self.scaling.apply(values)

    def _describe(self, tables: Iterable[tuple[str, Table]]) -> str:
        """The files' recognised formats, and the numbers of their features by kind."""
        files = ", ".join(f"{path} as {table.note}" for path, table in tables)
        real = int(self.columns.real.sum())
        kinds = f"{real} real, {self.inputs.size - real} binary" + ", mostly 0" * self.columns.sparse
        note = f"read {files}; {self.inputs.size} features ({kinds}); {self._name_labels()}"
        if self.columns.has_sets and not self.columns.listed:
            return note
        names = list(self.columns.features)
        first_names = ", ".join(names[:10]) + ", …" * (len(names) > 10)
        return f"{note}; feature columns: {first_names} (drop=NAME ignores one)"

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
