"""Characters of raw text to which predictions belong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Place(NamedTuple):
    """A sentence's place in a text.

    Attributes:
        tokens: first character of each word, from 0, and the character after its last, in code points.
        line: number of the text's line of JSON, from 1; None for a text without lines.
    """

    tokens: Sequence[tuple[int, int]]
    line: int | None = None


def split_paragraphs(text: str) -> Iterator[tuple[str, int]]:
    """The pieces of a text between blank lines, each with the position of its first character."""
    start = 0
    for gap in re.finditer(r"\n\s*\n", text):
        yield text[start : gap.start()], start
        start = gap.end()
    yield text[start:], start


def add_characters(prediction: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """A sentence's prediction with `start_char` and `end_char` (exclusive), also in its entities, arguments and
    predicates; and with `line` if the text is from a line of JSON."""

    def locate_span(table: Mapping[str, Any], first: int, end: int) -> dict[str, Any]:
        return {**table, "start_char": place.tokens[first][0], "end_char": place.tokens[end - 1][1]}

    def locate_predicate(table: Mapping[str, Any]) -> dict[str, Any]:
        return locate_span(add_spans(table), table["index"], table["index"] + 1)

    def add_spans(table: Mapping[str, Any]) -> dict[str, Any]:
        spans = {key: table[key] for key in ("entities", "arguments") if key in table}
        return {**table, **{key: [locate_span(s, s["start"], s["end"]) for s in items] for key, items in spans.items()}}

    sentence = add_spans(prediction)
    if "predicate" in sentence:
        sentence["predicate"] = locate_predicate(sentence["predicate"])
    if "predicates" in sentence:
        sentence["predicates"] = [locate_predicate(table) for table in sentence["predicates"]]
    line = {} if place.line is None else {"line": place.line}
    return {**locate_span(sentence, 0, len(place.tokens)), **line}
