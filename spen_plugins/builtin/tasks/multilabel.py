"""Task `multilabel`: from vectors to label sets; Mulan and HMC ARFF files, arrays, or the embedded sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.builtin.tasks import given
from spen_plugins.builtin.tasks.label_task import LabelTask
from spen_plugins.datasets import locate
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.readers.arff import Arff, read_arff
from spen_plugins.readers.items import parse_item
from spen_plugins.readers.matrix import Matrix, SparseRow, is_matrix
from spen_plugins.readers.scaling import Scaling
from spen_plugins.readers.split import read_split
from spen_plugins.readers.table import Columns, read_label_names
from spen_plugins.readers.text import sha256
from spen_plugins.spaces import LabelSet
from spen_plugins.task import HELD_OUT, PARTS, Shown, VectorInputs

_COLUMNS = {"labels", "label_count", "drop"}
FORMS = (
    ({"corpus"}, set()),
    ({"in_memory"}, set()),
    ({"file", "split"}, _COLUMNS),
    ({"train", "validation"}, {"test", *_COLUMNS}),
)
"""Forms of naming the data: required settings, and optional ones."""
DATA_KEYS = ("corpus", "in_memory", "file", "split", *PARTS, "labels", "label_count", "drop")
SHOWN_FEATURES = 12  # most features shown if they are real, as reals are hardly ever 0


class Example(NamedTuple):
    """One row: the indices of its non-zero features, or its scaled vector; and its label indices, None without gold."""

    features: np.ndarray | SparseRow
    gold: np.ndarray | None


class MultiLabel(LabelTask):
    """Multi-label classification; labels are an XML list's, the last n attributes, or paths of a hierarchical class."""

    inputs: VectorInputs

    class Config(LabelTask.Config):
        corpus: Literal["sample"] | None = None
        """"sample": the synthetic corpus of the package; null: the files below."""
        in_memory: bool = False
        """If true, the examples are given in Python, by `sp.train`, and not kept."""
        file: str | None = None
        """ARFF file that is divided into parts by `split`."""
        split: str | None = None
        """JSON file {"train": rows, "validation": rows, "test": rows}, counted from 0 (`spen data split` makes one)."""
        train: str | None = None
        """ARFF file of the training part, if each part has its own file."""
        validation: str | None = None
        """ARFF file of the validation part."""
        test: str | None = None
        """ARFF file of the test part."""
        labels: str | None = None
        """Mulan's XML list of labels; by default the ARFF file's name with .xml, if it exists."""
        label_count: int | None = Field(None, ge=1)
        """Number of labels, which are the last attributes."""
        root: bool = False
        """If true, the root of a label hierarchy, which is on in every example, is a label, as in Lee et al. (2022)."""
        drop: list[str] = Field(default_factory=list)
        """Attributes that are not used."""

    def load(self) -> None:
        self._check_settings()
        if self.config.in_memory:
            raise given.not_kept()
        if self.config.corpus:
            self._load_sample()
        else:
            self._load_files()
            self._check_parts(self._sources())

    def take(self, parts: Mapping[str, Any], held_out: float = HELD_OUT, seed: int = 0) -> None:
        """Parts are pairs of vectors and labels.

        Vectors are rows of numbers: a NumPy array, a matrix of scipy.sparse, a DataFrame or a list, `(n, features)`.
        Features that are 0 or 1 in every example are binary; if there are others, all are scaled, and NaN is a missing
        value. Labels are a matrix of 0 and 1, `(n, labels)`, or a list with each example's label names.
        """
        self._check_settings()
        found = given.pairs(parts)
        matrices = {name: Matrix.of(x, f"the vectors of {name}") for name, (x, _) in found.items()}
        train = matrices["train"]
        names = train.names or tuple(f"x{i}" for i in range(train.width))
        matrices = {name: matrix.ordered(names, f"the vectors of {name}") for name, matrix in matrices.items()}
        labels, sets = given.label_sets({name: y for name, (_, y) in found.items()})
        binary = all(matrix.not_binary() is None for matrix in matrices.values())
        self._set_columns(Columns(dict.fromkeys(names, ("0", "1") if binary else ()), tuple(labels)))
        rows = {name: range(len(matrix)) for name, matrix in matrices.items()}
        held = "validation" not in rows
        rows, self._split = given.divide(rows, sets["train"], len(labels), held_out, seed)
        if not binary:
            self.scaling = train.scaling(np.array(rows["train"]))
        vectors = {name: self._vectors(matrix) for name, matrix in matrices.items()}
        self._parts = {}
        for name, numbers in rows.items():
            of = "train" if held and name == "validation" else name
            self._parts[name] = [Example(vectors[of][i], sets[of][i]) for i in numbers]
        self._files = given.checksums(self._parts)

    def _vectors(self, matrix: Matrix) -> Sequence[Any]:
        """Features of each row, as an example has them."""
        if not self.inputs.binary:
            return matrix.scaled(self.scaling) if self.scaling else matrix.values
        on = matrix.on()
        return [on[i] for i in range(len(on))]

    def _check_settings(self) -> None:
        """Raise ConfigError for settings without data, or with unused ones."""
        c = self.config
        named = {name for name in DATA_KEYS if getattr(c, name) not in (None, False, [])}
        if "file" in named and not named & {"split", "corpus", "in_memory", "train", "validation", "test"}:
            raise ConfigError(f"task.split: {c.file} is one file; make a split with `spen data split {c.file}`")
        for needed, allowed in FORMS:
            if needed <= named <= needed | allowed and not {"labels", "label_count"} <= named:
                return
        found = ", ".join(f"task.{name}" for name in DATA_KEYS if name in named) or "no data"
        hint = " To put files in the place of a config's own data set, pass data=files." if c.corpus and c.train else ""
        raise ConfigError(
            f"task: found {found}; expected one of corpus='sample' or in_memory=true alone, file=ARFF with split=JSON, "
            "or train= and validation= (and test=) ARFF files; files perhaps with drop=, and with labels=XML or "
            f"label_count=n, not both.{hint}"
        )

    def _load_files(self) -> None:
        c = self.config
        files = [c.file] if c.file else [p for p in (c.train, c.validation, c.test) if p]
        tables = [self._read(path) for path in files]
        self._set_columns(Columns.of(tables[0], self._label_names(files[0], tables[0]), c.drop, c.root))
        encoded = [self.columns.encode(table) for table in tables]
        if c.file:
            where = locate(c.split)
            rows = read_split(where, len(tables[0]))
            self._files[c.split] = sha256(where)
            self._split = f"rows of {c.split}"
            parts = {name: (*encoded[0], rows[name]) for name in PARTS}
        else:
            self._split = "files " + ", ".join(files)
            parts = {n: (x, y, range(len(y))) for n, (x, y) in zip(PARTS, encoded, strict=False)}
        if not self.inputs.binary:
            vectors, _, training = parts["train"]
            self.scaling = Scaling.fit(vectors[list(training)], self.columns.real)
            for matrix, _ in encoded:
                self.scaling.apply(matrix)
        self._parts = {n: [Example(x[i], y[i]) for i in rows] for n, (x, y, rows) in parts.items()}

    def _sources(self) -> dict[str, tuple[object, str]]:
        """File and setting of each part."""
        if self.config.split:
            return dict.fromkeys(PARTS, (self.config.split, "task.split"))
        return {name: (getattr(self.config, name), f"task.{name}") for name in PARTS}

    def _load_sample(self) -> None:
        from spen_plugins.samples import labels as sample

        words = dict.fromkeys(sample.words(), ("0", "1"))
        self._set_columns(Columns(words, tuple(sample.labels())))
        self._parts = {n: list(map(Example, x, y)) for n, (x, y) in sample.make().items()}
        self._split = "the sample corpus's own (synthetic)"

    def _set_columns(self, columns: Columns) -> None:
        self.columns, self.scaling = columns, None
        self.space = LabelSet(list(columns.labels))
        self.inputs = VectorInputs(len(columns.names), binary=not columns.real.any())

    def _read(self, path: str) -> Arff:
        where = locate(path)
        table = read_arff(where)
        self._files[path] = sha256(where)
        return table

    def _label_names(self, path: str, table: Arff) -> list[str] | int | None:
        if any(a.kind == "hierarchical" for a in table.attributes):
            if self.config.labels or self.config.label_count is not None:
                key = "labels" if self.config.labels else "label_count"
                raise ConfigError(f"task.{key}: labels of {path} are its hierarchical attribute's paths; leave it out")
            return None
        beside = locate(path).with_suffix(".xml")
        if self.config.labels:
            where = locate(self.config.labels)
        elif self.config.label_count is not None or not beside.exists():
            return self.config.label_count
        else:
            where = beside
        self._files[self.config.labels or str(Path(path).with_suffix(".xml"))] = sha256(where)
        return read_label_names(where, table)

    def collate_inputs(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        if not self.inputs.binary:
            return {"vector": torch.from_numpy(np.stack([example.features for example in examples]))}
        lengths = [len(example.features) for example in examples]
        indices = np.concatenate([example.features for example in examples]).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]).astype(np.int64)
        return {"indices": torch.from_numpy(indices), "offsets": torch.from_numpy(offsets)}

    def show(self, example: Example) -> Shown:
        """Names of the features that are 1; for real features the largest, scaled, with their values."""
        names, features = self.columns.names, np.asarray(example.features)
        if self.inputs.binary:
            return Shown([names[i] for i in features.tolist()])
        order = np.argsort(-np.abs(features), kind="stable")[:SHOWN_FEATURES]
        return Shown([f"{names[i]} {features[i]:.3g}" for i in order.tolist() if features[i]])

    def read(self, path: str) -> Sequence[Example]:
        table = read_arff(locate(path))
        features, gold = self.columns.encode(table)
        if self.scaling:
            self.scaling.apply(features)
        return [Example(features[i], gold[i]) for i in range(len(table))]

    def parse(self, item: Any) -> Example:
        """One example from a Python or JSON value, features as in a data file (not scaled).

        `{"vector": [0, 1, ...]}`: every feature in order. `{"features": {"age": 3.5, "colour": "red"}}`: by name;
        omitted features are 0, or missing if real. `{"features": ["word", ...]}`: the names of the features that are 1.
        Optional `"labels": ["a", "b"]` are gold.
        """
        vector, gold = parse_item(self.columns, item)
        if self.inputs.binary:
            return Example(np.flatnonzero(vector).astype(np.int32), gold)
        if self.scaling:
            self.scaling.apply(vector[None])
        return Example(vector, gold)

    def parse_all(self, items: Any) -> Sequence[Example]:
        """Rows of numbers, as `take` has them, or a list of what `parse` has."""
        if not is_matrix(items):
            return super().parse_all(items)
        matrix = Matrix.of(items, "items").ordered(self.columns.names, "items")
        if (wrong := matrix.not_binary(~self.columns.real)) is not None:
            what = f"{wrong[0]:g} for feature {self.columns.names[wrong[1]]!r}"
            raise DataError("items", None, what, "0 or 1, as in training")
        return [Example(features, None) for features in self._vectors(matrix)]

    def facts(self) -> dict[str, Any]:
        c = self.columns
        return {
            "labels": list(c.labels),
            "classes": c.classes,
            "features": [[name, list(values)] for name, values in c.features.items()],
            "drop": list(c.drop),
            "scaling": None if self.scaling is None else self.scaling.facts(),
            "threshold": self.threshold,
            "split": self._split,
        }

    def restore(self, facts: Mapping[str, Any]) -> None:
        features = {name: tuple(values) for name, values in facts["features"]}
        self._set_columns(Columns(features, tuple(facts["labels"]), facts["classes"], tuple(facts["drop"])))
        self.scaling = None if facts["scaling"] is None else Scaling.restore(facts["scaling"], self.columns.real)
        self.threshold, self._split = facts["threshold"], facts["split"]
