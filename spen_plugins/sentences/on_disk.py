"""Training sentences of task `tagging` that stay on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.index_cache import kept_index
from spen_plugins.data.disk.on_disk import Index, Lists
from spen_plugins.data.schemes import Scheme, spans
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.tagged_rows import tagged_rows
from spen_plugins.sentences.batches import Entry, TaggedExample, Vocabulary

Encode = Callable[[TaggedSentence, object], tuple[tuple[str, ...] | None, frozenset]]


def column_key(name: str) -> str:
    """The name of a further column in the index."""
    return f"columns.{name}"


def tagged_index(config: Any, encoding: Scheme | None, encode: Encode, checksum: str) -> tuple[Index, str]:
    """The index of a config's training part, and a sentence about it; `encode` turns a sentence and its file into tags
    in the scheme `encoding`; with None, tags stay unchanged."""

    def batches() -> Iterator[Mapping[str, Any]]:
        import pyarrow as pa

        for rows in tagged_rows(config, source, gold=True):
            tags = rows.lists["tags"]
            if encoding is not None:
                tags = pa.array([encode(sentence, rows.path)[0] for sentence in rows.sentences()], tags.type)
            columns = {column_key(name): rows.lists[name] for name in config.columns}
            yield {"words": rows.lists["words"], "tags": tags, **columns}

    source = locate(config.train)
    names = {"words": config.words, "tags": config.tags, "columns": config.columns}
    settings = {"task": "tagging", **names, "scheme": config.scheme, "encoding": encoding}
    return kept_index(source, checksum, settings, ["words", "tags", *map(column_key, config.columns)], batches)


class TaggedMaker:
    """Makes the examples of rows of an index, equal to those of the same sentences in memory; `columns` has the indices
    of each further column's values, and without `encoding` tags are independent."""

    def __init__(
        self,
        index: Index,
        vocabulary: Vocabulary,
        columns: Mapping[str, Mapping[str, int]],
        tags: Mapping[str, int],
        encoding: Scheme | None,
    ) -> None:
        self._words, self._names, self._encoding = index.values["words"], index.values["tags"], encoding
        self._ids = np.array([vocabulary.number(word) for word in self._words], dtype=np.int64)
        self._tags = np.array([tags[name] for name in self._names], dtype=np.int64)
        self._columns = {
            name: np.array([indices[value] for value in index.values[column_key(name)]], dtype=np.int64)
            for name, indices in columns.items()
        }

    def __call__(self, lists: Mapping[str, Lists]) -> list[TaggedExample]:
        words, tags = lists["words"], lists["tags"]
        columns = {
            name: column.cut(indices[column.numbers])
            for name, indices in self._columns.items()
            for column in [lists[column_key(name)]]
        }
        rows = zip(
            words.cut(self._words[words.numbers]),
            words.cut(self._ids[words.numbers]),
            tags.cut(self._names[tags.numbers]),
            tags.cut(self._tags[tags.numbers]),
            strict=True,
        )
        examples = []
        for i, (texts, ids, names, tag_ids) in enumerate(rows):
            gold = frozenset() if self._encoding is None else frozenset(spans(names, self._encoding))
            values = {name: column[i] for name, column in columns.items()}
            examples.append(TaggedExample(Entry(tuple(texts), ids), values, tuple(names), tag_ids, gold))
        return examples
