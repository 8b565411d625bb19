"""Scores of tagged spans (entities, chunks) over many sentences.

There are two readings of tags that violate their scheme; for valid tags both give the same spans:

- strict, as in `seqeval`'s strict mode: only complete spans that begin with B-X (or S-X);
- as in the CoNLL shared tasks' script `conlleval`: every tag but O belongs to a chunk, and an I-X (or E-X) that
  continues no chunk opens one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal

from spen_plugins.data.schemes import Span
from spen_plugins.scores.spans import precision_recall_f1

Counts = tuple[int, int, int]
"""Right, predicted and gold spans."""


def strict_spans(sentences: Sequence[Sequence[str]], scheme: Literal["bio", "bioes"]) -> list[set[Span]]:
    """The spans of each sentence's tags by seqeval's strict mode, as IOB2 or IOBES."""
    from seqeval.scheme import IOB2, IOBES, Entities

    found = Entities([list(tags) for tags in sentences], {"bio": IOB2, "bioes": IOBES}[scheme])
    return [{Span(e.tag, e.start, e.end) for e in entities} for entities in found.entities]


def chunks(tags: Sequence[str]) -> set[Span]:
    """The spans of one sentence's tags as in `conlleval` (E and S as in seqeval's default mode).

    The same spans as seqeval's `get_entities`, whose import loads scikit-learn, which takes seconds.
    """
    found = set()
    start, before, kind = 0, "O", ""
    for i, tag in enumerate((*tags, "O")):
        prefix, _, after = tag.partition("-")
        if before != "O" and (prefix in ("O", "B", "S") or before in ("E", "S") or after != kind):
            found.add(Span(kind, start, i))
            before = "O"
        if prefix != "O" and before == "O":
            start = i
        before, kind = prefix, after
    return found


class EntityCounts:
    """Right, predicted and gold spans by type."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.predicted: Counter[str] = Counter()
        self.gold: Counter[str] = Counter()

    def add(self, predicted: AbstractSet[Span], gold: AbstractSet[Span]) -> Counts:
        """Add one sentence; returns its counts."""
        right = predicted & gold
        self.predicted.update(span.type for span in predicted)
        self.gold.update(span.type for span in gold)
        self.right.update(span.type for span in right)
        return len(right), len(predicted), len(gold)

    def scores(self) -> dict[str, Any]:
        """`precision`, `recall` and `f1` over all spans, and those of each type in `types`, with counts."""
        return {
            **_scores(self.right.total(), self.predicted.total(), self.gold.total()),
            "types": table(self.right, self.predicted, self.gold),
        }


def table(right: Counter[str], predicted: Counter[str], gold: Counter[str]) -> dict[str, dict[str, float | int]]:
    """`precision`, `recall`, `f1`, `support` (number in gold) and `predicted` (number predicted) of each name."""
    return {
        name: {
            **_scores(right[name], predicted[name], gold[name]),
            "support": gold[name],
            "predicted": predicted[name],
        }
        for name in sorted(predicted.keys() | gold.keys())
    }


def _scores(right: int, predicted: int, gold: int) -> dict[str, float]:
    return dict(zip(("precision", "recall", "f1"), precision_recall_f1(right, predicted, gold), strict=True))


def entity_scores(
    predicted: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    scheme: Literal["bio", "bioes"] = "bio",
    count: Literal["strict", "conlleval"] = "strict",
) -> dict[str, Any]:
    """Scores of tags against gold tags, sentence by sentence: `precision`, `recall`, `f1`, and `types` with each's."""
    counts = EntityCounts()
    read = (lambda tags: strict_spans(tags, scheme)) if count == "strict" else (lambda tags: [chunks(t) for t in tags])
    for said, true in zip(read(predicted), read(gold), strict=True):
        counts.add(said, true)
    return counts.scores()
