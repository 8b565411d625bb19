"""The common part of tasks over files of sentences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.data.parts.file_parts import FileParts
from spen_plugins.data.sentences.items import parse_raw_text
from spen_plugins.data.sentences.srl import Sentence
from spen_plugins.data.text import RawText
from spen_plugins.sentences.batches import Entry, collate_sentences, collate_words
from spen_plugins.spaces import Proposal
from spen_plugins.task import Indexer, Task
from spen_plugins.task_parts import Calibrated, ReadsText, SharesSentences


class SentenceTask(Task, ReadsText, Calibrated):
    """A task over files of sentences: `load` and `restore` set `_parts` and `_read`, and an example has an `entry`."""

    _parts: Mapping[str, Sequence[Any]]
    _read: FileParts[Any]

    def part(self, name: str) -> Sequence[Any]:
        return self._parts[name]

    def notes(self) -> Sequence[str]:
        return self._read.notes

    def checksums(self) -> dict[str, str]:
        return self._read.checksums

    def length(self, example: Any) -> int:
        return example.entry.length(self.all_indexers())

    def all_indexers(self) -> dict[str, Indexer]:
        """The indexers of all that reads a sentence."""
        return self.indexers

    def _decide(self, proposal: Proposal, examples: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Tag indices `(example, token)`, and the number of tokens in each example's sentence."""
        best = self.decode(proposal)[:, 0].argmax(-1).cpu().numpy()
        return best, np.array([len(example.entry.ids) for example in examples], dtype=np.int64)


class PredicateTask(SentenceTask, SharesSentences):
    """A task with an example for each predicate, whose sentence a network may read once for all of them."""

    _read_once: dict[str, Indexer] | None = None
    """Indexers of the networks that read each sentence once; None: there is no such network."""

    @abstractmethod
    def _examples(self, sentences: Iterable[Sentence]) -> Sequence[Any]:
        """An example for each predicate."""

    def read_text(self, raw: RawText) -> Sequence[Any]:
        return self._examples(parse_raw_text(raw))

    def all_indexers(self) -> dict[str, Indexer]:
        return {**self.indexers, **(self._read_once or {})}

    def sentence_indexers(self) -> dict[str, Indexer]:
        self._read_once = {} if self._read_once is None else self._read_once
        return self._read_once

    def groups(self, examples: Sequence[Any]) -> np.ndarray | None:
        """The predicates of a sentence, if it is read once for all of them."""
        if self._read_once is None:
            return None
        numbers: dict[tuple[str, ...], int] = {}
        return np.array([numbers.setdefault(example.entry.words, len(numbers)) for example in examples])

    def moved(self, example: Any, predicate: int) -> Any:
        """An example of another predicate of the same sentence."""
        return replace(example, predicate=predicate)

    def _inputs(self, entries: Sequence[Entry], predicates: Sequence[int]) -> tuple[dict[str, Tensor], np.ndarray]:
        """The tensors of marked sentences, and the mask `(batch, token)` boolean."""
        inputs, inside = collate_words(entries, self.indexers)
        if self._read_once is not None:
            inputs |= collate_sentences(entries, self._read_once)
        inputs["predicate"] = torch.zeros_like(inputs["words"])
        inputs["predicate"][torch.arange(len(entries)), torch.tensor(predicates, dtype=torch.long)] = 1
        return inputs, inside


class SenseTask(PredicateTask):
    """A task that finds senses of predicates: a prediction has `sense` and its probability `score`."""

    @classmethod
    @abstractmethod
    def gloss(cls, sense: str) -> str | None:
        """The meaning of a sense in a few words, if known: "transfer"."""

    @classmethod
    @abstractmethod
    def describe(cls, sense: str, role: str) -> str | None:
        """The meaning of a role in this sense, if known: "thing given"."""
