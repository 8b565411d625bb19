"""Parts of the tasks with label sets: division of files, hidden gold and weights; and all columns of a table's file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.shards import is_sharded, shards
from spen_plugins.data.equal_inputs import shared_inputs
from spen_plugins.data.formats import PARQUET, read_head, recognise
from spen_plugins.data.parts import given
from spen_plugins.data.parts.file_parts import hash_files, named_files, note_unseen, with_file_encoding
from spen_plugins.data.parts.gold import WithoutGold, hide_gold
from spen_plugins.data.parts.split import divide_rows, select_keys
from spen_plugins.data.parts.strata import Kind
from spen_plugins.data.records import CSV, find_separator, read_json_lines, records
from spen_plugins.data.tables.label_columns import ColumnKeys
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
from spen_plugins.errors import DataError
from spen_plugins.files import to_json
from spen_plugins.spaces import LabelSet
from spen_plugins.task import Task
from spen_plugins.task_parts import ReadsInputs, TakesExamples

Columns = tuple[list[str], list[list[Any]]]
"""Names of columns, and the cells of each row."""


def find_table_columns(path: Path) -> Columns | None:
    """Columns of a file that `read_table` has read; None for ARFF and libsvm."""
    file_format = recognise(path, FORMATS)
    if file_format is PARQUET:
        return _read_shards(path)
    if file_format is not CSV:
        return None
    names, *rows = [cells for _, cells in records(path, find_separator(read_head(path)) or ",")]
    return names, rows


def find_text_columns(path: Path, layout: Layout) -> Columns | None:
    """Columns of a file that `read_texts` has read without gold; `text` and `column_2` if it has no header. None for a
    file without columns."""
    if is_sharded(path):
        return _read_shards(path)
    file_format = find_format(path, layout, None)
    if file_format is JSON:
        return _align([item for _, item in read_json_lines(path, "{}", dict)], None)
    if file_format in (None, FASTTEXT, LIBMULTILABEL):
        return None
    columns, file_rows = open_columns(path, file_format, layout, None)
    rows = [cells for _, cells in file_rows]
    return columns.names or ["text" if n == columns.text else f"column_{n + 1}" for n in range(len(rows[0]))], rows


def _read_shards(path: Path) -> Columns:
    rows: list[dict[str, Any]] = []
    for shard in shards(path):
        names, *shard_rows = [cells for _, cells in file_records(shard, PARQUET, "")]
        rows += [dict(zip(names, cells, strict=True)) for cells in shard_rows]
    return _align(rows, "")


def _align(rows: list[dict[str, Any]], missing_value: str | None) -> Columns:
    """Columns by name, because rows may have them in another order, or lack some; a list or a table becomes JSON."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return names, [[_format_cell(row.get(name, missing_value)) for name in names] for row in rows]


def _format_cell(value: Any) -> Any:
    return to_json(value) if isinstance(value, (list, dict)) else value


Rows = Mapping[str, tuple[str, Sequence[int]]]
"""Part -> the setting that names its file, and its rows there."""


class LabelParts(Task, WithoutGold, TakesExamples, ReadsInputs):
    """The examples of a task with label sets, each with `gold`, the indices of its labels or None, and `weight`."""

    space: LabelSet
    kind: ClassVar[Kind]
    """The kind of a table's rows."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._parts: dict[str, Sequence[Any]] = {}
        self._files: dict[str, str] = {}
        self._source: Path | None = None  # file of the examples to predict
        self._split = ""
        self._notes: list[str] = []

    @with_file_encoding
    def load(self) -> None:
        self._check_config()
        if self.config.in_memory:
            raise given.not_kept()
        if self.config.corpus:
            self._load_sample()
        else:
            self._load_files()
        self._finish()

    @abstractmethod
    def _check_config(self) -> None:
        """Raises ConfigError unless the settings name data in one way."""

    @abstractmethod
    def _load_sample(self) -> None:
        """Sets labels, inputs and parts from the sample corpus."""

    @abstractmethod
    def _load_files(self) -> None:
        """Sets labels, inputs and parts from files."""

    @abstractmethod
    def _finish(self) -> None:
        """Hides gold, checks the parts and sets the facts about them."""

    def read(self, path: str) -> list[Any]:
        """Reads a file in any of the formats; labels are optional."""
        return self._read_and_note(path, False)

    def read_inputs(self, path: str) -> list[Any]:
        """As `read`, but labels are ignored, so that labels unknown to the run don't matter."""
        return self._read_and_note(path, None)

    def _read_and_note(self, path: str, gold: bool | None) -> list[Any]:
        location = locate(path)
        note, examples = self._read(location, gold)
        if note is not None:
            self._notes = [f"{path}: read as {note}"]
        self._source = None if note is None else location
        return examples

    @abstractmethod
    def _read(self, path: Path, gold: bool | None) -> tuple[str | None, list[Any]]:
        """The format of a file and its number of rows, None if it has no columns; and its examples.

        Args:
            path: the file.
            gold: False if it may be absent; None if it is ignored.
        """

    def notes(self) -> Sequence[str]:
        return self._notes

    def part(self, name: str) -> Sequence[Any]:
        return self._parts.get(name, [])

    def checksums(self) -> dict[str, str]:
        return dict(self._files)

    def _weigh_examples(self, parts: Rows) -> None:
        """Gives the training examples the weights in the column `task.sample_weight`; weight 0 drops an example."""
        name = self.config.sample_weight
        if name is None:
            return
        key, rows = parts["train"]
        path = named_files(self.config)[key]
        names, cells = self._read_own_columns(locate(path)) or ([], [])
        if name not in names:
            raise DataError(path, None, f"columns {', '.join(names)}", f"{name!r} for weights (task.sample_weight)")
        index = names.index(name)
        weights = given.checked_weights([cells[row][index] for row in rows], len(rows), f"column {name!r} of {path}")
        pairs = zip(self._parts["train"], weights.tolist(), strict=True)
        self._parts["train"] = [replace(example, weight=weight) for example, weight in pairs if weight]

    def _read_own_columns(self, path: Path) -> Columns | None:
        """A file's columns as they are; None if they have no names."""
        return None

    def _divide(
        self, gold: Mapping[str, Sequence[np.ndarray | None]], inputs: Mapping[str, Sequence[Hashable]]
    ) -> Rows:
        """The rows of each part, given the label numbers and keys of each file's rows; notes how files were divided."""
        files = named_files(self.config)
        self._files |= hash_files({key: name for key, name in files.items() if name not in self._files})
        parts, division = divide_rows(files, gold, inputs, keys=ColumnKeys.from_config(self.config), kind=self.kind)
        self._split = f"rows of {files['split']}" if "split" in files else "files " + ", ".join(files.values())
        if division is not None:
            self._split = division if "file" in files else f"{self._split}; {division}"
            self._notes.append(division)
        return parts

    def _warn_of_shared(self, parts: Rows, inputs: Mapping[str, Sequence[Hashable]]) -> None:
        """Notes the parts that share inputs."""
        self._notes += shared_inputs(select_keys(parts, inputs))

    def _hide_gold(self) -> None:
        """Keeps the training gold that the config allows, and adds the training files without gold."""
        c = self.config

        def read(path: Path) -> tuple[list[Any], str]:
            note, examples = self._read(path, None)
            text_count = f"{len(examples)} text{'s' * (len(examples) != 1)}"
            return examples, text_count if note is None else f"read as {note}"

        source, train = c.train or c.file or "the data", self._parts["train"]
        gold, unlabelled, checksums, notes = hide_gold(
            c, source, train, lambda example: replace(example, gold=None), read
        )
        self._parts["train"] = [*gold * c.repeat, *unlabelled]
        self._files |= checksums
        self._notes += notes
        if unlabelled:
            self._split += f"; {len(gold)} training examples with gold, {len(unlabelled)} without"

    def _check_parts(self, train_labels: set[int] | None = None) -> None:
        """Checks that there are examples to learn from, and gold wherever scores are computed; warns of labels that no
        training example has.

        Args:
            train_labels: the labels of the training part if it stays on disk, where all examples have gold.

        Raises:
            DataError: a part for training has no example with gold, or a scored part has an example without.
        """
        part_labels = {}
        for name, examples in self._parts.items():
            if name == "train" and train_labels is not None:
                continue
            source = "split" if self.config.split else name
            path = getattr(self.config, source) or self.config.train or self.config.file or "the data"
            labelled_count = sum(example.gold is not None for example in examples)
            if name != "test" and not labelled_count:
                raise DataError(path, None, f"no labelled example in the {name} part (task.{source})", "at least one")
            if name != "train" and labelled_count < len(examples):
                raise DataError(
                    path, None, f"{len(examples) - labelled_count} rows without labels in the {name} part", "labels"
                )
            part_labels[name] = {i for example in examples if example.gold is not None for i in example.gold.tolist()}
        train_labels = part_labels.pop("train") if train_labels is None else train_labels
        unseen, labels = sorted(set().union(*part_labels.values()) - train_labels), self.space.labels
        self._notes += note_unseen([labels[i] for i in unseen], len(labels), "labels")
