"""Extension attributes of annotated docs: `doc._.srl`, `token._.srl_frame`, `span._.spen_score` and the like.

Components store plain values in the doc (span groups with attributes, entries of `user_data`), which `Doc.to_bytes`,
`DocBin` and other processes keep; the getters here read them. `Doc.from_docs` and `Span.as_doc` drop the attributes of
span groups; a copy of each frame among the values of its predicate's extensions outlives them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup, Token

from spen_plugins import RunError, rolesets

SCORES = "scores"
"""Attribute of a span group: a probability for each span, as in spaCy's `spancat`."""
ORDER = "from_left_to_right"
"""Attribute of a span group: the indices of its spans from left to right, for fast look-up."""
TOKENS = "doc_tokens"
"""Attribute of a span group: the doc's number of tokens; spaCy does not update spans when tokens are merged."""
STARTS = "frame_starts"
"""Attribute of a span group of frames: the index of each frame's first span, its predicate."""
ENERGIES = "frame_energies"
"""Attribute of a span group of frames: the energy of each frame, empty without the setting `energy`."""
SENSES = "frame_senses"
"""Attribute of a span group of frames: the sense of each frame, empty without a model of senses."""
SENSE_SCORES = "frame_sense_scores"
"""Attribute of a span group of frames: the probability of each sense, empty without a model of senses."""
TOKEN_SCORES = "spen_token_scores"
"""Entry of `user_data`: float32 `(token,)`, NaN for whitespace."""
ENERGY = "spen_energy"
"""Entry of `user_data`: energies by component name."""

FRAME = "spen_frame"
"""Entry of `user_data` for the first character of a predicate, under which spaCy keeps values of extensions and moves
them with their texts: its frame, places in characters from there."""


class _Argument(NamedTuple):
    role: str
    span: Span
    score: float


class Argument(_Argument):
    """An argument of a predicate: a tuple of `role`, `span` and `score`, its probability.

    Args:
        sense: the sense of its predicate, if known.
    """

    def __new__(cls, role: str, span: Span, score: float, sense: str | None = None) -> Self:
        made = super().__new__(cls, role, span, score)
        made._sense = sense
        return made

    @property
    def description(self) -> str | None:
        """What PropBank says of the role in the predicate's sense: "thing given"; None without a sense, and for roles
        that mean the same everywhere, such as ARGM-TMP."""
        known = None if self._sense is None else rolesets().get(self._sense)
        return None if known is None else known.describe(self.role)


@dataclass(frozen=True)
class Frame:
    """A predicate and its arguments, from left to right."""

    predicate: Token
    arguments: list[Argument]
    score: float
    """Probability that this is a predicate; 1 for those of rules or of the user."""
    energy: float | None
    """E(x, y) of the predicate's analysis, low is good; None without the setting `energy`."""
    sense: str | None = None
    """Its roleset in PropBank: "give.01"; None without the setting `senses_model`, and for a word that is not known."""
    sense_score: float | None = None
    """Probability of the sense, if this is a predicate."""

    @property
    def gloss(self) -> str | None:
        """What the sense means, in a few words: "transfer"; None without a sense, or of one that PropBank lacks."""
        known = None if self.sense is None else rolesets().get(self.sense)
        return None if known is None else known.gloss or None


def set_extensions() -> None:
    """Register the extensions on Doc, Span and Token; components do this themselves.

    Needed for docs read from files without a component. Existing extensions of these names are kept.
    """
    for owner, name, getter in (
        (Span, "spen_score", span_score),
        (Token, "spen_score", token_score),
        (Token, "srl_frame", frame_of),
        (Doc, "srl", frames),
        (Doc, "spen_energy", energies),
    ):
        if not owner.has_extension(name):
            owner.set_extension(name, getter=getter)


def group_of(doc: Doc, name: str, spans: Sequence[Span], scores: Sequence[float], **attributes: Any) -> SpanGroup:
    """A span group with probabilities, for `doc.spans`."""
    order = np.argsort([span.start for span in spans], kind="stable").astype(np.int32)
    known = {SCORES: np.array(scores, dtype=np.float32), ORDER: order, TOKENS: len(doc)}
    return SpanGroup(doc, name=name, attrs=known | attributes, spans=spans)


def span_score(span: Span) -> float | None:
    """Probability of a span with its label, from the first span group that holds both; None if there is none."""
    for group in span.doc.spans.values():
        scores = group.attrs.get(SCORES)
        if scores is None or len(scores) != len(group) or _stale(group):
            continue
        for number in _beginning(group, span.start):
            other = group[number]
            if (other.start, other.end, other.label) == (span.start, span.end, span.label):
                return float(scores[number])
    return None


def _beginning(group: SpanGroup, start: int) -> Sequence[int]:
    """Indices of the spans that may begin at this token; all, in a group of another component."""
    order = group.attrs.get(ORDER)
    if order is None:
        return range(len(group))
    ends = (cut(order, start, key=lambda number: group[number].start) for cut in (bisect_left, bisect_right))
    return order[slice(*ends)]


def _stale(group: SpanGroup) -> bool:
    return group.attrs.get(TOKENS, len(group.doc)) != len(group.doc)


def token_score(token: Token) -> float | None:
    """The probability of a token's tag; None for whitespace, and after merging or splitting tokens."""
    scores = token.doc.user_data.get(TOKEN_SCORES)
    if scores is None or len(scores) != len(token.doc):
        return None
    score = float(scores[token.i])
    return score if score == score else None


def energies(doc: Doc) -> dict[str, float]:
    """Energy of the whole analysis by component, for components with the setting `energy`; low is good."""
    return dict(doc.user_data.get(ENERGY, {}))


def frames(doc: Doc) -> list[Frame]:
    """A frame for each predicate, from left to right.

    Raises:
        RunError: tokens were merged or split, or spans added or removed, after the frames were predicted.
    """
    group = _group(doc)
    if group is not None:
        return [_frame(group, number) for number in range(len(group.attrs[STARTS]))]
    starts = sorted(key[2] for key in doc.user_data if _is_frame(key))
    return [frame for start in starts if (frame := _moved(doc, start)) is not None]


def frame_of(token: Token) -> Frame | None:
    """The frame of this predicate; None if the token is no predicate."""
    group = _group(token.doc)
    if group is None:
        return _moved(token.doc, token.idx)
    starts = group.attrs[STARTS]
    number = bisect_left(range(len(starts)), token.i, key=lambda n: group[starts[n]].start)
    found = number < len(starts) and group[starts[number]].start == token.i
    return _frame(group, number) if found else None


def keep_frames(doc: Doc, spans: Sequence[Span], scores: Sequence[float], of_frames: Mapping[str, Sequence]) -> None:
    """Copy frames to where `Doc.from_docs` and `Span.as_doc(copy_user_data=True)` keep them.

    Args:
        doc: their doc; those that it has are forgotten.
        spans, scores: as of `group_of`.
        of_frames: the attributes of a group of frames.
    """
    for key in [key for key in doc.user_data if _is_frame(key)]:
        del doc.user_data[key]
    starts, energies, senses, certain = (of_frames[name] for name in (STARTS, ENERGIES, SENSES, SENSE_SCORES))
    for number, first in enumerate(starts):
        last = starts[number + 1] if number + 1 < len(starts) else len(spans)
        origin = spans[first].start_char
        doc.user_data[("._.", FRAME, origin, None)] = {
            "score": float(scores[first]),
            "energy": float(energies[number]) if len(energies) else None,
            "sense": senses[number] if len(senses) else None,
            "sense_score": certain[number] if len(certain) else None,
            "text": spans[first].text,
            "arguments": [
                [spans[i].label_, spans[i].start_char - origin, spans[i].text, float(scores[i])]
                for i in range(first + 1, last)
            ],
        }


def _is_frame(key: Any) -> bool:
    return isinstance(key, tuple) and key[:2] == ("._.", FRAME)


def _moved(doc: Doc, start: int) -> Frame | None:
    """The frame whose predicate begins at this character, from `keep_frames`; None if the doc has no such word.

    Arguments that the doc doesn't have whole are left out. A piece of a doc has the frames of all of it, at places
    outside of its text: words tell which are its own.
    """
    kept = doc.user_data.get(("._.", FRAME, start, None))
    predicate = _span(doc, start, kept["text"]) if kept else None
    if predicate is None:
        return None
    arguments = []
    for role, first, text, score in kept["arguments"]:
        span = _span(doc, start + first, text, role)
        if span is not None:
            arguments.append(Argument(role, span, score, kept["sense"]))
    return Frame(predicate[0], arguments, kept["score"], kept["energy"], kept["sense"], kept["sense_score"])


def _span(doc: Doc, first: int, text: str, label: str = "") -> Span | None:
    """The tokens from this character on whose text this is; None if the doc doesn't have them."""
    if first < 0 or not len(doc) or first + len(text) > doc[-1].idx + len(doc[-1]):
        return None
    span = doc.char_span(first, first + len(text), label=label)
    return span if span is not None and span.text == text else None


def _group(doc: Doc) -> SpanGroup | None:
    group = next((group for group in doc.spans.values() if STARTS in group.attrs), None)
    if group is not None and (_stale(group) or len(group.attrs[SCORES]) != len(group)):
        raise RunError(
            f"doc.spans[{group.name!r}] no longer holds the predicted frames: found {len(doc)} tokens and "
            f"{len(group)} spans; expected {group.attrs[TOKENS]} and {len(group.attrs[SCORES])}. Merge or split tokens "
            "in a component before spen_srl, and leave its spans as they are"
        )
    return group


def _frame(group: SpanGroup, number: int) -> Frame:
    starts, scores, of_frames = (group.attrs[name] for name in (STARTS, SCORES, ENERGIES))
    first = starts[number]
    last = starts[number + 1] if number + 1 < len(starts) else len(group)
    spans = [(group[i], float(scores[i])) for i in range(first, last)]
    senses, certain = (group.attrs.get(name, ()) for name in (SENSES, SENSE_SCORES))
    sense, sense_score = (senses[number], certain[number]) if len(senses) else (None, None)
    (predicate, score), *others = spans
    arguments = [Argument(span.label_, span, score, sense) for span, score in others]
    energy = float(of_frames[number]) if len(of_frames) else None
    return Frame(predicate[0], arguments, score, energy, sense, sense_score)
