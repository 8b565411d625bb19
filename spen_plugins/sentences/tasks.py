"""Tasks over files of sentences; for tasks of roles also the parts, from files or the sample corpus, and formats."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.data.equal_inputs import number_inputs
from spen_plugins.data.parts.file_parts import FileParts, name_files, note_unseen, read_file_parts
from spen_plugins.data.parts.gold import hide_gold
from spen_plugins.data.sentences.items import parse_raw_text
from spen_plugins.data.sentences.roles import columns, conllu, predicted, props, read_roles
from spen_plugins.data.sentences.srl import Sentence
from spen_plugins.data.text import RawText
from spen_plugins.errors import DataError
from spen_plugins.samples.srl import sample_corpus
from spen_plugins.sentences.batches import Entry, collate_sentences, collate_words
from spen_plugins.spaces import Proposal
from spen_plugins.task import Indexer, Task, Writer
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
        """The indexers of all networks that read a sentence."""
        return self.indexers

    def _decide(self, proposal: Proposal, examples: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Tag indices `(example, token)`, and the number of tokens in each example's sentence."""
        best = self.decode(proposal)[:, 0].argmax(-1).cpu().numpy()
        return best, np.array([len(example.entry.ids) for example in examples], dtype=np.int64)


class PredicateTask(SentenceTask, SharesSentences):
    """A task with an example for each predicate, whose sentence a network may read once for all of them."""

    _shared_indexers: dict[str, Indexer] | None = None
    """Indexers of the networks that read each sentence once; None: there is no such network."""

    @abstractmethod
    def _examples(self, sentences: Iterable[Sentence]) -> Sequence[Any]:
        """An example for each predicate."""

    def read_text(self, raw: RawText) -> Sequence[Any]:
        return self._examples(parse_raw_text(raw))

    def all_indexers(self) -> dict[str, Indexer]:
        return {**self.indexers, **(self._shared_indexers or {})}

    def sentence_indexers(self) -> dict[str, Indexer]:
        self._shared_indexers = {} if self._shared_indexers is None else self._shared_indexers
        return self._shared_indexers

    def groups(self, examples: Sequence[Any]) -> np.ndarray | None:
        """The predicates of a sentence, if it is read once for all of them."""
        if self._shared_indexers is None:
            return None
        return number_inputs(example.entry.words for example in examples)

    def moved(self, example: Any, predicate: int) -> Any:
        """An example of another predicate of the same sentence."""
        return replace(example, predicate=predicate)

    def _inputs(self, entries: Sequence[Entry], predicates: Sequence[int]) -> tuple[dict[str, Tensor], np.ndarray]:
        """The tensors of marked sentences, and the mask `(batch, token)` boolean."""
        inputs, mask = collate_words(entries, self.indexers)
        if self._shared_indexers is not None:
            inputs |= collate_sentences(entries, self._shared_indexers)
        inputs["predicate"] = torch.zeros_like(inputs["words"])
        inputs["predicate"][torch.arange(len(entries)), torch.tensor(predicates, dtype=torch.long)] = 1
        return inputs, mask


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


def collect_roles(sentence: Sentence) -> set[str]:
    """The tags of a sentence's roles."""
    return {tag for proposition in sentence.propositions for tag in proposition.tags or ()}


def role_formats() -> dict[str, Writer]:
    """The formats of predicted roles, each with all sentences of the file that was read."""

    def make_writer(write: Callable[[list[Sentence]], str]) -> Writer:
        return lambda predictions, examples: write(predicted(predictions, examples))

    return {name: make_writer(write) for name, write in (("conll", columns), ("props", props), ("conllu", conllu))}


def read_parts(
    config: Any,
    sample: Callable[[], Mapping[str, Sequence[Sentence]]] = sample_corpus,
    values: Callable[[Sentence], Collection[str]] = collect_roles,
    what: str = "roles",
    gold: bool = True,
) -> FileParts[Sentence]:
    """The sentences of each part, from the files of a config (`FilesConfig`, `corpus`, `layout`) or the sample corpus.

    Args:
        sample: makes the sample corpus, by part.
        values: a sentence -> the values by which a validation part is stratified if it is split off.
        gold: if true, files must have roles.
    """
    files = name_files(config, ["sample"])
    if not files:
        parts = {part: ("the sample", sentences) for part, sentences in sample().items()}
        return FileParts(parts, {}, [], "sample (synthetic)")

    def read(path: Path) -> tuple[list[Sentence], str]:
        file = read_roles(path, config.layout, gold)
        return kept(config, file.sentences), file.description

    return read_file_parts(files, read, values, what)


def hide_roles(config: Any, found: FileParts[Sentence]) -> FileParts[Sentence]:
    """The training part with the roles that the config allows, and with its files of marked predicates without roles.

    Raises:
        DataError: fewer sentences than `task.labelled`, or no predicate in a file of `task.unlabelled`.
    """

    def read(path: Path) -> tuple[list[Sentence], str]:
        file = read_roles(path, config.layout, gold=False)
        sentences = kept(config, file.sentences)
        if not any(sentence.propositions for sentence in sentences):
            raise DataError(path, None, "no predicate (task.unlabelled)", "sentences with marked predicates")
        return sentences, file.description

    def hide(sentence: Sentence) -> Sentence:
        return replace(sentence, propositions=tuple(replace(p, tags=None) for p in sentence.propositions))

    source, sentences = found.parts["train"]
    labelled, unlabelled, checksums, notes = hide_gold(config, source, sentences, hide, read, "sentences")
    parts = {**found.parts, "train": (source, [*labelled, *unlabelled])}
    return found._replace(parts=parts, checksums=found.checksums | checksums, notes=[*found.notes, *notes])


def kept(config: Any, sentences: list[Sentence]) -> list[Sentence]:
    """The sentences without auxiliaries, if the config says so."""
    return sentences if getattr(config, "auxiliaries", True) else [s.without_auxiliaries() for s in sentences]


def unseen_roles(sentences: Mapping[str, Sequence[Sentence]]) -> list[str]:
    """A warning if other parts have roles that no training sentence has."""
    roles = {
        part: {tag[2:] for sentence in part_sentences for tag in collect_roles(sentence)}
        for part, part_sentences in sentences.items()
    }
    all_roles = set().union(*roles.values()) - {"", "V"}
    return note_unseen(sorted(all_roles - roles["train"]), len(all_roles), "roles")
