"""Phrases and patterns in the words of a sentence, or in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Span = tuple[int, int]


class PhraseFinder:
    """Finds the phrases of a list: in words the longest from left to right, in a text those of whole words."""

    def __init__(self, phrases: Iterable[str], ignore_case: bool) -> None:
        self._fold = str.casefold if ignore_case else str
        folded = {self._fold(phrase) for phrase in phrases}
        self._word_table, self._text_table = (_index_phrases(map(split, folded)) for split in (str.split, _split_text))

    def __call__(self, content: str | Sequence[str]) -> bool | list[Span]:
        if isinstance(content, str):
            return bool(_find(self._text_table, _split_text(self._fold(content))))
        return _find(self._word_table, [self._fold(word) for word in content])


def _index_phrases(phrases: Iterable[Sequence[str]]) -> dict[str, list[tuple[str, ...]]]:
    """Phrases by their first word, the longest first."""
    table: dict[str, list[tuple[str, ...]]] = {}
    for words in sorted({tuple(words) for words in phrases} - {()}, key=len, reverse=True):
        table.setdefault(words[0], []).append(words)
    return table


def _split_text(text: str) -> list[str]:
    return re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text)


def _find(table: dict[str, list[tuple[str, ...]]], words: Sequence[str]) -> list[Span]:
    spans, start = [], 0
    while start < len(words):
        length = next(
            (
                len(phrase)
                for phrase in table.get(words[start], ())
                if tuple(words[start : start + len(phrase)]) == phrase
            ),
            0,
        )
        if length:
            spans.append((start, start + length))
        start += max(length, 1)
    return spans


class PatternFinder:
    """Finds the matches of a regular expression. In words, which are joined by blanks, no match may cut a word."""

    def __init__(self, regex: re.Pattern[str]) -> None:
        self._regex = regex

    def __call__(self, content: str | Sequence[str]) -> bool | list[Span]:
        if isinstance(content, str):
            return self._regex.search(content) is not None
        starts, ends, position = {}, {}, 0
        for i, word in enumerate(content):
            starts[position], ends[position + len(word)] = i, i + 1
            position += len(word) + 1
        spans = (match.span() for match in self._regex.finditer(" ".join(content)))
        return [(starts[a], ends[b]) for a, b in spans if a in starts and b in ends and a < b]
