"""Frames for displaCy: each with its sentence, coloured by role."""

from __future__ import annotations

from typing import Any

from spacy.tokens import Doc, Span

from spen_spacy.drawing.svg import COLOURS, Box, find_boxes
from spen_spacy.extensions import frames
from spen_spacy.frame import Frame

_PREDICATE = "#b0bec5"
"""Lighter than in `draw`: displaCy's labels are black."""
DISPLACY_OPTIONS: dict[str, Any] = {
    "colors": {"V": _PREDICATE}
    | {prefix + role: colour for prefix in ("", "C-", "R-") for role, colour in COLOURS.items()}
}
"""Options for `displacy.render`: the colours of `draw`. Other roles have displaCy's grey."""


def displacy_frames(text: Doc | Span) -> list[dict[str, Any]]:
    """The frames of a doc, or of a part such as a sentence, for `displacy.render(..., style="span", manual=True)`.

    One entry for each frame: the words of its predicate's sentence, the predicate (V, and its sense if it has one),
    and the arguments. Without sentences, the words are those of the text. Tokens of an argument outside are left out.
    """
    span = text if isinstance(text, Span) else text[:]
    return [_make_entry(frame, span) for frame in frames(text.doc) if span.start <= frame.predicate.i < span.end]


def _make_entry(frame: Frame, text: Span) -> dict[str, Any]:
    """A frame's entry, with the words of the text that are in its sentence."""
    start, end = text.start, text.end
    if text.doc.has_annotation("SENT_START"):
        sentence = frame.predicate.sent
        start, end = max(start, sentence.start), min(end, sentence.end)
    words = text.doc[start:end]
    return {
        "text": words.text,
        "tokens": [token.text for token in words],
        "spans": [_make_span(words, box) for box in find_boxes(frame, start, end)],
        "title": None,
        "settings": {"direction": text.doc.vocab.writing_system.get("direction", "ltr"), "lang": text.doc.lang_},
    }


def _make_span(words: Span, box: Box) -> dict[str, Any]:
    """A box in displaCy's form, which shows `kb_id` beside the label."""
    part = words[box.start : box.end]
    return {
        "start": part.start_char - words.start_char,
        "end": part.end_char - words.start_char,
        "start_token": box.start,
        "end_token": box.end,
        "label": box.role,
        "kb_id": box.label if box.label != box.role else "",
        "kb_url": "#",
    }
