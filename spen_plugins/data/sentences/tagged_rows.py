"""Tagged sentences from tables: CSV with one token per row; lists of words and of tags in Parquet and Arrow files.

    Sentence #,Word,POS,Tag
    Sentence: 1,Anna,NNP,B-per
    ,left,VBD,O

The sentence's cell is filled in each row of CSV, or only in the sentence's first row.
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
"""Usual names of columns, in lower case."""


def _is_token_rows(head: Head) -> bool:
    names = {name.casefold() for name in read_header(head)}
    return bool(names & {*SENTENCE} and names & {*WORDS})


TOKEN_ROWS = Format("CSV of tokens", "Sentence #,Word,Tag in the header, one token per row", _is_token_rows)


def read_token_rows(path: Path, fields: Mapping[str, str], gold: bool, scheme: str) -> list[TaggedSentence]:
    """All sentences of a file; `fields` has the names of the columns "words", "tags" and "columns.NAME". The defaults
    are usual names, for tags according to the scheme. Without gold, the column of tags may be missing or empty."""
    rows = records(path, find_separator(read_head(path)) or ",")
    names = [name.strip() for name in next(rows)[1]]
    usual_names = {"words": WORDS, "tags": _POS if scheme == "none" else _SPANS}
    all_places = {
        key.removeprefix("columns."): _find_place(
            path, names, key, fields.get(key), usual_names.get(key, ()), gold or key != "tags"
        )
        for key in {**usual_names, **fields}
    }
    sentence_place = _find_place(path, names, "format", None, SENTENCE)
    blocks: list[tuple[list[int], list[list[str]]]] = []
    current = None
    for line, cells in rows:
        name = cells[sentence_place].strip()
        if not blocks or (name and name != current):
            blocks.append(([], []))
            current = name
        blocks[-1][0].append(line)
        blocks[-1][1].append(cells)
    if not blocks:
        raise DataError(path, 1, "only a header", "rows below it")
    places = {name: place for name, place in all_places.items() if place is not None}
    return [_make_sentence(path, lines, cells, places, gold) for lines, cells in blocks]


def _make_sentence(
    path: Path, lines: Sequence[int], rows: Sequence[Sequence[str]], places: Mapping[str, int], gold: bool
) -> TaggedSentence:
    values = {name: tuple(cells[place].strip() for cells in rows) for name, place in places.items()}
    words, tags = values.pop("words"), values.pop("tags", None)
    if tags is not None and not all(tags):
        if gold or any(tags):
            raise DataError(path, lines[tags.index("")], "an empty tag", "a tag for every token")
        tags = None
    return TaggedSentence(words, tags, values, lines=tuple(lines))


def _find_place(
    path: Path, names: Sequence[str], key: str, column: str | None, usual_names: Sequence[str], required: bool = True
) -> int | None:
    lower_names = [name.casefold() for name in names]
    match = next((name for name in ([column.casefold()] if column else usual_names) if name in lower_names), None)
    if match is not None:
        return lower_names.index(match)
    if not required:
        return None
    expected = (
        f"a column named {column}.{did_you_mean(column, names)}" if column else f"one of {', '.join(usual_names)}"
    )
    raise DataError(path, 1, f"the columns {', '.join(names)}", f"{expected} (set task.{key} for another column)")


LIST_WORDS, LIST_TAGS = ("tokens", "words"), ("tags",)
"""Usual names of columns, for those that are not given."""


class TaggedRows(NamedTuple):
    """Some sentences of a file, the first in row `first`, from 1.

    `lists` has "words", "tags" (optional without gold) and further columns: `pyarrow.ListArray`s of strings, without
    nulls; all lists of a sentence have the same length, at least 1.
    """

    path: Path
    first: int
    lists: dict[str, Any]

    def sentences(self) -> Iterator[TaggedSentence]:
        """The sentences one by one; an error in a sentence names its row."""
        values = {name: lists.to_pylist() for name, lists in self.lists.items()}
        tags = values.pop("tags", None)
        for i, words in enumerate(values.pop("words")):
            columns = {name: tuple(lists[i]) for name, lists in values.items()}
            row = (self.first + i,) * len(words)
            yield TaggedSentence(tuple(words), None if tags is None else tuple(tags[i]), columns, lines=row)


def tagged_rows(places: Any, path: Path, gold: bool) -> Iterator[TaggedRows]:
    """Sentences of a file, folder or pattern, a few thousand at a time; `places` is as in `read_tagged`."""
    for shard in shards(path):
        columns = _find_columns(places, shard, gold)
        for first, table in pieces(shard):
            lists_by_key = {key: _read_lists(shard, first, name, table.column(name)) for key, name in columns.items()}
            lengths = {key: lists.value_lengths().to_numpy() for key, lists in lists_by_key.items()}
            for key, counts in lengths.items():
                if len(rows := np.flatnonzero(counts != lengths["words"])):
                    problem = (
                        f"{counts[rows[0]]} values in column {columns[key]!r} for {lengths['words'][rows[0]]} words"
                    )
                    raise DataError(shard, first + int(rows[0]), problem, "one per word")
            if len(rows := np.flatnonzero(lengths["words"] == 0)):
                raise DataError(shard, first + int(rows[0]), "a sentence without words", "at least one word")
            yield TaggedRows(shard, first, lists_by_key)


def _find_columns(places: Any, path: Path, gold: bool) -> dict[str, str]:
    """ "words", "tags" and further columns -> the name of each in a file."""
    names = column_names(path)
    settings: Mapping[str, Any] = {"words": places.words, "tags": places.tags, **places.columns}
    for key, name in settings.items():
        if name is not None and not isinstance(name, str):
            setting = key if key in ("words", "tags") else f"columns.{key}"
            raise ConfigError(f"task.{setting}: found {name}, but {path} is Parquet or Arrow; expected a column name")
    words = settings["words"] or _choose_column(path, names, LIST_WORDS, "words", ())
    used = (words, *places.columns.values())
    tags = settings["tags"] or _choose_column(path, names, LIST_TAGS, "tags", used, required=gold)
    columns = {"words": words, "tags": tags, **places.columns}
    if not gold and tags not in names:
        del columns["tags"]
    for name in columns.values():
        if name not in names:
            suggestion = did_you_mean(name, names)
            raise DataError(path, None, f"columns {', '.join(names)}", f"a column named {name!r}.{suggestion}")
    return columns


def _choose_column(
    path: Path, names: Sequence[str], usual_names: Sequence[str], key: str, used: Sequence[str], required: bool = True
) -> str:
    """The column with one of the usual names, or the only unused column."""
    unused = [name for name in names if name not in used]
    column = next((name for name in usual_names if name in names), unused[0] if len(unused) == 1 else "")
    if not column and required:
        expected = f"a column named {' or '.join(map(repr, usual_names))}, or the name of a column as task.{key}"
        raise DataError(path, None, f"columns {', '.join(names)}", expected)
    return column


def _read_lists(path: Path, first: int, name: str, column: Any) -> Any:
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
        index = int(np.flatnonzero(np.asarray(values.is_null()))[0])
        row = first + int(np.searchsorted(lists.value_lengths().to_numpy().cumsum(), index, side="right"))
        raise DataError(path, row, f"null among the values in column {name!r}", "texts")
    return lists
