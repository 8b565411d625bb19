"""A task: reader, output space and score of a problem, all that is known before training."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor

from spen_plugins.batch import ArcInputs, Batch, ChoiceInputs, ImageInputs, TextInputs, VectorInputs, WordInputs, X
from spen_plugins.config.config import Config
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.readers.raw_text import RawText
from spen_plugins.scores.calibration import Decisions
from spen_plugins.spaces import OutputSpace, Proposal

PARTS = ("train", "validation", "test")
HELD_OUT = 0.2
"""Share of the training examples that validate where no validation part is given in Python."""
DECIDED = ("threshold", "decode_temperature")
"""Names of facts that the validation part's scores decide, and not the data."""


class Indexer(ABC):
    """Converts words to a feature network's input tensors (word pieces, characters, n-grams), once per example."""

    pads: ClassVar[bool] = False
    """True if texts are padded to a batch's longest: batches of texts of similar lengths take less time."""

    @abstractmethod
    def index(self, words: Sequence[str]) -> Any:
        """The stored form of a sentence, for `collate`."""

    @abstractmethod
    def collate(self, items: Sequence[Any]) -> dict[str, Any]:
        """Tensors by name for `X.inputs`, padded to the longest."""

    def words_read(self, item: Any) -> int | None:
        """Number of words, from the first, that the network reads of a sentence, given its `index`; None for all."""
        return None

    def length(self, item: Any) -> int | None:
        """Length to which a batch's sentences are padded, given a sentence's `index`; None: its number of words."""
        return None


class Shown(NamedTuple):
    """An example in readable form."""

    inputs: Sequence[str]
    """Words if outputs are tags of words; otherwise names of features, or one text."""
    gold: Sequence[str] | None = None
    """Tags, one per word, or labels, if a batch's gold can't represent all of them."""


class Metric(ABC):
    """Scores over a whole part, from batches of proposals."""

    unit: str = ""
    """Unit of the selection score, such as "dB", if scores are not fractions: tables show them as they are. Empty for
    fractions, shown in per cent."""

    @abstractmethod
    def update(self, proposal: Proposal, batch: Batch) -> None:
        """Add one batch; `batch.gold` is present."""

    @abstractmethod
    def compute(self) -> dict[str, Any]:
        """Scores by their usual names, as fractions; a nested table for scores with parts (`"roles"`)."""

    def details(self) -> dict[str, Any]:
        """Further scores, computed once, at the end of a run, and not after each epoch; none by default."""
        return {}

    def ratios(self) -> tuple[Tensor, Tensor] | None:
        """Each example's contribution to the selection score, for tests over examples; None if it is no ratio of sums.

        Returns:
            Numerator and denominator, `(examples,)` each, in the order of `update`; 0 and 0 for an example without
            gold. The score is the sum of the numerators over the sum of the denominators.
        """
        return None


Writer = Callable[[Sequence[Any], Sequence[Any]], str | bytes]
"""Predictions and their examples -> the content of a file."""


class Task(ABC):
    """A data format, its output space and its score.

    Life: construct from a config; then one of `load()` (reads every file, raises `DataError` or `ConfigError`, sets
    `space`, `inputs` and the parts) and `restore(facts)` (from a run folder, without any data). What only some tasks
    can do is in `task_parts`.

    Attributes set by `load` and `restore`:
        space: the output space.
        inputs: `VectorInputs`, `WordInputs`, `ArcInputs`, `ChoiceInputs`, `TextInputs` or `ImageInputs`.
        indexers: indexers of feature networks, by name; set when the model is built.
    """

    Config: ClassVar[type[Config]] = Config
    selection: str
    """Name of the metric that picks the best epoch; higher is better. Set by instances if the config decides."""
    lower_is_better: ClassVar[Collection[str]] = ()
    """Names of the metrics of which low values are good, for tables."""
    shown: int | None = None
    """Most labels whose probabilities a prediction lists, if outputs are label sets; None: all."""
    temperature: float = 1.0
    """Flattens (above 1) or sharpens the probabilities that `predictions` reports; `decode` does not depend on it."""

    space: OutputSpace
    inputs: VectorInputs | WordInputs | ArcInputs | ChoiceInputs | TextInputs | ImageInputs

    def __init__(self, config: Any) -> None:
        self.config = config
        self.indexers: dict[str, Indexer] = {}

    @abstractmethod
    def load(self) -> None:
        """Read all data files."""

    @abstractmethod
    def part(self, name: str) -> Sequence[Any]:
        """The examples of `train`, `validation` or `test`; may be empty."""

    @abstractmethod
    def collate(self, examples: Sequence[Any], rows: Sequence[int] | None = None) -> Batch:
        """Examples -> a batch on the CPU; gold is None if no example has it."""

    def notes(self) -> Sequence[str]:
        """Sentences about how the data were read, said as a run starts: formats recognised, a part carved off."""
        return ()

    def augment(self, example: Any, rng: np.random.Generator) -> Any:
        """The form of a training example in one epoch: a random crop, added noise; by default the example itself.

        Called each time that an example is put into a training batch, never in evaluation. `rng` is seeded by the run's
        seed, the stage, the pass over the examples and the example's row, so that a resumed run sees the same.
        """
        return example

    @abstractmethod
    def metric(self) -> Metric:
        """A new accumulator of scores."""

    def decode(self, proposal: Proposal, x: X | None = None) -> Tensor:
        """The y that is reported and scored, `(batch, 1, *variables)` of zeros and ones.

        `proposal.chosen` if the net itself has chosen; otherwise the mode, or the task's decision from the mean (labels
        above a threshold).

        Args:
            x: the inputs, for a task whose outputs obey constraints that depend on them; without it they do not.
        """
        return proposal.mode if proposal.chosen is None else proposal.chosen

    def k_best(self, proposal: Proposal, k: int) -> Tensor:
        """The `k` most probable outputs, `(batch, k, *variables)`, from which an energy may choose (`rerank`).

        If `decode` does not return the mode, these are the outputs nearest to its decision.
        """
        return proposal.k_best(k)[0]

    def reward(self, x: X, y: Tensor) -> Tensor | None:
        """How good outputs look without gold, from rules about the task: `(batch, sample)` in [0, 1]; None: no rules.

        Args:
            x: the inputs.
            y: `(batch, sample, *variables)`, discrete or relaxed; of a relaxed output it is differentiable, and about
                the expected reward of independent variables.
        """
        return None

    def search(self, x: X, proposal: Proposal) -> Tensor | None:
        """Discrete outputs of high reward near a proposal, `(batch, sample, *variables)`, without gradient; None by
        default: no search."""
        return None

    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """The decisions (labels, tags, spans) of decoded outputs for the examples with gold, for calibration.

        Each has the net's probability for it and its correctness; `temperature` is fitted to them. None if the task
        reports no probabilities, or the batch has no gold.
        """
        return None

    @abstractmethod
    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[Any]) -> list[Any]:
        """Predictions for users, one JSON value per example."""

    @abstractmethod
    def read(self, path: str) -> Sequence[Any]:
        """Examples of a file in the task's format, with or without gold, for prediction and evaluation."""

    def read_inputs(self, path: str) -> Sequence[Any]:
        """Examples of a file for prediction alone, by default `read(path)`; for a task whose `read` makes the inputs
        from gold outputs, as denoising adds noise."""
        return self.read(path)

    @abstractmethod
    def parse(self, item: Any) -> Any:
        """One example from a Python or JSON value, for `sp.load(run).predict([...])`; the docstring shows its form."""

    def read_text(self, raw: RawText) -> Sequence[Any]:
        """Examples of raw text, for prediction; a ConfigError by default: a task whose inputs are no text."""
        raise ConfigError("found raw text, and the run's task reads none; tags, roles and labels of texts are of text")

    def formats(self) -> Mapping[str, Writer]:
        """Formats besides JSON lines in which predictions can be written, by name; none by default."""
        return {}

    def parse_all(self, items: Any) -> Sequence[Any]:
        """Examples from a list of Python values (or the rows of a DataFrame, by column), each by `parse`.

        A task whose inputs are rows of numbers takes a matrix, too.

        Raises:
            DataError: an item has the wrong form; with its index, from 0.
        """
        if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
            raise DataError("items", None, f"one {type(items).__name__}", "a list of them")
        if hasattr(items, "to_dict") and hasattr(items, "columns"):
            items = items.to_dict("records")
        return [self._parsed(number, item) for number, item in enumerate(items)]

    def _parsed(self, number: int, item: Any) -> Any:
        try:
            return self.parse(item)
        except DataError as error:
            raise DataError(f"{error.path} {number}", error.line, error.found, error.expected) from None

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """JSON values from which `restore` rebuilds this task: vocabulary, label names, scaling, threshold."""

    @abstractmethod
    def restore(self, facts: Mapping[str, Any]) -> None:
        """The inverse of `facts`."""

    @abstractmethod
    def protocol(self) -> dict[str, Any]:
        """Protocol of the scores: the metric's definition, the split, the threshold policy."""

    def show(self, example: Any) -> Shown:
        """An example in readable form; by default as JSON."""
        return Shown([json.dumps(example, default=_listed, ensure_ascii=False)])

    def checksums(self) -> dict[str, str]:
        """sha256 of each data file read, by path."""
        return {}

    def length(self, example: Any) -> int:
        """Length of an example, for batches of similar lengths."""
        return 1

    def words_read(self, example: Any) -> int | None:
        """Number of words, from the first, of an example that its feature networks read; None for all."""
        return None

    def sentence_indexers(self) -> dict[str, Indexer]:
        """The indexers of networks that read each sentence of a batch once, with `"sentence"` `(batch,)` and
        `"sentence.NAME"`, a row for each; `indexers` by default: they read each row."""
        return self.indexers

    def groups(self, examples: Sequence[Any]) -> np.ndarray | None:
        """Group of each example, `(examples,)` from 0: training has those of a group in one batch; None: no groups."""
        return None

    def fit_threshold(self, metric: Metric) -> None:
        """Fit the threshold of `decode` to the validation part's metric; does nothing by default."""

    def selection_score(self, found: Iterable[tuple[Proposal, Batch]]) -> float:
        """The selection score of other predictions of the validation part than the model's, with a threshold fitted to
        them; the task's own threshold is unchanged."""
        metric = self.metric()
        for proposal, batch in found:
            metric.update(proposal, batch)
        copy(self).fit_threshold(metric)
        return float(metric.compute()[self.selection])


def _listed(value: Any) -> Any:
    """Arrays and tensors as lists, anything else as text; for `json.dumps`."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
