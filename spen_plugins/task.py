"""A task: all that is known about a problem before training. Reader, output space and score."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.config.config import Config
from spen_plugins.scores.calibration import Decisions
from spen_plugins.spaces import OutputSpace, Proposal

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class VectorInputs:
    """Inputs that are vectors of fixed size.

    A batch's `X.inputs` holds `"vector"`, `(batch, size)` float; or, where `binary`, the numbers of the non-zero
    features: `"indices"` `(total,)` and `"offsets"` `(batch,)`, as `torch.nn.functional.embedding_bag` takes them.
    """

    size: int
    binary: bool


@dataclass(frozen=True)
class WordInputs:
    """Inputs that are sentences.

    A batch's `X.inputs` holds `"words"`, `(batch, token)` word numbers (0 padding, 1 unknown); each name in `marks`
    and `columns` as `(batch, token)` small numbers; and what the task's indexers add.
    """

    words: Sequence[str]
    marks: Mapping[str, int]
    """Name of each mark the task sets on tokens -> how many values it has (SRL's `"predicate"`: 1 at the predicate)."""
    columns: Mapping[str, int] = field(default_factory=dict)
    """Name of each extra column of the data (POS, chunks) -> how many values it has; 0 padding, 1 unknown."""


@dataclass(frozen=True)
class TextInputs:
    """Inputs that are whole texts, each with one vector to be made of it.

    A batch's `X.inputs` holds what the task's indexers make of the texts' words, and nothing is padded.
    """

    words: Sequence[str]
    """Words of the training part; one that isn't among them is unknown."""


class Indexer(ABC):
    """Turns words into the tensors one feature network wants (word pieces, characters, n-grams), once per example."""

    @abstractmethod
    def index(self, words: Sequence[str]) -> Any:
        """A sentence as it is kept, for `collate`."""

    @abstractmethod
    def collate(self, items: Sequence[Any]) -> dict[str, Any]:
        """Tensors by name for `X.inputs`, padded to the longest."""

    def words_read(self, item: Any) -> int | None:
        """How many words of a sentence, the first ones, the network reads; None for all.

        Args:
            item: what `index` made of the sentence.
        """
        return None


class Shown(NamedTuple):
    """An example as a person can read it."""

    inputs: Sequence[str]
    """Words where outputs are tags of words; else names of features, or one text."""
    gold: Sequence[str] | None = None
    """Tags, one a word, or labels, where a batch's gold can't say all of it."""


class Metric(ABC):
    """Scores over a whole part, from batches of proposals."""

    @abstractmethod
    def update(self, proposal: Proposal, batch: Batch) -> None:
        """Take in one batch; `batch.gold` is present."""

    @abstractmethod
    def compute(self) -> dict[str, Any]:
        """Scores by the field's names, as fractions; a nested table where a score has parts (`"roles"`)."""

    def ratios(self) -> tuple[Tensor, Tensor] | None:
        """Terms that each example adds to the selection score, for tests over examples; None where it is no such sum.

        Returns:
            Numerator and denominator, `(examples,)` each, in the order of `update`; 0 and 0 for an example without
            gold. The score is the sum of the numerators over the sum of the denominators.
        """
        return None


class Task(ABC):
    """A data format, its output space and its score.

    Life: construct from a config; then either `load()` (reads every file, raises `DataError` or `ConfigError`, sets
    `space`, `inputs` and the parts) or `restore(facts)` (from a run folder, without any data file).

    Attributes set by `load` and `restore`:
        space: the output space.
        inputs: `VectorInputs`, `WordInputs` or `TextInputs`.
        indexers: what feature networks asked for, by name; filled when the model is built.
    """

    Config: ClassVar[type[Config]] = Config
    selection: str
    """Name of the metric that picks the best epoch; higher is better. An instance's own where the config decides."""
    temperature: float = 1.0
    """Flattens (above 1) or sharpens the probabilities that `predictions` reports; `decode` doesn't depend on it."""

    space: OutputSpace
    inputs: VectorInputs | WordInputs | TextInputs

    def __init__(self, config: Any) -> None:
        self.config = config
        self.indexers: dict[str, Indexer] = {}

    @abstractmethod
    def load(self) -> None:
        """Read all data files."""

    @abstractmethod
    def part(self, name: str) -> Sequence[Any]:
        """The examples of `train`, `validation` or `test`; empty where there is none."""

    @abstractmethod
    def collate(self, examples: Sequence[Any], rows: Sequence[int] | None = None) -> Batch:
        """Examples -> a batch on the CPU; gold is None where no example has it."""

    @abstractmethod
    def metric(self) -> Metric:
        """A fresh accumulator."""

    def decode(self, proposal: Proposal) -> Tensor:
        """The y that is reported and scored, `(batch, 1, *variables)` of zeros and ones.

        `proposal.chosen` where the net decided by itself; else the mode, or what the task makes of the mean (labels
        above a threshold).
        """
        return proposal.mode if proposal.chosen is None else proposal.chosen

    def k_best(self, proposal: Proposal, k: int) -> Tensor:
        """The `k` likeliest outputs, `(batch, k, *variables)`, among which an energy may choose (`rerank`).

        Where `decode` doesn't take the mode, likely is what lies near to its decision.
        """
        return proposal.k_best(k)[0]

    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """The single decisions (labels, tags, spans) in `decode`'s outputs for the examples with gold, for calibration.

        Each with the net's probability for it and whether it is right; `temperature` is fitted to them. None where the
        task reports no probabilities, or nothing here has gold.
        """
        return None

    @abstractmethod
    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[Any]) -> list[Any]:
        """Predictions as a user sees them, one JSON value for each example."""

    @abstractmethod
    def read(self, path: str) -> Sequence[Any]:
        """Examples of a file in the task's format, with or without gold, for prediction and evaluation."""

    @abstractmethod
    def parse(self, item: Any) -> Any:
        """One example from a Python or JSON value, for `sp.load(run).predict([...])`; the docstring shows the value."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """JSON values from which `restore` makes this task again: vocabulary, label names, scaling, threshold."""

    @abstractmethod
    def restore(self, facts: Mapping[str, Any]) -> None:
        """The inverse of `facts`."""

    @abstractmethod
    def protocol(self) -> dict[str, Any]:
        """Origin of the scores: the metric's definition, the split, the threshold policy."""

    def show(self, example: Any) -> Shown:
        """An example for a reader's eyes; JSON of what there is by default."""
        return Shown([json.dumps(example, default=_listed, ensure_ascii=False)])

    def checksums(self) -> dict[str, str]:
        """sha256 of each data file read, by path."""
        return {}

    def length(self, example: Any) -> int:
        """Length of an example, for batches of like lengths."""
        return 1

    def words_read(self, example: Any) -> int | None:
        """How many words of an example, the first ones, its feature networks read; None for all."""
        return None

    def fit_threshold(self, metric: Metric) -> None:
        """Fit the threshold that `decode` uses on the validation part's metric; by default there is none."""

    def selection_score(self, found: Iterable[tuple[Proposal, Batch]]) -> float:
        """The selection score of other predictions of the validation part than the model's, under a threshold fitted to
        them; the task's own stays as it is."""
        metric = self.metric()
        for proposal, batch in found:
            metric.update(proposal, batch)
        copy(self).fit_threshold(metric)
        return float(metric.compute()[self.selection])


def _listed(value: Any) -> Any:
    """Arrays and tensors as lists, anything else in words; for `json.dumps`."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
