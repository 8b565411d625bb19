"""Sentences of task `tagging`, from files or an embedded corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from spen_plugins.builtin.tasks.file_parts import FileParts, files_of, read_file_parts
from spen_plugins.config.config import Config
from spen_plugins.datasets import locate
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.readers.columns import TaggedSentence, predicate_sentences, read_columns
from spen_plugins.readers.conllu import read_conllu
from spen_plugins.readers.roles import read_roles
from spen_plugins.readers.text import sha256

CORPORA = ("pos", "ner", "predicates")


class SentencesConfig(Config):
    """Files of tagged sentences, which of them have gold, and the look-up of words."""

    file: str | None = None
    """A file that is divided into parts by `split`."""
    split: str | None = None
    """JSON file {"train": sentences, "validation": sentences, "test": sentences}, counted from 0 (`spen data split`
    makes one)."""
    train: str | None = None
    """Training file; `data:` paths are below $SPEN_DATA."""
    validation: str | None = None
    """Validation file; without one, it is carved from the training file, stratified by tags."""
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


def read_parts(config: Any) -> FileParts[TaggedSentence]:
    """All parts of a task's config.

    Raises:
        ConfigError: the config names no data, or columns that its data do not have.
        DataError: a file is missing or broken.
    """
    files = files_of(config, CORPORA)
    found: FileParts[TaggedSentence] = (
        read_file_parts(files, lambda path: (read_tagged(config, path, gold=True), None), _tags, "tags")
        if files
        else FileParts(_sample(config), {}, [], f"{config.corpus} sample (synthetic)")
    )
    train, more = hide_tags(config, found.parts["train"], lambda path: read_tagged(config, path, gold=False))
    checksums = found.checksums | {name: sha256(locate(name)) for name in more}
    return found._replace(parts={**found.parts, "train": train}, checksums=checksums)


def _tags(sentence: TaggedSentence) -> set[str] | None:
    return None if sentence.tags is None else set(sentence.tags)


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
        return predicate_sentences(read_roles(path, gold=gold).sentences)
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
