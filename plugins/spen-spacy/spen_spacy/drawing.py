"""Frames as a picture: the text, and below it a row for each predicate with its arguments."""

from __future__ import annotations

import unicodedata
from html import escape

from spacy.tokens import Doc, Span

from spen_spacy.extensions import Frame, frames

COLUMN = 8.5
"""Width in pixels of a character of the text (14 pixels high), and of a label's, which is smaller."""
LETTER = 7.0
TEXT, ROW, BOX = 34, 28, 20
"""Height of the text, of a row, and of a box in it."""
PREDICATE, OTHER = "#37474f", "#cfd8dc"
COLOURS = {"ARG0": "#90caf9", "ARG1": "#ffcc80", "ARG2": "#a5d6a7", "ARG3": "#f48fb1", "ARG4": "#ce93d8"}


def draw(text: Doc | Span) -> str:
    """The frames of a doc, or of a part such as a sentence, as SVG. The text is drawn on one line.

    Tokens of an argument outside the part are left out.
    """
    start, end = (text.start, text.end) if isinstance(text, Span) else (0, len(text))
    doc = text.doc
    rows = [_boxes(frame, start, end) for frame in frames(doc) if start <= frame.predicate.i < end]
    edges = _edges(doc, start, end, [box for row in rows for box in row])
    words = "".join(
        f'<text x="{x:.1f}" y="22">{escape(token.text)}</text>'
        for token, x in zip(doc[start:end], edges, strict=False)
        if not token.is_space
    )
    drawn = "".join(
        _box(label, edges[first - start], edges[last - start] - COLUMN, TEXT + ROW * number)
        for number, row in enumerate(rows)
        for label, first, last in row
    )
    width, height = edges[-1] + COLUMN, TEXT + ROW * len(rows) + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" role="img">'
        '<rect width="100%" height="100%" fill="white"/>'
        f'<g font-family="monospace" font-size="14">{words}</g>'
        f'<g font-family="sans-serif" font-size="11" text-anchor="middle">{drawn}</g></svg>\n'
    )


def _boxes(frame: Frame, start: int, end: int) -> list[tuple[str, int, int]]:
    """Label, first token and end (exclusive) of the predicate and its arguments."""
    spans = [("V", frame.predicate.i, frame.predicate.i + 1)]
    spans += [(role, max(span.start, start), min(span.end, end)) for role, span, _ in frame.arguments]
    return [box for box in spans if box[1] < box[2]]


def _edges(doc: Doc, start: int, end: int, boxes: list[tuple[str, int, int]]) -> list[float]:
    """Left edge of each token and right edge of the last, so that every label fits into its box."""
    widths = [COLUMN * (_columns(token.text) + 1) if not token.is_space else 0.0 for token in doc[start:end]]
    for label, first, last in sorted(boxes, key=lambda box: box[2] - box[1]):
        missing = LETTER * (len(label) + 1) + COLUMN - sum(widths[first - start : last - start])
        widths[last - 1 - start] += max(0.0, missing)
    edges = [COLUMN]
    for width in widths:
        edges.append(edges[-1] + width)
    return edges


def _columns(text: str) -> int:
    """Width in terminal columns: two for wide characters, none for combining marks."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _box(label: str, left: float, right: float, top: float) -> str:
    colour = PREDICATE if label == "V" else COLOURS.get(label.removeprefix("C-").removeprefix("R-"), OTHER)
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{BOX}" rx="3" fill="{colour}"/>'
        f'<text x="{(left + right) / 2:.1f}" y="{top + 14}" fill="{"white" if label == "V" else "black"}">'
        f"{escape(label)}</text>"
    )
