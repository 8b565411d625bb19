"""Settings of the tasks with label sets: their data, named in one of several forms, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from spen_plugins.builtin.tasks.labels.label_task import LabelTask
from spen_plugins.data.parts.file_parts import LookUpConfig, OnDiskConfig, PartFilesConfig, check_corpus_keys
from spen_plugins.data.parts.gold import PartlyLabelledConfig
from spen_plugins.data.parts.rules import RulesConfig
from spen_plugins.data.tables.label_columns import split_names
from spen_plugins.errors import ConfigError
from spen_plugins.task import PARTS

_FILES = ({"file"}, {"file", "split"}, {"train", "validation"}, {"train", "test"}, {"train", "validation", "test"})
"""Forms of naming files, by their settings."""


class DataConfig(LabelTask.Config, PartlyLabelledConfig, PartFilesConfig):
    """The place of the data, and the part of it that has labels."""

    corpus: Literal["sample"] | None = None
    """"sample": the synthetic corpus of the package; null: the files below."""
    in_memory: bool = False
    """If true, the examples are given in Python, by `sp.train`, and not stored in the run folder."""
    labels: int | str | list[str] | None = None
    """Columns that are labels."""
    separator: str | None = Field(None, min_length=1)
    """Separator of the labels in one cell; null: a comma, and labels joined by another separator are an error."""
    drop: list[str] = Field(default_factory=list)
    """Columns to ignore, by name, "a,b" or [a, b]; a pattern of labels does not match them either."""
    sample_weight: str | None = None
    """Column of the training file with each row's weight in the loss, at least 0; it is not a feature, as with
    `drop`. Weights are divided by their mean, and rows of weight 0 are ignored; null: none."""

    @field_validator("labels", mode="before")
    @classmethod
    def _divide_names(cls, value: Any) -> Any:
        return split_names(value)

    @field_validator("drop", mode="before")
    @classmethod
    def _list_names(cls, value: Any) -> Any:
        value = split_names(value)
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if self.sample_weight is not None and (self.corpus is not None or self.in_memory):
            raise ValueError("sample_weight requires a file; for data given in Python, pass (X, Y, weights)")
        return self

    @property
    def unused(self) -> list[str]:
        """Columns that are neither inputs nor labels."""
        return self.drop if self.sample_weight is None else list(dict.fromkeys([*self.drop, self.sample_weight]))


class VectorsConfig(DataConfig):
    """Settings of task `multilabel`."""

    file: str | None = None
    """A file that is divided into parts: ARFF, CSV, Parquet or libsvm, recognised by its content."""
    labels: int | str | list[str] | None = None
    """Columns of 0 and 1 that are labels: their names, [a, b] or "a,b"; their prefix, "tag_*"; or a
    file of names, one per line or Mulan's XML list. Or one column of label lists, of CSV or Parquet. By default an ARFF
    file's name with .xml, if it exists."""
    label_count: int | None = Field(None, ge=1)
    """Number of labels, which are the last columns."""
    root: bool = False
    """If true, the root of a label hierarchy, which is on in every example, is a label, as in Lee et al. (2022)."""
    unseen: bool = False
    """If true, test examples that repeat a training example, features and labels, are left out of files' test part."""


class TextsConfig(DataConfig, LookUpConfig, OnDiskConfig, RulesConfig):
    """Settings of task `text`."""

    train: str | None = None
    """File of the training part: TSV (one text and its labels per line, tab-separated, unquoted), CSV, Parquet,
    JSONL or LibMultiLabel, recognised by its content."""
    text: int | str | None = None
    """Number of the text's column in a TSV, CSV or Parquet file, from 1, or its name in the header or in JSONL; null:
    the column `text`, or the only one beside the labels, or the first of a file without a header."""
    labels: int | str | list[str] | None = None
    """Number or name of the labels' column; null: the column `labels` or `label`, or the only one beside the text, or
    the second of a file without a header. Or the names, [toxic, obscene] or "toxic,obscene", or the prefix, "is_*",
    of columns of 0 and 1. Or a file of label names, one per line: the column is found as for null, and its labels are
    these names or their numbers, from 0."""
    header: bool | None = None
    """If true, the first line of a TSV or CSV file names the columns; null: true if a column is set by name, or one
    is called text, labels or label, or, for CSV with numbered columns, if the lines below show it."""
    reuters: str | None = None
    """Folder of Reuters-21578's .sgm files: the ModApte split, with the topics that occur in both its training and
    test part."""
    keep_empty: bool = True
    """If true, texts without labels are kept in the training, validation and test parts."""
    words: Literal["rule", "blanks"] = "rule"
    """The words of a text. "rule": runs of letters and digits, which suit n-grams; "blanks": the strings between
    blanks, so that the tokeniser of a pretrained encoder reads the text unchanged. N-grams beside such an encoder, for
    example of an energy, then include punctuation."""
    punctuation: bool = True
    """If true, each character that is neither letter, digit nor space (punctuation, emoji) is a word; only for words:
    rule."""


def check_data(c: Any, exclusive_keys: Sequence[str], beside_files: Sequence[str] = ("labels",)) -> None:
    """Raises ConfigError unless the settings name data in one way.

    Args:
        exclusive_keys: settings each of which names all data.
        beside_files: settings that require files.
    """
    keys = (*exclusive_keys, "file", "split", *PARTS, *beside_files)
    used_keys = [key for key in keys if getattr(c, key, None) not in (None, False, [])]
    if not ({*used_keys} - {*beside_files} in _FILES or (len(used_keys) == 1 and used_keys[0] in exclusive_keys)):
        sources = ", ".join(f"task.{name}" for name in used_keys) or "no data"
        raise ConfigError(
            f"task: found {sources}; expected one of {', '.join(f'task.{key}' for key in exclusive_keys)} alone, file= "
            f"(optionally with split=), or train= with validation=, test= or both; {', '.join(beside_files)} go with "
            "files. To replace the data set of a config by files, pass data=files"
        )
    if getattr(c, "words", "rule") == "blanks" and not c.punctuation:
        raise ConfigError("task.punctuation=false requires task.words=rule; words between blanks keep punctuation")
    if c.corpus is not None:
        check_corpus_keys(c, ("text", "separator", "drop", "header", "file_encoding", "on_disk"))
