"""Formats in which predicted tags are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spen_plugins.data.sentences import write_tags
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.tag_items import parse_tagged
from spen_plugins.task import Writer


def tag_formats(config: Any, values: Mapping[str, Sequence[str]]) -> dict[str, Writer]:
    """Columns as the config numbers them, DocBin, and CoNLL-U, if the tags are a field of it or no spans.

    Args:
        config: the task's.
        values: name of each further column -> its known values.
    """
    field = config.tags if isinstance(config.tags, str) else None

    def sentences(predictions: Sequence[Any], examples: Sequence[Any]) -> list[TaggedSentence]:
        """With predicted tags in the files' scheme, and the columns that were read, `_` where unknown."""
        known = {name: ["_", "_", *column_values] for name, column_values in values.items()}
        tagged = []
        for prediction, example in zip(predictions, examples, strict=True):
            columns = {
                name: tuple(column_values[n] for n in example.columns[name].tolist())
                for name, column_values in known.items()
            }
            tagged.append(replace(parse_tagged(prediction, config.scheme), columns=columns))
        return tagged

    def columns(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        tagged = sentences(predictions, examples)
        if any(isinstance(place, str) for place in (config.words, config.tags, *config.columns.values())):
            return write_tags.columns(tagged)  # the config's are fields of CoNLL-U
        return write_tags.columns(tagged, config.words or 0, -1 if config.tags is None else config.tags, config.columns)

    def conllu(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        return write_tags.conllu(sentences(predictions, examples), field or "upos")

    def docbin(predictions: Sequence[Any], examples: Sequence[Any]) -> bytes:
        return write_tags.docbin(sentences(predictions, examples), config.scheme, field)

    known: dict[str, Writer] = {"conll": columns, "docbin": docbin}
    return known if config.scheme != "none" and field is None else known | {"conllu": conllu}
