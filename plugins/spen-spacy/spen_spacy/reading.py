"""A doc as input of a model: its words without whitespace, in pieces, in windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from spacy.tokens import Doc

Sentences = Literal["auto", "doc", "rule"]
OVERLAP = 40
_FINAL = ".!?…。！？"
_CLOSING = {"”", "’", "»", "''", ")", "]", "}", "-RRB-"}
_STRAIGHT = {'"', "'"}


class Reading:
    """The words of a doc, without whitespace tokens; `places` has the token index of each of `words`."""

    def __init__(self, doc: Doc) -> None:
        self.doc = doc
        # Three times as fast as token objects, which spaCy creates at each access.
        orths, strings = doc.to_array("ORTH").tolist(), doc.vocab.strings
        words_by_orth = {orth: strings[orth] for orth in set(orths)}
        self._texts = [words_by_orth[orth] for orth in orths]
        self.places = [i for i, text in enumerate(self._texts) if not text.isspace()]
        self.words = self._texts if len(self.places) == len(doc) else [self._texts[i] for i in self.places]

    def pieces(self, sentences: Sentences, otherwise: Literal["doc", "rule"]) -> list[tuple[int, int]]:
        """Start and end (exclusive) of each piece, in words. "auto": the doc's sentences if it has any, else pieces as
        for `otherwise`, split at breaks in either case; "doc": the whole doc; "rule": split after final punctuation and
        at breaks. A break is a blank line, a tab or the end of a table's row."""
        if not self.words:
            return []
        unit = otherwise if sentences == "auto" else sentences
        if sentences == "auto" and self.doc.has_annotation("SENT_START"):
            cuts = sorted({*self._find_starts(), *self._find_breaks()})
        elif unit == "rule":
            cuts = self._split_by_rule()
        else:
            cuts = self._find_breaks() if sentences == "auto" else []
        return list(pairwise([0, *cuts, len(self.words)]))

    def _find_starts(self) -> list[int]:
        """First words of the doc's sentences, except the first sentence."""
        sentence_numbers = np.cumsum(self.doc.to_array("SENT_START") == 1)[self.places]
        return (np.flatnonzero(np.diff(sentence_numbers)) + 1).tolist()

    def _split_by_rule(self) -> list[int]:
        """Words, except the first, after final punctuation (and closing marks) or after a break."""
        cuts, breaks = [], set(self._find_breaks())
        is_ended = False
        for i, word in enumerate(self.words):
            if i in breaks or (is_ended and not self._closes(i)):
                cuts.append(i)
                is_ended = False
            if word[-1] in _FINAL and not word.strip(_FINAL):
                is_ended = True
        return cuts

    def _closes(self, i: int) -> bool:
        """True if word `i`, after final punctuation, belongs to it; a straight quote only without a space before it."""
        word = self.words[i]
        if word in _STRAIGHT:
            return self.places[i] - self.places[i - 1] == 1 and not self.doc[self.places[i - 1]].whitespace_
        return word in _CLOSING or not word.strip(_FINAL)

    def _find_breaks(self) -> list[int]:
        """Words, except the first, after a blank line, a tab, or the end of a line with a tab between two words."""
        if len(self.places) == len(self.doc):
            return []
        starts = (np.flatnonzero(np.diff(self.places) > 1) + 1).tolist()
        gaps = {i: "".join(self._texts[self.places[i - 1] + 1 : self.places[i]]) for i in starts}
        gaps = {i: gap for i, gap in gaps.items() if "\n" in gap or "\t" in gap}
        is_tab = [False, *("\n" not in gap for gap in gaps.values()), False]
        return [
            i
            for (i, gap), follows_tab, precedes_tab in zip(gaps.items(), is_tab[:-2], is_tab[2:], strict=True)
            if "\t" in gap or gap.count("\n") > 1 or follows_tab or precedes_tab
        ]


class Window(NamedTuple):
    """Words `start` to `end`, read together; predictions for `own_start` to `own_end` are used."""

    start: int
    end: int
    own_start: int
    own_end: int


def windows(start: int, end: int, size: int) -> Iterator[Window]:
    """Overlapping windows over words `start` to `end`; a word belongs to the one where it is farthest from an edge."""
    if end - start <= size:
        yield Window(start, end, start, end)
        return
    step = size - min(OVERLAP, size // 2)
    starts = [*range(start, end - size, step), end - size]
    seams = [start, *((first + size + second) // 2 for first, second in pairwise(starts)), end]
    for first, (own_start, own_end) in zip(starts, pairwise(seams), strict=True):
        yield Window(first, first + size, own_start, own_end)


def find_window(place: int, start: int, end: int, size: int) -> Window:
    """The window of at most `size` words of `start` to `end` around `place`, with three eighths of it on each side, or
    all words there. Most places near each other have the same window, which is read once for them."""
    step = max(1, size // 4)
    first = start + (place - start - (size - step) // 2) // step * step
    first = max(start, min(first, end - size))
    last = min(end, first + size)
    return Window(first, last, first, last)


class Entity(NamedTuple):
    """A span of words with its label and probability."""

    start: int
    end: int
    label: str
    score: float


def drop_overlaps(spans: Sequence[Entity]) -> list[Entity]:
    """Spans from left to right, without the less probable of two that overlap."""
    chosen: list[Entity] = []
    for span in sorted(spans):
        if not chosen or span.start >= chosen[-1].end:
            chosen.append(span)
        elif span.score > chosen[-1].score:
            chosen[-1] = span
    return chosen
