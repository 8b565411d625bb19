"""Tagged sentences from files of several formats, recognised by content."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.data.disk.shards import check_in_memory, is_sharded, shards
from spen_plugins.data.formats import JSON_LINES, Format, Head, is_prose, read_head, recognise
from spen_plugins.data.records import read_json_lines
from spen_plugins.data.sentences.columns import TaggedSentence, predicate_sentences, read_columns
from spen_plugins.data.sentences.conllu import read_conllu
from spen_plugins.data.sentences.conllu_roles import is_conllu
from spen_plugins.data.sentences.docbin import DOCBIN, read_docbin
from spen_plugins.data.sentences.items import FORM, parse_tagged
from spen_plugins.data.sentences.offset_items import WORDS, own_form
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.data.sentences.tagged_rows import TOKEN_ROWS, read_token_rows, tagged_rows
from spen_plugins.data.text import open_text
from spen_plugins.data.texts.words import is_mostly_unspaced
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.files import from_json

_JSON = Format("JSONL", FORM, JSON_LINES.fits)
JSON_LIST = Format(
    "JSON",
    "a list of objects, such as Label Studio exports",
    lambda head: re.match(r"\s*\[\s*[\[{\"]", "\n".join(head.filled[:2])) is not None,
)
CONLLU = Format("CoNLL-U", "10 fields separated by tabs", is_conllu)
_COLUMNS = Format(
    "columns",
    "one token per line, cells separated by tabs or blanks, a blank line between sentences",
    lambda head: bool(head.filled) and not is_prose(head) and head.filled[0][0] != "[",
)
FORMATS = {
    "jsonl": _JSON,
    "json": JSON_LIST,
    "docbin": DOCBIN,
    "csv": TOKEN_ROWS,
    "conllu": CONLLU,
    "columns": _COLUMNS,
}
"""Formats of tagged sentences by their name in configs, in the order in which they are tried."""

_WITH_FIELD_NAMES = ("conllu", "docbin", "csv")
"""Formats whose fields have names."""


@dataclass(frozen=True)
class TagPlaces:
    """The places of a file's words and tags, named as in task `tagging`'s settings, which can be passed instead."""

    format: str = "auto"
    words: int | str | None = None
    tags: int | str | None = None
    columns: Mapping[str, int | str] = field(default_factory=dict)
    scheme: str = "none"
    auxiliaries: bool = True
    language: str = "en"


class TagFile(NamedTuple):
    """A file's sentences, and a description of its format."""

    sentences: list[TaggedSentence]
    format: str
    tags: str = ""
    """The place of the tags, for the user."""

    @property
    def description(self) -> str:
        """A sentence about the file, for the user."""
        tokens = sum(len(sentence.words) for sentence in self.sentences)
        sentences = f"{len(self.sentences):,} sentence{'s' * (len(self.sentences) != 1)}"
        return f"read as {self.format}: {sentences}, {tokens:,} word{'s' * (tokens != 1)}{self.tags}"


def read_tagged(places: Any, path: Path, gold: bool) -> TagFile:
    """Sentences of a file; `places` is a `TagPlaces`, or a config with its names."""
    if not places.auxiliaries and places.format != "predicates":
        raise ConfigError("task.auxiliaries=false requires task.format=predicates")
    if places.format == "predicates":
        return _read_predicates(places, path, gold)
    if places.format == "auto" and (is_sharded(path) or path.is_dir()):
        return _read_shards(places, path, gold)
    column_keys = {"words": places.words, "tags": places.tags, **{f"columns.{n}": c for n, c in places.columns.items()}}
    column_keys = {key: column for key, column in column_keys.items() if column is not None}
    name = _find_format(places.format, path, list(column_keys.values()))
    if name in ("jsonl", "json"):
        return _read_json(places, path, gold, name)
    _check_columns(path, name, column_keys)
    settings: dict[str, Any] = {key: column_keys[key] for key in ("words", "tags") if key in column_keys}
    settings |= {"columns": places.columns, "gold": gold}
    form = FORMATS[name].name
    if name == "columns":
        sentences = read_columns(path, **settings, plain=gold and places.tags is None and places.scheme == "none")
        place = "the last column" if places.tags is None else f"column {places.tags}"
        return TagFile(sentences, form, f", tags of {place}" * gold)
    if name == "conllu":
        return TagFile(read_conllu(path, **settings), form)
    read = read_docbin if name == "docbin" else read_token_rows
    return TagFile(read(path, column_keys, gold, places.scheme), form)


def _read_predicates(places: Any, path: Path, gold: bool) -> TagFile:
    for key in ("words", "tags", "columns"):
        if getattr(places, key):
            raise ConfigError(f"task.{key}: task.format=predicates has fixed columns; remove the key")
    roles = read_roles(path, gold=gold)
    sentences = [s if places.auxiliaries else s.without_auxiliaries() for s in roles.sentences]
    return TagFile(predicate_sentences(sentences), f"{roles.format}, their predicates")


def _read_shards(places: Any, path: Path, gold: bool) -> TagFile:
    for shard in shards(path):
        check_in_memory(shard)
    sentences = [sentence for rows in tagged_rows(places, path, gold) for sentence in rows.sentences()]
    if not sentences:
        raise DataError(path, None, "no row", "at least one")
    return TagFile(sentences, "Parquet or Arrow")


def _check_columns(path: Path, name: str, column_keys: Mapping[str, int | str]) -> None:
    """Raise ConfigError if a format's named fields are given by number, or its columns by name."""
    is_named = name in _WITH_FIELD_NAMES
    for key, column in column_keys.items():
        if isinstance(column, str) != is_named:
            form = FORMATS[name].name
            examples = "Word, Tag" if name == "csv" else "form, upos, xpos, …"
            expected = (
                f"expected the name of a field ({examples})" if is_named else "expected the number of a column, from 0"
            )
            raise ConfigError(
                f"task.{key}: found {column!r}, but {path} is read as {form}; {expected}. "
                "The format is recognised by content, unless task.format is set"
            )


def read_words(places: Any, path: Path) -> TagFile:
    """Sentences of a file to predict, of any format; of `places`, it must have only the words and further columns.

    Tags are read if the file has any, and may be of another kind: they distinguish columns from raw text. If the file's
    format is not that of `places`, its words are the first column or the field form.
    """
    places = TagPlaces(**{f.name: getattr(places, f.name) for f in fields(TagPlaces)})
    if places.format == "predicates":
        return read_tagged(places, path, gold=False)
    if places.format == "auto" and (is_sharded(path) or path.is_dir()):
        tags = places.tags if isinstance(places.tags, str) else None
        return read_tagged(replace(places, tags=tags), path, gold=False)
    columns = [column for column in (places.words, *places.columns.values()) if column is not None]
    name = _find_format(places.format, path, columns)
    uses_default = isinstance(places.words, int) if name in _WITH_FIELD_NAMES else places.words in ("form", *WORDS)
    uses_default = (uses_default or (name == "csv" and places.words == "form")) and name not in ("jsonl", "json")
    words = None if uses_default else places.words
    tags = places.tags if name == "columns" and isinstance(places.tags, int) else None
    return read_tagged(replace(places, format=name, words=words, tags=tags), path, gold=False)


def has_no_columns(head: Head) -> bool:
    """True for lines of words, or of text without blanks between them, which only a named language tells apart."""
    if not head.filled or head.filled[0].lstrip()[0] in "{[" or any("\t" in line for line in head.filled):
        return False
    widths = {len(line.split()) for line in head.filled}
    return widths == {1} or (len(widths) > 1 and is_mostly_unspaced("".join(head.filled)))


def _find_format(format_name: str, path: Path, columns: Sequence[int | str]) -> str:
    """The name of a file's format; a CoNLL-U file is read as columns if the config numbers them."""
    if format_name != "auto":
        return format_name
    if path.suffix == ".conllu" and path.is_file():
        return "conllu"
    head = read_head(path)
    if re.match(r'\s*\{\s*\n\s*"[^"]*"\s*:', "\n".join(head.filled[:2])):
        expected = f"one object per line, such as {FORM} (jq -c . FILE > NEW), or a JSON list of objects"
        raise DataError(path, head.first, "a JSON object over several lines", expected)
    recognised = recognise(path, list(FORMATS.values()))
    name = next(name for name, form in FORMATS.items() if form is recognised)
    return "columns" if name == "conllu" and any(isinstance(column, int) for column in columns) else name


def _read_json(places: Any, path: Path, gold: bool, name: str) -> TagFile:
    widened_spans: list[str] = []

    def make(item: Any) -> TaggedSentence:
        sentence = parse_tagged(own_form(item, places, widened_spans), places.scheme, places.columns or None)
        missing = ["tags"] * (sentence.tags is None) + [n for n in places.columns if n not in sentence.columns]
        if gold and missing:
            keys = f" in the keys {', '.join(map(str, item))}" if isinstance(item, Mapping) else ""
            raise DataError(path, None, f"a sentence without {missing[0]}{keys}", FORM)
        return sentence

    if name == "json" and (items := listed_items(path)) is not None:
        sentences = [_make_sentence(path, number, item, make) for number, item in enumerate(items, 1)]
    else:
        lines = read_json_lines(path, FORM, make)
        sentences = [replace(sentence, lines=(number,) * len(sentence.words)) for number, sentence in lines]
    spans = f"{len(widened_spans):,} spans were" if len(widened_spans) > 1 else "1 span was"
    warning = f"; warning: {spans} widened to word boundaries, such as {widened_spans[0]}" if widened_spans else ""
    return TagFile(sentences, FORMATS[name].name, warning)


def listed_items(path: Path) -> list[Any] | None:
    """The items of a file that is one JSON list; None if each line is a list."""
    with open_text(path) as file:
        data = file.read()
    try:
        items = from_json(data)
    except ValueError:
        return None  # the reader of lines reports the line
    return None if len(items) == 2 and isinstance(items[0], str) else items


def _make_sentence(path: Path, number: int, item: Any, make: Callable[[Any], TaggedSentence]) -> TaggedSentence:
    try:
        return make(item)
    except DataError as error:
        raise DataError(path, None, f"item {number} with {error.found}", error.expected) from None
