"""Extension attributes of annotated docs: `doc._.srl`, `token._.srl_frame`, `span._.spen_score` and the like.

Components store plain values in the doc (span groups with attributes, entries of `user_data`), which `Doc.to_bytes`,
`DocBin` and other processes keep; the getters here read them. `Doc.from_docs` and `Span.as_doc` drop the attributes of
span groups; a copy of the frames among the values of extensions survives (`kept`). If several components write
frames to a doc, the getters return those written last.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup, Token

from spen_plugins import RunError
from spen_spacy.frame import Argument, Frame, rounded
from spen_spacy.kept import find_frames, keep
from spen_spacy.parsing.trees import doc_tree, noun_phrases, span_tree

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
TOKEN_SCORES = ("._.", "spen_token_scores", None, None)
"""Entry of `user_data`: float32 `(token,)`, NaN for whitespace."""
TOKEN_PLACES = ("._.", "spen_token_places", None, None)
"""Entry of `user_data`: first and last character (exclusive) of each token that has a score, int32 `(token, 2)`."""
ENERGY = ("._.", "spen_energy", None, None)
"""Entry of `user_data`: energies by component name. These entries are values of the doc's own extensions, which spaCy
copies neither to a part of a doc nor to a joined doc."""
PREDICTIONS = ("._.", "spen_task_predictions", None, None)
"""Likewise: predictions of `spen_task` by component name."""


def set_extensions() -> None:
    """Registers the extensions on Doc, Span and Token; components do this themselves.

    Needed for docs read from files without a component. Existing extensions of these names are kept, with a warning.
    """
    for owner, name, getter in (
        (Span, "spen_score", span_score),
        (Token, "spen_score", token_score),
        (Token, "srl_frame", token_frame),
        (Doc, "srl", frames),
        (Doc, "spen_energy", energies),
        (Doc, "spen_predictions", predictions),
        (Doc, "tree", doc_tree),
        (Span, "tree", span_tree),
        (Doc, "noun_phrases", noun_phrases),
    ):
        if not owner.has_extension(name):
            owner.set_extension(name, getter=getter)
        elif owner.get_extension(name)[2] is not getter:
            kind = owner.__name__
            warnings.warn(
                f"kept the existing extension {kind}._.{name}. To use that of spen-spacy, call spacy.tokens.{kind}."
                f"remove_extension({name!r}), then spen_spacy.set_extensions()",
                stacklevel=2,
            )


def make_group(doc: Doc, name: str, spans: Sequence[Span], scores: Sequence[float], **attributes: Any) -> SpanGroup:
    """A span group with probabilities, for `doc.spans`."""
    order = np.argsort([span.start for span in spans], kind="stable").astype(np.int32)
    common = {SCORES: np.array(scores, dtype=np.float32), ORDER: order, TOKENS: len(doc)}
    return SpanGroup(doc, name=name, attrs=common | attributes, spans=spans)


def span_score(span: Span) -> float | None:
    """Probability of a span with its label, from the first span group that holds both; None if there is none."""
    for group in span.doc.spans.values():
        scores = group.attrs.get(SCORES)
        if scores is None or len(scores) != len(group) or _is_stale(group):
            continue
        for number in _find_beginning(group, span.start):
            other = group[number]
            if (other.start, other.end, other.label) == (span.start, span.end, span.label) and _has_its_words(other):
                return rounded(scores[number])
    return None


def group_scores(group: SpanGroup) -> list[float | None]:
    """The probability of each span of a group; None where there is none, and for spans whose words have changed."""
    scores = group.attrs.get(SCORES)
    if scores is None or len(scores) != len(group) or _is_stale(group):
        return [None] * len(group)
    return [rounded(score) if _has_its_words(span) else None for span, score in zip(group, scores, strict=True)]


def _find_beginning(group: SpanGroup, start: int) -> Sequence[int]:
    """Indices of the spans that may begin at this token; all, for a group of another component."""
    order = group.attrs.get(ORDER)
    if order is None:
        return range(len(group))
    bounds = (bisect(order, start, key=lambda number: group[number].start) for bisect in (bisect_left, bisect_right))
    return order[slice(*bounds)]


def _is_stale(group: SpanGroup) -> bool:
    return group.attrs.get(TOKENS, len(group.doc)) != len(group.doc)


def _has_its_words(span: Span) -> bool:
    """True if a group's span still has its words: spaCy moves no spans when tokens are merged or split."""
    words = span.doc[span.start : span.end]
    return (words.start_char, words.end_char) == (span.start_char, span.end_char)


def keep_token_scores(doc: Doc, scores: np.ndarray) -> None:
    """Writes the probabilities of a doc's tags, NaN for whitespace."""
    lengths, spaces = doc.to_array(["LENGTH", "SPACY"]).astype(np.int32).T
    ends = np.cumsum(lengths + spaces, dtype=np.int32) - spaces
    doc.user_data[TOKEN_SCORES] = scores
    doc.user_data[TOKEN_PLACES] = np.stack([ends - lengths, ends], axis=1)


def token_score(token: Token) -> float | None:
    """The probability of a token's tag; None for whitespace, and after merging or splitting tokens."""
    scores, places = (token.doc.user_data.get(key) for key in (TOKEN_SCORES, TOKEN_PLACES))
    if scores is None or len(scores) != len(token.doc):
        return None
    if places is not None and places[token.i].tolist() != [token.idx, token.idx + len(token)]:
        return None
    score = rounded(scores[token.i])
    return score if score == score else None


def energies(doc: Doc) -> dict[str, float]:
    """Energy of the whole analysis by component, for components with the setting `energy`; low is good."""
    return dict(doc.user_data.get(ENERGY, {}))


def predictions(doc: Doc) -> dict[str, list[Any]]:
    """Predictions of `spen_task` by component, one for each item that the run's task read from the doc."""
    return dict(doc.user_data.get(PREDICTIONS, {}))


def frames(doc: Doc) -> list[Frame]:
    """A frame for each predicate, from left to right.

    Raises:
        RunError: tokens were merged or split, or spans added or removed, after the frames were predicted.
    """
    group = _find_group(doc)
    if group is None:
        return _find_moved_frames(doc, 0, len(doc.text))
    return [_make_frame(group, number) for number in range(len(group.attrs[STARTS]))]


def token_frame(token: Token) -> Frame | None:
    """The frame of this predicate; None if the token is no predicate."""
    group = _find_group(token.doc)
    if group is None:
        return next(iter(_find_moved_frames(token.doc, token.idx, token.idx + 1)), None)
    starts = group.attrs[STARTS]
    # By characters, which are the same after tokens were merged or split.
    number = bisect_left(range(len(starts)), token.idx, key=lambda i: group[starts[i]].start_char)
    is_predicate = number < len(starts) and group[starts[number]].start_char == token.idx
    return _make_frame(group, number) if is_predicate else None


def keep_frames(
    doc: Doc,
    spans: Sequence[Span],
    scores: Sequence[float],
    attributes: Mapping[str, Sequence],
    pieces: Sequence[Span],
) -> None:
    """Copies frames to where `Doc.from_docs` and `Span.as_doc(copy_user_data=True)` keep them, in place of the doc's.
    Spans, scores and attributes are those of a group of frames; `pieces` are the words that were read for each
    frame."""
    starts, energies, senses, sense_scores = (attributes[name] for name in (STARTS, ENERGIES, SENSES, SENSE_SCORES))
    frames = []
    for number, first in enumerate(starts):
        last = starts[number + 1] if number + 1 < len(starts) else len(spans)
        frames.append(
            {
                "start": spans[first].start_char,
                "end": spans[first].end_char,
                "piece": [pieces[number].start_char, pieces[number].end_char],
                "score": rounded(scores[first]),
                "energy": rounded(energies[number]) if len(energies) else None,
                "sense": senses[number] if len(senses) else None,
                "sense_score": sense_scores[number] if len(sense_scores) else None,
                "arguments": [
                    [span.label_, span.start_char, span.end_char, rounded(score)]
                    for span, score in zip(spans[first + 1 : last], scores[first + 1 : last], strict=True)
                ],
            }
        )
    keep(doc, frames)


def _find_moved_frames(doc: Doc, first: int, last: int) -> list[Frame]:
    """Frames from `keep_frames` whose predicates begin at these characters, without the arguments that the doc
    doesn't have whole."""
    frames = []
    for stored, predicate, others, _ in find_frames(doc, first, last):
        arguments = [Argument(role, span, score, stored["sense"]) for role, span, score in others]
        score, energy, sense, sense_score = (stored[name] for name in ("score", "energy", "sense", "sense_score"))
        frames.append(Frame(predicate[0], arguments, score, energy, sense, sense_score))
    return frames


def _find_group(doc: Doc) -> SpanGroup | None:
    """The frames that were written last, which are the last in `doc.spans`."""
    group = next((group for group in reversed([*doc.spans.values()]) if STARTS in group.attrs), None)
    if group is not None and (_is_stale(group) or len(group.attrs[SCORES]) != len(group)):
        found = f"found {len(doc)} tokens and {len(group)} spans"
        raise _make_change_error(group, f"{found}; expected {group.attrs[TOKENS]} and {len(group.attrs[SCORES])}")
    return group


def _make_change_error(group: SpanGroup, found: str) -> RunError:
    return RunError(
        f"doc.spans[{group.name!r}] no longer holds the predicted frames: {found}. Merge or split tokens in a "
        "component before spen_srl, and leave its spans as they are"
    )


def _make_frame(group: SpanGroup, number: int) -> Frame:
    starts, scores, frame_energies = (group.attrs[name] for name in (STARTS, SCORES, ENERGIES))
    first = starts[number]
    last = starts[number + 1] if number + 1 < len(starts) else len(group)
    spans = [(group[i], rounded(scores[i])) for i in range(first, last)]
    for span, _ in spans:
        if not _has_its_words(span):
            raise _make_change_error(group, f"found the words {span.text!r} in place of another span's")
    senses, sense_scores = (group.attrs.get(name, ()) for name in (SENSES, SENSE_SCORES))
    sense, sense_score = (senses[number], sense_scores[number]) if len(senses) else (None, None)
    (predicate, score), *others = spans
    arguments = [Argument(span.label_, span, score, sense) for span, score in others]
    energy = rounded(frame_energies[number]) if len(frame_energies) else None
    return Frame(predicate[0], arguments, score, energy, sense, sense_score)
