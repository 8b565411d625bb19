"""Sentences of task `tagging`, from files, from Python or an embedded corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from spen_plugins.builtin.tasks import given
from spen_plugins.builtin.tasks.sentences import files_of
from spen_plugins.config.config import Config
from spen_plugins.datasets import locate
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.readers.columns import TaggedSentence, predicate_sentences, read_columns
from spen_plugins.readers.conllu import read_conllu
from spen_plugins.readers.schemes import BrokenTags, spans
from spen_plugins.readers.srl import read_srl
from spen_plugins.readers.text import sha256
from spen_plugins.task import PARTS

CORPORA = ("pos", "ner", "predicates")


class SentencesConfig(Config):
    """Files of tagged sentences, which of them have gold, and the look-up of words."""

    train: str | None = None
    """Training file; `data:` paths are below $SPEN_DATA."""
    validation: str | None = None
    """Validation file."""
    test: str | None = None
    """Test file."""
    labelled: int | None = Field(None, ge=1)
    """Number of training sentences, from the first, whose tags are used; null: all."""
    rest: bool = True
    """If true, the training sentences after the labelled ones are trained on without tags; else they are left out."""
    unlabelled: str | list[str] | None = None
    """A file, or several, to train on without tags; tags in it are not looked at."""
    repeat: int = Field(1, ge=1)
    """How often an epoch has each labelled training sentence; those without tags come once."""
    min_count: int = Field(1, ge=1)
    """Minimal number of occurrences of a known word in the training part."""
    lowercase: bool = True
    """If true, words are looked up in lower case."""
    digits: bool = True
    """If true, every digit is looked up as 0."""


Parts = dict[str, tuple[object, Sequence[TaggedSentence]]]
"""Source and sentences of each part."""


def read_parts(config: Any) -> tuple[Parts, dict[str, str]]:
    """All parts of a task's config, and the sha256 of each file read.

    Raises:
        ConfigError: the config names no data, or columns that its data do not have.
        DataError: a file is missing or broken.
    """
    if config.in_memory:
        raise given.not_kept()
    files = files_of(config, CORPORA)
    found: Parts = {part: (None, []) for part in PARTS} if files else _sample(config)
    for part, name in files.items():
        path = locate(name)
        found[part] = path, read_tagged(config, path, gold=True)
    found["train"], more = hide_tags(config, found["train"], lambda path: read_tagged(config, path, gold=False))
    return found, {name: sha256(locate(name)) for name in (*files.values(), *more)}


def given_sentences(
    config: Any, parts: Mapping[str, Any], held_out: float, seed: int
) -> tuple[Parts, dict[str, str], str]:
    """All parts of sentences given in Python, their checksums, and where they come from; as `Task.take`.

    Raises:
        ConfigError: the config names data of its own, or columns.
        DataError: a sentence is no list of words, has another number of tags, or breaks the scheme.
    """
    if named := [f"task.{key}" for key in ("corpus", *PARTS, "columns") if getattr(config, key)]:
        raise ConfigError(f"found {' and '.join(named)}; expected none beside words and tags given in Python")
    sentences = {
        part: [
            _given_sentence(config, w, t, f"sentence {i} of {part}") for i, (w, t) in enumerate(zip(*pair, strict=True))
        ]
        for part, pair in given.pairs(parts).items()
    }
    place = {tag: i for i, tag in enumerate(sorted({tag for s in sentences["train"] for tag in s.tags}))}
    sets = [np.unique([place[tag] for tag in s.tags]) for s in sentences["train"]]
    sentences, split = given.divide(sentences, sets, len(place), held_out, seed)
    checksums = given.checksums({part: [(s.words, s.tags) for s in some] for part, some in sentences.items()})
    found: Parts = {part: (f"data[{part!r}]", sentences.get(part, [])) for part in PARTS}
    found["train"], more = hide_tags(config, found["train"], lambda path: read_tagged(config, path, gold=False))
    return found, checksums | {name: sha256(locate(name)) for name in more}, split


def _given_sentence(config: Any, words: Any, tags: Any, where: str) -> TaggedSentence:
    sentence = TaggedSentence(strings(words, "words", where=where), strings(tags, "tags", len(words), where))
    if not sentence.words:
        raise DataError(where, None, "no word", "at least one")
    try:
        if config.scheme != "none":
            spans(sentence.tags, config.scheme)
    except BrokenTags as broken:
        raise DataError(where, None, broken.found, broken.expected) from None
    return sentence


def strings(values: Any, what: str, size: int | None = None, where: str = "input") -> tuple[str, ...]:
    """A user's list of strings.

    Args:
        values: the list.
        what: what it has, for messages.
        size: expected length, that of the words; None: any.
        where: its place, for messages.

    Raises:
        DataError: it is no list of strings, or has another length.
    """
    if not isinstance(values, (list, tuple, np.ndarray)) or not all(isinstance(value, str) for value in values):
        raise DataError(where, None, f"{what} {values!r:.80}", "a list of strings")
    if size is not None and len(values) != size:
        raise DataError(where, None, f"{len(values)} {what} for {size} words", "one a word")
    return tuple(map(str, values))


def origin(config: Any) -> Any:
    """Where the parts of a config come from, for `Task.protocol`."""
    if config.in_memory:
        return given.SOURCE
    if config.corpus is not None:
        return f"{config.corpus} sample (synthetic)"
    return {part: getattr(config, part) for part in PARTS}


def hide_tags(
    config: SentencesConfig,
    train: tuple[object, Sequence[TaggedSentence]],
    read: Callable[[Path], Sequence[TaggedSentence]],
) -> tuple[tuple[object, Sequence[TaggedSentence]], list[str]]:
    """The training part with the tags that the config allows, and the names of its files without tags.

    Args:
        train: source and sentences, all with tags.
        read: reads a file of `task.unlabelled`.

    Raises:
        DataError: fewer sentences than `task.labelled`.
    """
    where, sentences = train
    if config.labelled is not None and len(sentences) < config.labelled:
        raise DataError(
            where, None, f"{len(sentences)} training sentences", f"at least task.labelled, {config.labelled}"
        )
    gold, rest = sentences[: config.labelled], sentences[len(sentences[: config.labelled]) :]
    names = [config.unlabelled] if isinstance(config.unlabelled, str) else config.unlabelled or []
    others = [*(rest if config.rest else ()), *(sentence for name in names for sentence in read(locate(name)))]
    return (where, [*gold, *(replace(sentence, tags=None) for sentence in others)]), names


def read_tagged(config: Any, path: Path, gold: bool) -> list[TaggedSentence]:
    """Sentences of a file; tags are required if `gold`.

    Raises:
        ConfigError: a column does not fit the file's format.
        DataError: the file is missing or broken.
    """
    if config.format == "predicates":
        for key in ("words", "tags", "columns"):
            if getattr(config, key):
                raise ConfigError(f"task.{key}: files of predicates (task.format) have columns of their own")
        return predicate_sentences(read_srl(path, gold=gold))
    conllu = config.format == "conllu" or (config.format == "auto" and path.suffix == ".conllu")
    wanted = {"words": config.words, "tags": config.tags, **{f"columns.{n}": c for n, c in config.columns.items()}}
    for key, column in wanted.items():
        if column is not None and isinstance(column, str) != conllu:
            has = "fields of CoNLL-U go by name (form, upos, xpos, …)" if conllu else "columns go by number, from 0"
            raise ConfigError(
                f"task.{key}: found {column!r}, and {path} is read as {'CoNLL-U' if conllu else 'columns'}; {has}. "
                "The suffix .conllu means CoNLL-U, unless task.format is set"
            )
    given = {name: column for name in ("words", "tags") if (column := wanted[name]) is not None}
    read = read_conllu if conllu else read_columns
    return read(path, **given, columns=config.columns, gold=gold)


def _sample(config: Any) -> Parts:
    from spen_plugins.samples.tagged import sample_corpus

    sentences = sample_corpus(config.corpus)
    known = sentences["train"][0].columns
    for name in config.columns:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise ConfigError(f"task.columns: no column {name!r} in the corpus {config.corpus!r}; {has}")
    return {part: ("the sample", some) for part, some in sentences.items()}
