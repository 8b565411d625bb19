"""Sentences of task `tagging`, from files or an embedded corpus."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from spen_plugins.builtin.tasks import given
from spen_plugins.builtin.tasks.file_parts import FileParts, files_of, read_file_parts
from spen_plugins.config.config import Config
from spen_plugins.datasets import locate
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.readers.columns import TaggedSentence, predicate_sentences, read_columns
from spen_plugins.readers.conllu import read_conllu
from spen_plugins.readers.conllu_roles import is_conllu
from spen_plugins.readers.docbin import DOCBIN, read_docbin
from spen_plugins.readers.formats import JSON_LINES, Format, recognise
from spen_plugins.readers.jsonl import read_json_lines
from spen_plugins.readers.prose import is_prose
from spen_plugins.readers.roles import read_roles
from spen_plugins.readers.schemes import BrokenTags, spans
from spen_plugins.readers.tag_items import FORM, tagged_of
from spen_plugins.readers.text import sha256
from spen_plugins.task import PARTS

CORPORA = ("pos", "ner", "predicates")
NO_TAGS = "a file to predict may have no column of tags"
"""For errors about tags of such a file."""


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


class TagFile(NamedTuple):
    """A file's sentences, and what it was recognised as."""

    sentences: list[TaggedSentence]
    format: str

    @property
    def said(self) -> str:
        """What was read, for the user."""
        tokens = sum(len(sentence.words) for sentence in self.sentences)
        return f"read as {self.format}: {len(self.sentences):,} sentences, {tokens:,} words"


def read_parts(config: Any) -> FileParts[TaggedSentence]:
    """All parts of a task's config.

    Raises:
        ConfigError: the config names no data, or columns that its data do not have.
        DataError: a file is missing or broken.
    """
    if config.in_memory:
        raise given.not_kept()
    files = files_of(config, CORPORA)

    def read(path: Path) -> tuple[list[TaggedSentence], str]:
        found = read_tagged(config, path, gold=True)
        return found.sentences, found.said

    found: FileParts[TaggedSentence] = (
        read_file_parts(files, read, _tags, "tags")
        if files
        else FileParts(_sample(config), {}, [], f"{config.corpus} sample (synthetic)")
    )
    train, more = hide_tags(config, found.parts["train"], lambda path: read_tagged(config, path, False).sentences)
    checksums = found.checksums | {name: sha256(locate(name)) for name in more}
    notes = [note for part in PARTS for note in _blank_tags(*found.parts[part])] if files else []
    return found._replace(parts={**found.parts, "train": train}, checksums=checksums, notes=[*found.notes, *notes])


def _tags(sentence: TaggedSentence) -> set[str] | None:
    return None if sentence.tags is None else set(sentence.tags)


def _blank_tags(where: object, sentences: Sequence[TaggedSentence]) -> list[str]:
    """A warning if most tags are `_`, which is CoNLL's sign for no value."""
    tags = [tag for sentence in sentences for tag in sentence.tags or ()]
    blank = sum(tag == "_" for tag in tags)
    if blank * 2 <= len(tags):
        return []
    share = f"{blank:,} of {len(tags):,} tags of {where} are '_'"
    return [f"warning: {share}, which means no value in CoNLL's formats; is it the right column (task.tags)?"]


def unknown_tags(path: object, gold: Sequence[Sequence[str]], known: Collection[str]) -> list[str]:
    """A warning if a file to predict has tags (of each sentence), but none that the run knows.

    Raises:
        DataError: moreover, each sentence has one word, as short lines of raw text have if their last words are tags.
    """
    tags = {tag for names in gold for tag in names if tag != "_"}
    if not tags or any(tag in known for tag in tags):
        return []
    found, some = (", ".join(sorted(values)[:5]) for values in (tags, known))
    if all(len(names) == 1 for names in gold):
        raise DataError(path, None, f"tags such as {found}, no tag of the run", f"tags such as {some}; {NO_TAGS}")
    return [
        f"warning: {path} has tags such as {found}, and none of the run's ({some}). If that is raw text, give it to "
        "--text or on standard input"
    ]


def given_parts(config: Any, parts: Mapping[str, Any], held_out: float, seed: int) -> FileParts[TaggedSentence]:
    """All parts of sentences given in Python, as `Task.take`.

    Raises:
        ConfigError: the config names data of its own, or columns.
        DataError: a sentence is no list of words, has another number of tags, or breaks the scheme.
    """
    if named := [f"task.{key}" for key in ("corpus", "file", "split", *PARTS, "columns") if getattr(config, key)]:
        raise ConfigError(f"found {' and '.join(named)}; expected none beside words and tags given in Python")
    sentences = {
        part: [_given(config, *both, f"sentence {i} of {part}") for i, both in enumerate(zip(*pair, strict=True))]
        for part, pair in given.pairs(parts).items()
    }
    sentences, split = given.divide(sentences, [set(s.tags) for s in sentences["train"]], held_out, seed)
    checksums = given.checksums({part: [(s.words, s.tags) for s in some] for part, some in sentences.items()})
    found = {part: (f"data[{part!r}]", sentences.get(part, [])) for part in PARTS}
    train, more = hide_tags(config, found["train"], lambda path: read_tagged(config, path, False).sentences)
    checksums |= {name: sha256(locate(name)) for name in more}
    return FileParts({**found, "train": train}, checksums, [], split)


def _given(config: Any, words: Any, tags: Any, where: str) -> TaggedSentence:
    listed = [list(v) if hasattr(v, "tolist") else v for v in (words, tags)]
    try:
        sentence = tagged_of(dict(zip(("words", "tags"), listed, strict=True)))
        if config.scheme != "none":
            spans(sentence.tags or (), config.scheme)
    except DataError as error:
        raise DataError(where, None, error.found, error.expected) from None
    except BrokenTags as broken:
        raise DataError(where, None, broken.found, broken.expected) from None
    return sentence


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


_JSON = Format("JSONL", FORM, JSON_LINES.fits)
_CONLLU = Format("CoNLL-U", "10 fields apart by tabs", is_conllu)
_COLUMNS = Format(
    "columns",
    "a token a line, cells apart by tabs or blanks, a blank line between sentences",
    lambda head: bool(head.filled) and not is_prose(head) and head.filled[0][0] != "[",
)
FORMATS = {"jsonl": _JSON, "docbin": DOCBIN, "conllu": _CONLLU, "columns": _COLUMNS}
"""Formats of tagged sentences by their name in configs, in the order in which they are tried."""


def read_tagged(config: Any, path: Path, gold: bool) -> TagFile:
    """Sentences of a file; tags are required if `gold`.

    Raises:
        ConfigError: a column does not fit the file's format.
        DataError: the file is missing, broken, or of no known format.
    """
    wanted = {"words": config.words, "tags": config.tags, **{f"columns.{n}": c for n, c in config.columns.items()}}
    if config.format == "predicates":
        for key in ("words", "tags", "columns"):
            if getattr(config, key):
                raise ConfigError(f"task.{key}: files of predicates (task.format) have columns of their own")
        roles = read_roles(path, gold=gold)
        return TagFile(predicate_sentences(roles.sentences), f"{roles.format}, their predicates")
    name = _format(config.format, path, [column for column in wanted.values() if column is not None])
    if name == "jsonl":
        return TagFile(_read_json(config, path, gold), _JSON.name)
    fields = name in ("conllu", "docbin")
    for key, column in wanted.items():
        if column is not None and isinstance(column, str) != fields:
            form = FORMATS[name].name
            has = f"fields of {form} go by name (form, upos, xpos, …)" if fields else "columns go by number, from 0"
            raise ConfigError(
                f"task.{key}: found {column!r}, and {path} is read as {form}; {has}. "
                "The format is recognised by content, unless task.format is set"
            )
    given = {key: column for key in ("words", "tags") if (column := wanted[key]) is not None}
    if name == "docbin":
        sentences = read_docbin(path, **given, columns=config.columns, gold=gold, scheme=config.scheme)
    else:
        read = read_conllu if name == "conllu" else read_columns
        sentences = read(path, **given, columns=config.columns, gold=gold)
    return TagFile(sentences, FORMATS[name].name)


def _format(given: str, path: Path, columns: Sequence[int | str]) -> str:
    """The name of a file's format; a CoNLL-U file whose columns the config numbers is one of columns."""
    if given != "auto":
        return given
    if path.suffix == ".conllu" and path.is_file():
        return "conllu"
    found = recognise(path, list(FORMATS.values()))
    name = next(name for name, form in FORMATS.items() if form is found)
    return "columns" if name == "conllu" and any(isinstance(column, int) for column in columns) else name


def _read_json(config: Any, path: Path, gold: bool) -> list[TaggedSentence]:
    def make(item: Any) -> TaggedSentence:
        sentence = tagged_of(item, config.scheme, config.columns)
        lacks = ["tags"] * (sentence.tags is None) + [n for n in config.columns if n not in sentence.columns]
        if gold and lacks:
            raise DataError(path, None, f"a sentence without {lacks[0]}", FORM)
        return sentence

    return [replace(sentence, line=None) for _, sentence in read_json_lines(path, FORM, make)]


def _sample(config: Any) -> Parts:
    from spen_plugins.samples.tagged import sample_corpus

    sentences = sample_corpus(config.corpus)
    known = sentences["train"][0].columns
    for name in config.columns:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise ConfigError(f"task.columns: no column {name!r} in the corpus {config.corpus!r}; {has}")
    return {part: ("the sample", some) for part, some in sentences.items()}
