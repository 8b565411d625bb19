"""Spans (entities, chunks) of tags.

There are two readings of tags that violate their scheme; for valid tags both give the same spans:

- strict, as in `seqeval`'s strict mode: only complete spans that begin with B-X (or S-X);
- as in the CoNLL shared tasks' script `conlleval`: every tag but O belongs to a chunk, and an I-X (or E-X) that
  continues no chunk opens one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from spen_plugins.data.schemes import Span


def strict_spans(sentences: Sequence[Sequence[str]], scheme: Literal["bio", "bioes"]) -> list[set[Span]]:
    """The spans of each sentence's tags by seqeval's strict mode, as IOB2 or IOBES."""
    from seqeval.scheme import IOB2, IOBES, Entities

    read = Entities([list(tags) for tags in sentences], {"bio": IOB2, "bioes": IOBES}[scheme])
    return [{Span(e.tag, e.start, e.end) for e in entities} for entities in read.entities]


def chunks(tags: Sequence[str]) -> set[Span]:
    """The spans of one sentence's tags as in `conlleval` (E and S as in seqeval's default mode).

    The same spans as seqeval's `get_entities`, whose import loads scikit-learn, which takes seconds.
    """
    spans = set()
    start, before, kind = 0, "O", ""
    for i, tag in enumerate((*tags, "O")):
        prefix, _, after = tag.partition("-")
        if before != "O" and (prefix in ("O", "B", "S") or before in ("E", "S") or after != kind):
            spans.add(Span(kind, start, i))
            before = "O"
        if prefix != "O" and before == "O":
            start = i
        before, kind = prefix, after
    return spans
