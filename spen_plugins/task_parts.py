"""Optional parts of a task, which only some tasks have. A task inherits from `Task` and from its optional parts."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from spen_plugins.batch import Batch, X
from spen_plugins.data.tables.matrix import is_matrix
from spen_plugins.data.text import RawText
from spen_plugins.errors import DataError
from spen_plugins.scores.calibration import Decisions
from spen_plugins.spaces import Proposal
from spen_plugins.task import HELD_OUT, Indexer, Metric, Task, Writer


class TakesExamples(ABC):
    """A task whose examples can be given in Python; its `Config` has a field `in_memory: bool = False`, which
    `sp.train` sets."""

    @property
    def in_memory(self) -> bool:
        """True if the examples are given in Python, by `take`, and a run folder doesn't keep them."""
        return self.config.in_memory

    @abstractmethod
    def take(self, parts: Mapping[str, Any], held_out: float = HELD_OUT, seed: int = 0) -> None:
        """Take examples that are given in Python, in place of `load`.

        Args:
            parts: name of each part -> its inputs and its outputs, a pair, in the task's own form.
            held_out: share of the training examples used for validation if there is no part `validation`.
            seed: seed of their choice.

        Raises:
            ConfigError: the config names files.
            DataError: the examples have the wrong form.
        """


class PartlyLabelled(ABC):
    """A task whose training part can have examples without gold."""

    @property
    @abstractmethod
    def keys_without_gold(self) -> Sequence[str]:
        """Dotted keys of the config for examples without gold, such as `task.unlabelled`; empty if all have gold."""


class Augments(ABC):
    """A task whose training examples change from epoch to epoch."""

    @abstractmethod
    def augment(self, example: Any, rng: np.random.Generator) -> Any:
        """The form of a training example in one epoch: a random crop, added noise.

        Called each time that an example is put into a training batch, never in evaluation. `rng` is seeded by the run's
        seed, the stage, the pass over the examples and the example's row, so that a resumed run sees the same.
        """


class ReadsText(ABC):
    """A task that predicts for raw text."""

    @abstractmethod
    def read_text(self, raw: RawText) -> Sequence[Any]:
        """Examples of raw text, for prediction."""


class ReadsDocs(ABC):
    """A task whose runs predict in spaCy, as the component `spen_task` of spen-spacy."""

    @abstractmethod
    def read_doc(self, doc: Any) -> Sequence[Any]:
        """Items of a spaCy `Doc`, for `parse`; there is a prediction for each."""


class ReadsInputs(ABC):
    """A task that reads a file in another way if its outputs are not needed."""

    @abstractmethod
    def read_inputs(self, path: str) -> Sequence[Any]:
        """Examples of a file for prediction alone: its outputs, if there are any, are ignored."""


class NamesColumns:
    """A task whose files have columns that the config names; a file to predict may have them by other names."""

    column_keys: Sequence[str] = ()
    """Keys of the config that name columns; `columns.pos` is an entry of its table `columns`."""


class TakesMatrices(ABC):
    """A task whose inputs are rows of numbers."""

    @abstractmethod
    def parse_matrix(self, matrix: Any) -> Sequence[Any]:
        """Examples from a matrix, `(examples, features)`: an array, a matrix of scipy.sparse or a DataFrame."""


class WritesFormats(ABC):
    """A task whose predictions can be written in other formats than JSON lines."""

    @abstractmethod
    def formats(self) -> Mapping[str, Writer]:
        """These formats, by name."""


class ListsLabels:
    """A task that predicts label sets, with the probabilities of the likeliest labels."""

    shown: int | None = 10
    """Most labels whose probabilities a prediction lists; None: all."""


class Calibrated(ABC):
    """A task that reports probabilities, which calibration improves."""

    temperature: float = 1.0
    """Flattens (above 1) or sharpens the probabilities that `predictions` reports; `decode` does not depend on it."""

    @abstractmethod
    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """The decisions (labels, tags, spans) of decoded outputs for the examples with gold.

        Each has the net's probability for it and its correctness; `temperature` is fitted to them. None if the batch
        has no gold.
        """


class FitsDecoder(ABC):
    """A task whose `decode` depends on numbers, such as a threshold, that are fitted to the validation part."""

    fitted_facts: ClassVar[Collection[str]] = ("threshold",)
    """Names of the facts that are fitted to the validation part's scores, not taken from the data."""

    @abstractmethod
    def fit_threshold(self, metric: Metric) -> None:
        """Fit these numbers to the validation part's metric, if the config says so."""

    @abstractmethod
    def decoder_settings(self) -> dict[str, Any]:
        """Config settings that give the present `decode` from the start, without fitting."""

    @abstractmethod
    def use_threshold(self) -> float | None:
        """Decode by a threshold from now on, for outputs that are not probabilities, such as an optimiser's.

        Returns:
            The threshold; None if `decode` needs no change.
        """

    @abstractmethod
    def k_best(self, proposal: Proposal, k: int) -> Tensor:
        """The `k` outputs nearest to the decision of `decode`, `(batch, k, *variables)`."""


class Rewards(ABC):
    """A task with rules by which outputs are judged without gold."""

    @abstractmethod
    def reward(self, x: X, y: Tensor) -> Tensor | None:
        """The quality of outputs without gold, from rules about the task: `(batch, sample)` in [0, 1]; None: no rules.

        Args:
            x: the inputs.
            y: `(batch, sample, *variables)`, discrete or relaxed; for a relaxed output the reward is differentiable and
                approximates the expected reward under independent variables.
        """

    def search(self, x: X, proposal: Proposal) -> Tensor | None:
        """Discrete outputs of high reward near a proposal, `(batch, sample, *variables)`, without gradient; None by
        default: no search."""
        return None

    def rule_votes(self) -> Tensor | None:
        """The side of each rule on each label or tag, `(rule, value)`: 1 for it, −1 against it, 0 neither; None by
        default. `x.inputs[FIRED]` `(batch, [token,] rule)` then marks the places where each rule holds."""
        return None


class SharesSentences(ABC):
    """A task with several examples for one sentence, which a network may read once for all of them."""

    @abstractmethod
    def sentence_indexers(self) -> dict[str, Indexer]:
        """Indexers of networks that read each different sentence of a batch once. `X.inputs` then has `"sentence"`
        `(batch,)`, the number of each example's sentence, and `"sentence.NAME"`, tensors with a row per sentence."""

    @abstractmethod
    def groups(self, examples: Sequence[Any]) -> np.ndarray | None:
        """Group of each example, `(examples,)` from 0, kept in one batch of training if it fits; None: no groups."""


def parse_all(task: Task, items: Any) -> Sequence[Any]:
    """Examples of a list of Python values, a DataFrame's rows or a matrix; a DataError names the wrong item's index."""
    if isinstance(task, TakesMatrices) and is_matrix(items):
        return [] if getattr(items, "shape", [1])[0] == 0 else task.parse_matrix(items)
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise DataError("items", None, f"one {type(items).__name__}", "a list of items")
    if hasattr(items, "to_dict") and hasattr(items, "columns"):
        items = items.to_dict("records")
    examples = []
    for number, item in enumerate(items):
        try:
            examples.append(parse_item(task, item))
        except DataError as error:
            is_row = isinstance(task, TakesMatrices) and isinstance(item, (list, tuple, np.ndarray))
            expected = error.expected + "; or all rows as an array or a DataFrame" * is_row
            raise DataError(f"{error.path} {number}", error.line, error.found, expected) from None
    return examples


def parse_item(task: Task, item: Any) -> Any:
    """Parses an item with `task.parse`; a Python error caused by its form becomes a DataError."""
    try:
        return task.parse(item)
    except (LookupError, TypeError, AttributeError) as error:
        raise DataError("item", None, f"{item!r:.80} ({type(error).__name__}: {error})", shown_form(task)) from error


def shown_form(task: Task) -> str:
    """The form of an item: the first line of the docstring of `task.parse`."""
    return (inspect.getdoc(task.parse) or "").partition("\n")[0]


def read_inputs(task: Task, path: str) -> Sequence[Any]:
    """Examples of a file for prediction."""
    return task.read_inputs(path) if isinstance(task, ReadsInputs) else task.read(path)


def fitted_facts(task: Task) -> set[str]:
    """Names of the task's facts that are fitted to the validation part's scores, not taken from the data."""
    return set(task.fitted_facts) if isinstance(task, FitsDecoder) else set()


def selection_score(task: Task, predictions: Iterable[tuple[Proposal, Batch]]) -> float:
    """The selection score of other validation predictions, with a threshold fitted to them; the task keeps its own."""
    metric = task.metric()
    for proposal, batch in predictions:
        metric.update(proposal, batch)
    if isinstance(task, FitsDecoder):
        copy(task).fit_threshold(metric)
    return float(metric.compute()[task.selection])
