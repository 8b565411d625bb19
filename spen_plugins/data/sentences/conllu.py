"""Tagged sentences in CoNLL-U (Universal Dependencies), read and written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.data.sentences.columns import TaggedSentence, cell
from spen_plugins.data.text import read_lines, shorten
from spen_plugins.errors import ConfigError, DataError, did_you_mean

FIELDS = ("form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Fields that can be read, as text."""
_SPACY_NAMES = {"pos": "upos", "tag": "xpos"}
"""Other names of fields, by which spaCy has them."""
_BLANK = "_"
_ID = re.compile(r"(0|[1-9]\d*)|[1-9]\d*-[1-9]\d*|\d+\.[1-9]\d*")


class Word(NamedTuple):
    """A token's line, its number in the sentence, and its fields as text by their names in lower case; fields without a
    name are called `column 10`, counted from 0."""

    line: int
    id: int
    fields: Mapping[str, str]


def read_conllu(
    path: Path, words: str = "form", tags: str = "upos", columns: Mapping[str, str] | None = None, gold: bool = True
) -> list[TaggedSentence]:
    """All sentences of a file; multiword ranges (`1-2`) and empty nodes (`1.1`) are skipped.

    Args:
        words: the words' field.
        tags: the tags' field, or several: "upos+xpos" makes tags like NOUN+NNS.
        columns: name of each further field to read -> the field.
        gold: if true, tags are required; otherwise they may be `_` throughout.
    """
    columns = columns or {}
    fields = {"words": words, "tags": tags, **{f"columns.{name}": field for name, field in columns.items()}}
    check_fields(fields, FIELDS, "CoNLL-U")
    lines, values = [], {key: list[tuple[str, ...]]() for key in fields}
    for _, sentence in conllu_sentences(path):
        lines.append(tuple(word.line for word in sentence))
        for key, field in fields.items():
            values[key].append(_read_values(path, sentence, field))
    if not lines:
        raise DataError(path, None, "comments or blank lines only", "sentences, one token per line")
    empty = {key for key, rows in values.items() if all(value == _BLANK for row in rows for value in row)}
    for key in fields:
        if key in empty and (gold or key != "tags"):
            problem = f"'_' as {fields[key]!r} of every word"
            raise DataError(path, None, problem, f"values; set task.{key} to another field")
    return [
        TaggedSentence(
            values["words"][i],
            None if "tags" in empty else values["tags"][i],
            {name: values[f"columns.{name}"][i] for name in columns},
            numbers[0],
            numbers,
        )
        for i, numbers in enumerate(lines)
    ]


def check_fields(fields: Mapping[str, str], known_fields: Collection[str], format_name: str) -> None:
    """Raise a ConfigError for a field that a format lacks; `fields` has fields by setting, tag fields joined by +."""
    for key, name in fields.items():
        for field in name.split("+") if key == "tags" else [name]:
            if field not in known_fields:
                suggestion = did_you_mean(_SPACY_NAMES.get(field, field), known_fields)
                raise ConfigError(
                    f"task.{key}: found {field!r}; expected a field of {format_name}: "
                    f"{', '.join(known_fields)}.{suggestion}"
                )


def conllu_sentences(
    path: Path, columns: Sequence[str] = ("id", *FIELDS), skipped: list[Word] | None = None
) -> Iterator[tuple[str | None, list[Word]]]:
    """Names and words of the sentences of CoNLL-U, or of CoNLL-U Plus, which names its columns in the first line; by
    default they are `columns`. Ranges and empty nodes are skipped; the list `skipped` gets them, with the number 0."""
    lines = read_lines(path)
    column_names = _read_column_names(lines, columns)
    name, words = None, []
    for number, line in enumerate([*map(str.strip, lines), ""], 1):
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            name = value.strip() or None if key.strip() == "sent_id" else name
        elif line:
            cells = re.split(r"\t| {2,}", line)
            names = [*column_names, *(f"column {n}" for n in range(len(column_names), len(cells)))]
            fields = dict(zip(names, cells, strict=False))
            match = _ID.fullmatch(fields.pop("id", ""))
            if match is None or not fields:
                expected = (
                    "the 10 fields of CoNLL-U, separated by tabs: a number (1, 2, … or a range 1-2), then the word"
                )
                raise DataError(path, number, shorten(line), expected)
            if match[1]:
                words.append(Word(number, int(match[1]), fields))
            elif skipped is not None:
                skipped.append(Word(number, 0, fields))
        else:
            if words:
                yield name, words
            name, words = None, []


def _read_column_names(lines: Sequence[str], default: Sequence[str]) -> Sequence[str]:
    header = next((line.partition("=")[2].split() for line in lines if line.startswith("# global.columns")), None)
    return default if header is None else [name.lower() for name in header]


def _read_values(path: Path, words: Sequence[Word], name: str) -> tuple[str, ...]:
    """A field's text for each word, or the texts of several fields joined by +; `_` if missing."""
    names, values = name.split("+"), []
    for word in words:
        missing = next((field for field in names if field not in word.fields), None)
        if missing is not None:
            problem = f"{len(word.fields) + 1} fields without {missing!r}"
            raise DataError(path, word.line, problem, "the 10 fields of CoNLL-U, separated by tabs")
        cells = [word.fields[field] for field in names]
        values.append(_BLANK if all(value == _BLANK for value in cells) else "+".join(cells))
    return tuple(values)


def write_conllu(sentences: Sequence[TaggedSentence], tags: str = "upos") -> str:
    """CoNLL-U with the tags in a field, or in several, as in "upos+xpos"; `_` in the other fields."""
    fields = tags.split("+")
    lines = []
    for sentence in sentences:
        for i, (word, tag) in enumerate(zip(sentence.words, sentence.tags or (), strict=True), 1):
            cells = {"form": cell(word) or _BLANK} | dict(zip(fields, tag.split("+", len(fields) - 1), strict=False))
            lines.append("\t".join([str(i), *(cells.get(name) or _BLANK for name in FIELDS)]))
        lines.append("")
    return "".join(line + "\n" for line in lines)


class ConlluExamples(list[Any]):
    """The examples of all sentences of a CoNLL-U file."""

    def __init__(self, examples: Iterable[Any], path: Path) -> None:
        super().__init__(examples)
        self.path = path


def fill_conllu(path: Path, sentences: Sequence[TaggedSentence], tags: str = "upos") -> str:
    """The text of a CoNLL-U file with the tags of `sentences` in its fields `tags`; all else stays as it is."""
    lines, fields = read_lines(path), tags.split("+")
    column_names = _read_column_names(lines, ("id", *FIELDS))
    if not {*fields} <= {*column_names}:
        return write_conllu(sentences, tags)
    for (_, words), sentence in zip(conllu_sentences(path), sentences, strict=True):
        for word, tag in zip(words, sentence.tags or (), strict=True):
            cells = re.split(r"(\t| {2,})", lines[word.line - 1].strip())  # with the separators
            cells += ["\t", _BLANK] * (len(column_names) - len(cells[::2]))
            for field, value in zip(fields, tag.split("+", len(fields) - 1), strict=False):
                cells[2 * column_names.index(field)] = value or _BLANK
            lines[word.line - 1] = "".join(cells)
    return "".join(line + "\n" for line in lines)
