"""Sentences with roles: the parts of a task, from files or the sample corpus, and formats of predictions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spen_plugins.data.parts.file_parts import FileParts, name_files, note_unseen, read_file_parts
from spen_plugins.data.parts.gold import hide_gold
from spen_plugins.data.sentences.roles import columns, conllu, predicted, props, read_roles
from spen_plugins.data.sentences.srl import Sentence
from spen_plugins.errors import DataError
from spen_plugins.samples.srl import sample_corpus
from spen_plugins.task import Writer


def collect_roles(sentence: Sentence) -> set[str]:
    """The tags of a sentence's roles."""
    return {tag for proposition in sentence.propositions for tag in proposition.tags or ()}


def role_formats() -> dict[str, Writer]:
    """The formats of predicted roles, each with all sentences of the file that was read."""

    def writer(write: Callable[[list[Sentence]], str]) -> Writer:
        return lambda predictions, examples: write(predicted(predictions, examples))

    return {name: writer(write) for name, write in (("conll", columns), ("props", props), ("conllu", conllu))}


def read_parts(
    config: Any,
    sample: Callable[[], Mapping[str, Sequence[Sentence]]] = sample_corpus,
    values: Callable[[Sentence], Collection[str]] = collect_roles,
    what: str = "roles",
    gold: bool = True,
) -> FileParts[Sentence]:
    """The sentences of each part, from the config's files or the sample corpus.

    Args:
        sample: makes the sample corpus, by part.
        values: a sentence -> what a validation part that is carved off is stratified by.
        gold: if true, files must have roles.
    """
    files = name_files(config, ["sample"])
    if not files:
        parts = {part: ("the sample", some) for part, some in sample().items()}
        return FileParts(parts, {}, [], "sample (synthetic)")

    def read(path: Path) -> tuple[list[Sentence], str]:
        found = read_roles(path, config.layout, gold)
        return kept(config, found.sentences), found.said

    return read_file_parts(files, read, values, what)


def hide_roles(config: Any, found: FileParts[Sentence]) -> FileParts[Sentence]:
    """The training part with the roles that the config allows, and with its files of marked predicates without roles.

    Raises:
        DataError: fewer sentences than `task.labelled`, or no predicate in a file of `task.unlabelled`.
    """

    def read(path: Path) -> list[Sentence]:
        sentences = kept(config, read_roles(path, config.layout, gold=False).sentences)
        if not any(sentence.propositions for sentence in sentences):
            raise DataError(path, None, "no predicate (task.unlabelled)", "sentences with a predicate marked")
        return sentences

    def hidden(sentence: Sentence) -> Sentence:
        return replace(sentence, propositions=tuple(replace(p, tags=None) for p in sentence.propositions))

    where, sentences = found.parts["train"]
    gold, others, sums = hide_gold(config, where, sentences, hidden, read, "sentences")
    parts = {**found.parts, "train": (where, [*gold, *others])}
    return found._replace(parts=parts, checksums=found.checksums | sums)


def kept(config: Any, sentences: list[Sentence]) -> list[Sentence]:
    """The sentences without auxiliaries, if the config says so."""
    return sentences if getattr(config, "auxiliaries", True) else [s.without_auxiliaries() for s in sentences]


def unseen_roles(sentences: Mapping[str, Sequence[Sentence]]) -> list[str]:
    """A warning if other parts have roles that no training sentence has."""
    roles = {
        part: {tag[2:] for sentence in some for tag in collect_roles(sentence)} for part, some in sentences.items()
    }
    every = set().union(*roles.values()) - {"", "V"}
    return note_unseen(sorted(every - roles["train"]), len(every), "roles")
