"""Training texts of task `text` that stay on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

import numpy as np

from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.index_cache import kept_index
from spen_plugins.data.disk.on_disk import Index, Lists
from spen_plugins.data.disk.shards import AT_ONCE, shards
from spen_plugins.data.formats import PARQUET
from spen_plugins.data.texts.labelled_texts import stream_rows
from spen_plugins.data.texts.text_columns import Layout


def text_index(
    config: Any,
    layout: Layout,
    words: Callable[[str], list[str]],
    check: Callable[[Sequence[str], object, int | None], Any] | None,
    sums: Mapping[str, str],
    unspaced: bool,
) -> tuple[Index, str]:
    """The index of a config's training part, and a sentence about it; errors as in `stream_rows` and `kept_index`.

    Args:
        config: the task's config.
        layout: the files' columns.
        words: a text's words.
        check: called with the labels, file and row of each text; None: all labels are accepted.
        sums: checksums of the training part and, if there is one, of the file of label names, by their names.
        unspaced: as in `words_of`.
    """

    def make_batches() -> Iterator[Mapping[str, Any]]:
        import pyarrow as pa

        strings = pa.list_(pa.string())
        for shard in shards(source):
            rows, _ = stream_rows(shard, PARQUET, layout)
            while chunk := list(islice(rows, AT_ONCE)):
                for row in chunk if check is not None else ():
                    check(row.labels, shard, row.line)
                kept_rows = [row for row in chunk if row.labels or config.keep_empty]
                columns = {
                    "words": [words(row.text) for row in kept_rows],
                    "labels": [row.labels for row in kept_rows],
                    "length": [[str(len(row.text))] for row in kept_rows],
                }
                yield {name: pa.array(lists, strings) for name, lists in columns.items()}

    source = locate(config.train)
    options = {key: getattr(config, key) for key in ("keep_empty", "words", "lowercase", "digits", "punctuation")}
    options |= {"drop": list(layout.drop), "unspaced": unspaced}
    settings = {"task": "text", **asdict(layout), **options, "names": sums.get(str(config.labels))}
    return kept_index(source, sums[config.train], settings, ["words", "labels", "length"], make_batches)


class TextMaker:
    """Makes examples from the rows of an index.

    Args:
        index: the index.
        place: index of each label.
        make: a text's words and its labels' indices -> its example.
    """

    def __init__(self, index: Index, place: Mapping[str, int], make: Callable[[list[str], np.ndarray], Any]) -> None:
        self._words, self._make = index.values["words"], make
        self._places = np.array([place[name] for name in index.values["labels"]], dtype=np.int32)

    def __call__(self, lists: Mapping[str, Lists]) -> list[Any]:
        words, labels = lists["words"], lists["labels"]
        texts, sets = words.cut(self._words[words.numbers]), labels.cut(self._places[labels.numbers])
        return [self._make(text.tolist(), np.unique(indices)) for text, indices in zip(texts, sets, strict=True)]
