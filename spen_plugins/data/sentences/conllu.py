"""Reads CoNLL-U (Universal Dependencies) as tagged sentences, through the library `conllu`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.text import read_lines
from spen_plugins.errors import ConfigError, DataError, did_you_mean

FIELDS = ("form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""Fields that can be read, as text."""
_BLANK = "_"


def read_conllu(
    path: Path, words: str = "form", tags: str = "upos", columns: Mapping[str, str] | None = None, gold: bool = True
) -> list[TaggedSentence]:
    """All sentences of a file; multiword ranges (`1-2`) and empty nodes (`1.1`) are left out.

    Args:
        path: the file.
        words: the words' field.
        tags: the tags' field, or several: "upos+xpos" makes tags like NOUN+NNS.
        columns: name of each further field to read -> the field.
        gold: if true, tags are required; otherwise they may be `_` throughout.

    Raises:
        ConfigError: an unknown field.
        DataError: with file, line, what was found and what was expected.
    """
    wanted = {"words": words, "tags": tags, **{f"columns.{name}": of for name, of in (columns or {}).items()}}
    check_fields(wanted, FIELDS, "CoNLL-U")
    sentences = list(_sentences(path, wanted))
    if not sentences:
        raise DataError(path, None, "comments or blank lines only", "sentences, one token a line")
    empty = {
        key: all(value == _BLANK for _, values in sentences for value in values[key])
        for key in wanted
        if gold or key != "tags"
    }
    for key in wanted:
        if empty.get(key):
            raise DataError(
                path, None, f"'_' as every word's {wanted[key]!r}", f"values; name another field (task.{key})"
            )
    tagged = gold or any(value != _BLANK for _, values in sentences for value in values["tags"])
    return [
        TaggedSentence(
            values["words"],
            values["tags"] if tagged else None,
            {name: values[f"columns.{name}"] for name in columns or {}},
            lines[0],
            None if lines[-1] - lines[0] == len(lines) - 1 else lines,
        )
        for lines, values in sentences
    ]


def check_fields(wanted: Mapping[str, str], known: Collection[str], what: str) -> None:
    """Raise a ConfigError for a field that a format has not; `wanted` has them by setting, tags perhaps with +."""
    for key, name in wanted.items():
        for field in name.split("+") if key == "tags" else [name]:
            if field not in known:
                near = did_you_mean(field, known)
                raise ConfigError(f"task.{key}: found {field!r}, no field of {what}; known: {', '.join(known)}.{near}")


class Words(NamedTuple):
    """A sentence: its name, if it has one, and of each word the line number, the number in CoNLL-U, and the fields as
    text by their names in lower case; those without a name are `column 10`, from 0."""

    name: str | None
    lines: tuple[int, ...]
    numbers: tuple[int, ...]
    fields: tuple[Mapping[str, str], ...]


def conllu_sentences(path: Path, columns: Sequence[str] = ("id", *FIELDS)) -> Iterator[Words]:
    """Sentences of CoNLL-U, or CoNLL-U Plus, whose first line names its columns; ranges and empty nodes are left out.

    Args:
        path: the file.
        columns: names of the first columns, where the file does not name them.

    Raises:
        DataError: with file, line, what was found and what was expected.
    """
    lines = read_lines(path)
    named = next((line.partition("=")[2].split() for line in lines if line.startswith("# global.columns")), None)
    known = columns if named is None else [name.lower() for name in named]
    for first, block in _blocks(lines):
        if (words := _parse(path, first, block, known)) is not None:
            yield words


def _parse(path: Path, first: int, block: Sequence[str], known: Sequence[str]) -> Words | None:
    """The words of a block of lines; None if it has none."""
    import conllu

    numbers = [n for n, line in enumerate(block, first) if not line.lstrip().startswith("#")]
    if not numbers:
        return None
    width = max(line.count("\t") + 1 for line in block)
    names = [*known, *(f"column {n}" for n in range(len(known), width))]
    parsers = {name: _as_text for name in names if name != "id"}
    try:
        (tokens,) = conllu.parse("\n".join(block), fields=names, field_parsers=dict(parsers))
    except conllu.exceptions.ParseException as error:
        raise _broken(path, first, block, names, parsers, error) from None
    words = [(n, token) for n, token in zip(numbers, tokens, strict=True) if _is_word(path, n, token)]
    if not words:
        return None
    fields = tuple({name: value for name, value in token.items() if name != "id"} for _, token in words)
    return Words(tokens.metadata.get("sent_id"), tuple(n for n, _ in words), tuple(t["id"] for _, t in words), fields)


def _sentences(path: Path, wanted: Mapping[str, str]) -> Iterator[tuple[tuple[int, ...], dict[str, tuple[str, ...]]]]:
    """Line number of each word, and the wanted fields by key."""
    for _, lines, _, words in conllu_sentences(path):
        for number, fields in zip(lines, words, strict=True):
            missing = next((of for name in wanted.values() for of in name.split("+") if of not in fields), None)
            if missing is not None:
                raise DataError(
                    path, number, f"{len(fields) + 1} fields, no {missing!r}", "the 10 of CoNLL-U, apart by tabs"
                )
        yield lines, {key: tuple(_value(fields, of) for fields in words) for key, of in wanted.items()}


def _value(token: Mapping[str, Any], name: str) -> str:
    """A field's text, or those of several fields with + between; `_` if missing."""
    values = [token[of] for of in name.split("+")]
    return _BLANK if all(value == _BLANK for value in values) else "+".join(values)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Blocks of non-blank lines, each with the number of its first."""
    start = 0
    for end in [*(i for i, line in enumerate(lines) if not line.strip()), len(lines)]:
        if end > start:
            yield start + 1, lines[start:end]
        start = end + 1


def _as_text(cells: Sequence[str], i: int) -> str:
    return cells[i]


def _is_word(path: Path, number: int, token: Mapping[str, Any]) -> bool:
    if token.get("id") is None:
        raise DataError(path, number, "'_' or nothing as the token's number", "1, 2, …, or a range as 1-2")
    return isinstance(token["id"], int)


def _broken(
    path: Path,
    first: int,
    block: Sequence[str],
    names: Sequence[str],
    parsers: Mapping[str, Callable[..., str]],
    error: Exception,
) -> DataError:
    """The error with the line number, which the library does not report."""
    import conllu

    for number, line in enumerate(block, first):
        try:
            conllu.parse(line, fields=names, field_parsers=dict(parsers))
        except conllu.exceptions.ParseException as of_line:
            return DataError(
                path, number, f"a line that can't be read ({of_line})", "the 10 fields of CoNLL-U, apart by tabs"
            )
    return DataError(path, first, f"a sentence that can't be read ({error})", "CoNLL-U")
