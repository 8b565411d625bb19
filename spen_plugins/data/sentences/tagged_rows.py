"""Tagged sentences from tables: CSV with a token a row, and lists of words and of tags in Parquet and Arrow files.

    Sentence #,Word,POS,Tag
    Sentence: 1,Anna,NNP,B-per
    ,left,VBD,O

The sentence's cell is filled in each row of CSV, or only in the first of a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spen_plugins.data.disk.shards import column_names, pieces, shards
from spen_plugins.data.formats import Format, Head, read_head
from spen_plugins.data.records import find_separator, read_header, records
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.errors import ConfigError, DataError, did_you_mean

SENTENCE = ("sentence #", "sentence", "sentence_id", "sentence id", "sentence_idx", "sentence_number", "sent_id")
WORDS = ("word", "words", "token", "tokens")
_SPANS = ("tag", "tags", "ner_tag", "ner_tags", "ner", "label", "labels", "entity")
_POS = ("pos", "pos_tag", "upos", "tag", "tags", "label", "labels")
"""Names of columns that are looked for, in lower case."""


def _is_token_rows(head: Head) -> bool:
    names = {name.casefold() for name in read_header(head)}
    return bool(names & {*SENTENCE} and names & {*WORDS})


TOKEN_ROWS = Format("CSV of tokens", "Sentence #,Word,Tag in the header, one token per row", _is_token_rows)


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
        raise DataError(path, 1, "only a header", "rows below it")
    places = {name: place for name, place in wanted.items() if place is not None}
    return [_sentence(path, lines, cells, places, gold) for lines, cells in found]


def _sentence(
    path: Path, lines: Sequence[int], rows: Sequence[Sequence[str]], places: Mapping[str, int], gold: bool
) -> TaggedSentence:
    values = {name: tuple(cells[place].strip() for cells in rows) for name, place in places.items()}
    words, tags = values.pop("words"), values.pop("tags", None)
    if tags is not None and not all(tags):
        if gold or any(tags):
            raise DataError(path, lines[tags.index("")], "an empty tag", "a tag for every token")
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
    raise DataError(path, 1, f"the columns {', '.join(names)}", f"{one} (set task.{key} for another column)")


LIST_WORDS, LIST_TAGS = ("tokens", "words"), ("tags",)
"""Names of columns that are looked for where none is given."""


class TaggedRows(NamedTuple):
    """Some sentences of a file, the first in row `first`, from 1.

    `lists` has "words", "tags" (without gold perhaps not) and further columns: `pyarrow.ListArray`s of strings, without
    nulls, all lists of a sentence of equal length, at least 1.
    """

    path: Path
    first: int
    lists: dict[str, Any]

    def sentences(self) -> Iterator[TaggedSentence]:
        """The same one by one; an error in one names its row."""
        values = {name: lists.to_pylist() for name, lists in self.lists.items()}
        tags = values.pop("tags", None)
        for i, words in enumerate(values.pop("words")):
            columns = {name: tuple(lists[i]) for name, lists in values.items()}
            row = (self.first + i,) * len(words)
            yield TaggedSentence(tuple(words), None if tags is None else tuple(tags[i]), columns, lines=row)


def tagged_rows(places: Any, path: Path, gold: bool) -> Iterator[TaggedRows]:
    """Sentences of a file, folder or pattern, a few thousand at a time; `places` as of `read_tagged`."""
    for shard in shards(path):
        columns = _columns(places, shard, gold)
        for piece in pieces(shard):
            found = {key: _lists(shard, piece.first, name, piece.rows.column(name)) for key, name in columns.items()}
            lengths = {key: lists.value_lengths().to_numpy() for key, lists in found.items()}
            for key, counts in lengths.items():
                if len(at := np.flatnonzero(counts != lengths["words"])):
                    have = f"{counts[at[0]]} values in column {columns[key]!r} for {lengths['words'][at[0]]} words"
                    raise DataError(shard, piece.first + int(at[0]), have, "one per word")
            if len(at := np.flatnonzero(lengths["words"] == 0)):
                raise DataError(shard, piece.first + int(at[0]), "a sentence without words", "at least one word")
            yield TaggedRows(shard, piece.first, found)


def _columns(places: Any, path: Path, gold: bool) -> dict[str, str]:
    """ "words", "tags" and further columns -> the name of each in a file."""
    names = column_names(path)
    given: Mapping[str, Any] = {"words": places.words, "tags": places.tags, **places.columns}
    for key, name in given.items():
        if name is not None and not isinstance(name, str):
            where = key if key in ("words", "tags") else f"columns.{key}"
            raise ConfigError(f"task.{where}: found {name}, but {path} is Parquet or Arrow; expected a column name")
    words = given["words"] or _named_as(path, names, LIST_WORDS, "words", ())
    taken = (words, *places.columns.values())
    tags = given["tags"] or _named_as(path, names, LIST_TAGS, "tags", taken, required=gold)
    wanted = {"words": words, "tags": tags, **places.columns}
    if not gold and tags not in names:
        del wanted["tags"]
    for name in wanted.values():
        if name not in names:
            near = did_you_mean(name, names)
            raise DataError(path, None, f"columns {', '.join(names)}", f"a column named {name!r}.{near}")
    return wanted


def _named_as(
    path: Path, names: Sequence[str], usual: Sequence[str], what: str, taken: Sequence[str], required: bool = True
) -> str:
    """The column of one of the usual names, or the only one that is left."""
    left = [name for name in names if name not in taken]
    found = next((name for name in usual if name in names), left[0] if len(left) == 1 else "")
    if not found and required:
        said = f"a column named {' or '.join(map(repr, usual))}, or the name of a column as task.{what}"
        raise DataError(path, None, f"columns {', '.join(names)}", said)
    return found


def _lists(path: Path, first: int, name: str, column: Any) -> Any:
    """A column as lists of strings, checked."""
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    inner = kind.value_type if types.is_list(kind) or types.is_large_list(kind) else None
    inner = inner.value_type if inner is not None and types.is_dictionary(inner) else inner
    if inner is None or not (types.is_string(inner) or types.is_large_string(inner) or types.is_integer(inner)):
        raise DataError(path, None, f"column {name!r} of type {kind}", "lists of texts")
    if column.null_count:
        row = first + int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise DataError(path, row, f"null in column {name!r}", "a list of texts")
    lists = column.cast(pa.list_(pa.string()))
    values = lists.flatten()
    if values.null_count:
        place = int(np.flatnonzero(np.asarray(values.is_null()))[0])
        row = first + int(np.searchsorted(lists.value_lengths().to_numpy().cumsum(), place, side="right"))
        raise DataError(path, row, f"null among the values in column {name!r}", "texts")
    return lists
