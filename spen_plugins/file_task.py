"""A task over files of JSON lines, with the methods that most tasks share, so that a new task needs little code."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.data.catalogue import locate
from spen_plugins.data.records import read_json_lines
from spen_plugins.data.text import sha256
from spen_plugins.errors import DataError
from spen_plugins.settings.config import Config
from spen_plugins.spaces import Proposal
from spen_plugins.task import Metric, Task
from spen_plugins.task_parts import parse_item, shown_form


class PartsConfig(Config):
    """A file for each part."""

    train: str
    """File to learn from; `data:` paths are below $SPEN_DATA."""
    validation: str
    """File that picks the best epoch."""
    test: str | None = None
    """File to report on."""


class ExactMatch(Metric):
    """Share of the examples of which all of the output is right."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._correct: list[Tensor] = []
        self._labelled: list[Tensor] = []

    def update(self, proposal: Proposal, batch: Batch) -> None:
        if batch.gold is not None:
            is_correct = (self._task.decode(proposal, batch.x) == batch.gold).flatten(1).all(1)
            self._correct.append((is_correct & batch.labelled).double().cpu())
            self._labelled.append(batch.labelled.double().cpu())

    def compute(self) -> dict[str, Any]:
        correct, labelled = self.ratios()
        return {"exact_match": float(correct.sum() / labelled.sum().clamp(min=1))}

    def ratios(self) -> tuple[Tensor, Tensor]:
        empty = torch.zeros(0, dtype=torch.double)
        return torch.cat([empty, *self._correct]), torch.cat([empty, *self._labelled])


class FileTask(Task):
    """A task over files of JSON lines, one for each part.

    A subclass implements `parse`, `set_up` and `collate`, and if needed `learn`, `length`, `predictions` and `metric`.
    To read another format, override `read`.
    """

    Config = PartsConfig
    selection = "exact_match"

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.parts: dict[str, Sequence[Any]] = {}
        self._facts: dict[str, Any] = {}

    def learn(self, examples: Sequence[Any]) -> dict[str, Any]:
        """Facts of the training examples, as JSON values by name: a vocabulary, names of labels; none by default."""
        return {}

    @abstractmethod
    def set_up(self, **facts: Any) -> None:
        """Set `space` and `inputs`.

        Args:
            facts: the facts that `learn` returns, by name.
        """

    def load(self) -> None:
        self.parts = {part: self.read(name) for part, name in self.files().items()}
        self.restore(self.learn(self.part("train")))
        for part in ("validation", "test"):
            examples = self.part(part)
            batches = (self.collate(examples[i : i + 64]) for i in range(0, len(examples), 64))
            if not all(batch.labelled.all() for batch in batches):
                raise DataError(self.files()[part], None, "examples without gold", "gold for all, as scores require it")

    def part(self, name: str) -> Sequence[Any]:
        return self.parts.get(name, [])

    def read(self, path: str) -> Sequence[Any]:
        return [
            example
            for _, example in read_json_lines(locate(path), shown_form(self), lambda item: parse_item(self, item))
        ]

    def facts(self) -> dict[str, Any]:
        return self._facts

    def restore(self, facts: Mapping[str, Any]) -> None:
        self._facts = dict(facts)
        self.set_up(**facts)

    def metric(self) -> Metric:
        return ExactMatch(self)

    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[Any]) -> list[Any]:
        """The decoded outputs, as lists of numbers."""
        return self.decode(proposal, batch.x)[:, 0].tolist()

    def protocol(self) -> dict[str, Any]:
        metric = inspect.getdoc(type(self.metric())) or self.selection
        return {"metric": metric.partition("\n")[0], "split": self.files(), "threshold": None}

    def checksums(self) -> dict[str, str]:
        return {name: sha256(locate(name)) for name in self.files().values()}

    def index(self, sentences: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Tensors of sentences for the feature networks, which `collate` adds to its own inputs."""
        inputs: dict[str, Tensor] = {}
        for indexer in self.indexers.values():
            inputs |= indexer.collate([indexer.index(words) for words in sentences])
        return inputs
