"""A task: the reader, output space and score of a problem, which are all known before training."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from spen_plugins.batch import ArcInputs, Batch, ChoiceInputs, ImageInputs, TextInputs, VectorInputs, WordInputs, X
from spen_plugins.settings.config import Config
from spen_plugins.spaces import OutputSpace, Proposal

PARTS = ("train", "validation", "test")
"""Parts of every task's examples."""
FILES = ("file", *PARTS)
"""Fields of a task's config that name files of examples: one with all parts, or one for each."""
HELD_OUT = 0.2
"""Share of the training examples used for validation if the data given in Python have no validation part."""
COUNTED = 100_000
"""Approximate limit of the training examples in which labels and tags are counted; more are sampled evenly."""


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
        """Each example's contribution to the selection score, for tests over examples; None unless it is such a ratio.

        Returns:
            Numerator and denominator, `(examples,)` each, in the order of `update`; 0 and 0 for an example without
            gold. The score is the sum of the numerators over the sum of the denominators.
        """
        return None


Writer = Callable[[Sequence[Any], Sequence[Any]], str | bytes]
"""Predictions and their examples -> the content of a file."""


class Task(ABC):
    """A data format, its output space and its score.

    Lifecycle: construct from a config; then call either `load()` (reads every file, raises `DataError` or
    `ConfigError`, sets `space`, `inputs` and the parts) or `restore(facts)` (from a run folder, without any data).
    Optional abilities of tasks are in `task_parts`.

    Attributes set by `load` and `restore`:
        space: the output space.
        inputs: `VectorInputs`, `WordInputs`, `ArcInputs`, `ChoiceInputs`, `TextInputs` or `ImageInputs`.
        indexers: indexers of feature networks, by name; set when the model is built.
    """

    Config: ClassVar[type[Config]] = Config
    selection: str
    """Name of the metric that picks the best epoch; higher is better. Set by instances if the config decides."""
    lower_is_better: ClassVar[Collection[str]] = ()
    """Names of the metrics whose low values are good, for tables."""
    file_has_parts: ClassVar[bool] = False
    """True if a file of all parts says which part each example is of, and `read` returns its test part."""

    space: OutputSpace
    inputs: VectorInputs | WordInputs | ArcInputs | ChoiceInputs | TextInputs | ImageInputs

    def __init__(self, config: Any) -> None:
        self.config = config
        self.indexers: dict[str, Indexer] = {}

    @abstractmethod
    def load(self) -> None:
        """Read all data files."""

    def files(self) -> dict[str, str]:
        """Files of examples that the config names, by its keys `file`, `train`, `validation` and `test`."""
        return {key: name for key in FILES if isinstance(name := getattr(self.config, key, None), str)}

    @abstractmethod
    def part(self, name: str) -> Sequence[Any]:
        """The examples of `train`, `validation` or `test`; may be empty."""

    @abstractmethod
    def collate(self, examples: Sequence[Any], rows: Sequence[int] | None = None) -> Batch:
        """Examples -> a batch on the CPU; gold is None if no example has it."""

    def notes(self) -> Sequence[str]:
        """Sentences about how the data were read, printed when a run starts: recognised formats, a part split off."""
        return ()

    @abstractmethod
    def metric(self) -> Metric:
        """A new accumulator of scores."""

    def decode(self, proposal: Proposal, x: X | None = None) -> Tensor:
        """The y that is reported and scored, `(batch, 1, *variables)` of zeros and ones.

        `proposal.chosen` if the net itself has chosen; otherwise the mode, or the task's decision from the mean (labels
        above a threshold).

        Args:
            x: the inputs, for tasks whose constraints on outputs depend on them; None: no such constraints are applied.
        """
        return proposal.mode if proposal.chosen is None else proposal.chosen

    @abstractmethod
    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[Any]) -> list[Any]:
        """Predictions for users, one JSON value per example."""

    @abstractmethod
    def read(self, path: str) -> Sequence[Any]:
        """Examples of a file in the task's format, with or without gold, for prediction and evaluation."""

    @abstractmethod
    def parse(self, item: Any) -> Any:
        """One example from a Python or JSON value, for `sp.load(run).predict([...])`; the docstring shows its form."""

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
        return Shown([json.dumps(example, default=_convert_to_json, ensure_ascii=False)])

    def checksums(self) -> dict[str, str]:
        """sha256 of each data file read, by path."""
        return {}

    def length(self, example: Any) -> int:
        """Length of an example, for batches of similar lengths."""
        return 1


def _convert_to_json(value: Any) -> Any:
    """Arrays and tensors as lists, anything else as text; for `json.dumps`."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def read_gold(task: Task, batch_size: int) -> Iterator[Tensor]:
    """Gold of the training examples that have it, `(example, 1, *variables)` for each batch. A large part is sampled in
    evenly spaced batches, with about `COUNTED` examples. A restored task yields none."""
    examples = task.part("train")
    stride = max(1, -(-len(examples) // COUNTED))
    for start in range(0, len(examples), stride * batch_size):  # rows side by side are read at once from disk
        batch = task.collate(examples[start : start + batch_size])
        if batch.gold is not None:
            yield batch.gold[batch.labelled]
