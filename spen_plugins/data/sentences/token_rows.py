"""Tagged sentences from CSV with a token a row and a column that numbers the sentences.

    Sentence #,Word,POS,Tag
    Sentence: 1,Anna,NNP,B-per
    ,left,VBD,O

The sentence's cell is filled in each row, or only in the first of a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spen_plugins.data.formats import Format, Head, read_head
from spen_plugins.data.records import find_separator, read_header, records
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.errors import DataError, did_you_mean

SENTENCE = ("sentence #", "sentence", "sentence_id", "sentence id", "sentence_idx", "sentence_number", "sent_id")
WORDS = ("word", "words", "token", "tokens")
_SPANS = ("tag", "tags", "ner_tag", "ner_tags", "ner", "label", "labels", "entity")
_POS = ("pos", "pos_tag", "upos", "tag", "tags", "label", "labels")
"""Names of columns that are looked for, in lower case."""


def _is_token_rows(head: Head) -> bool:
    names = {name.casefold() for name in read_header(head)}
    return bool(names & {*SENTENCE} and names & {*WORDS})


TOKEN_ROWS = Format("CSV of tokens", "Sentence #,Word,Tag in the header, a token a row", _is_token_rows)


def read_token_rows(path: Path, fields: Mapping[str, str], gold: bool, scheme: str) -> list[TaggedSentence]:
    """All sentences of a file; `fields` has the names of the columns "words", "tags" and "columns.NAME", by default
    usual ones, of tags by the scheme. Without gold the column of tags may be missing, or empty."""
    rows = records(path, find_separator(read_head(path)) or ",")
    names = [name.strip() for name in next(rows)[1]]
    usual = {"words": WORDS, "tags": _POS if scheme == "none" else _SPANS}
    wanted = {
        key.removeprefix("columns."): _place(
            path, names, key, fields.get(key), usual.get(key, ()), gold or key != "tags"
        )
        for key in {**usual, **fields}
    }
    number = _place(path, names, "format", None, SENTENCE)
    found: list[tuple[list[int], list[list[str]]]] = []
    current = None
    for line, cells in rows:
        name = cells[number].strip()
        if not found or (name and name != current):
            found.append(([], []))
            current = name
        found[-1][0].append(line)
        found[-1][1].append(cells)
    if not found:
        raise DataError(path, 1, "a header alone", "rows below it")
    places = {name: place for name, place in wanted.items() if place is not None}
    return [_sentence(path, lines, cells, places, gold) for lines, cells in found]


def _sentence(
    path: Path, lines: Sequence[int], rows: Sequence[Sequence[str]], places: Mapping[str, int], gold: bool
) -> TaggedSentence:
    values = {name: tuple(cells[place].strip() for cells in rows) for name, place in places.items()}
    words, tags = values.pop("words"), values.pop("tags", None)
    if tags is not None and not all(tags):
        if gold or any(tags):
            raise DataError(path, lines[tags.index("")], "an empty tag", "a tag of every token")
        tags = None
    return TaggedSentence(words, tags, values, lines=tuple(lines))


def _place(
    path: Path, names: Sequence[str], key: str, given: str | None, usual: Sequence[str], required: bool = True
) -> int | None:
    known = [name.casefold() for name in names]
    found = next((name for name in ([given.casefold()] if given else usual) if name in known), None)
    if found is not None:
        return known.index(found)
    if not required:
        return None
    one = f"a column named {given}.{did_you_mean(given, names)}" if given else f"one of {', '.join(usual)}"
    raise DataError(path, 1, f"the columns {', '.join(names)}", f"{one} (task.{key} names another)")
