"""Frames as a picture: lines of text, and below each a row for each predicate with its arguments."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from spacy.tokens import Doc, Span

from spen_spacy.extensions import frames
from spen_spacy.frame import Frame

COLUMN = 8.5
"""Width in pixels of a character of the text (14 pixels high), and of a label's, which is smaller."""
LETTER = 7.0
TEXT, ROW, BOX = 34, 28, 20
"""Height of the text, of a row, and of a box in it."""
GAP = 10
"""Height between a line's last row and the next line."""
NAME = 16
"""Most characters of a predicate beside its row."""
PREDICATE, OTHER, GREY = "#37474f", "#cfd8dc", "#607d8b"
COLOURS = {"ARG0": "#90caf9", "ARG1": "#ffcc80", "ARG2": "#a5d6a7", "ARG3": "#f48fb1", "ARG4": "#ce93d8"}
_NO_XML = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML lacks, or that would be read as white space."""


class Box(NamedTuple):
    """A predicate or an argument, or the part of it that stands in a line; `end` is exclusive."""

    role: str
    start: int
    end: int
    label: str
    """The role, or a predicate's sense if it has one; with … on the side where it goes on in another line."""


class Line(NamedTuple):
    """Words of a line, and the boxes of each frame with words in it."""

    start: int
    end: int
    edges: list[float]
    """Left edge of each word and right edge of the last, in pixels."""
    rows: list[tuple[Frame, list[Box]]]


def draw(text: Doc | Span, width: float = 900) -> str:
    """The frames of a doc, or of a part such as a sentence, as SVG.

    Below each line is a row for each frame that has words in it; where there are several lines, it begins with the
    frame's predicate. Arguments that a line's end parts have … on that side. Tokens of an argument outside the part are
    left out. A predicate's box has its sense, or V without one. Control characters are drawn as �.

    Args:
        text: a doc, or a span of one.
        width: pixels at which lines are wrapped; only a line of one word may be wider.
    """
    start, end = (text.start, text.end) if isinstance(text, Span) else (0, len(text))
    doc = text.doc
    words = [_visible(token.text) if not token.is_space else "" for token in doc[start:end]]
    boxes = [(frame, find_boxes(frame, start, end)) for frame in frames(doc) if start <= frame.predicate.i < end]
    lines, left = list(_lines(words, boxes, width - COLUMN)), COLUMN
    if len(lines) > 1:
        left = COLUMN * 2 + LETTER * max((len(_name(frame)) for frame, _ in boxes), default=0)
        lines = list(_lines(words, boxes, width - left))
    drawn = {"words": "", "names": "", "boxes": ""}
    top = 0
    for line in lines:
        for word, x in zip(words[line.start : line.end], line.edges, strict=False):
            drawn["words"] += f'<text x="{left + x:.1f}" y="{top + 22}">{escape(word)}</text>' if word else ""
        for row, (frame, some) in enumerate(line.rows):
            below = top + TEXT + ROW * row
            if len(lines) > 1:
                drawn["names"] += f'<text x="{COLUMN:.1f}" y="{below + 14}">{escape(_name(frame))}</text>'
            for box in some:
                edges = line.edges[box.start - line.start], line.edges[box.end - line.start]
                drawn["boxes"] += _box(box, left + edges[0], left + edges[1] - COLUMN, below)
        top += TEXT + ROW * len(line.rows) + GAP
    wide = left + max((line.edges[-1] for line in lines), default=0.0)
    high = max(top, TEXT + GAP) - GAP + 4
    names = f'<g font-family="sans-serif" font-size="11" fill="{GREY}">{drawn["names"]}</g>' if drawn["names"] else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high}" '
        f'viewBox="0 0 {wide:.0f} {high}" role="img">'
        '<rect width="100%" height="100%" fill="white"/>'
        f'<g font-family="monospace" font-size="14">{drawn["words"]}</g>{names}'
        f'<g font-family="sans-serif" font-size="11" text-anchor="middle">{drawn["boxes"]}</g></svg>\n'
    )


def _visible(text: str) -> str:
    """The text with � for each character that XML lacks."""
    return _NO_XML.sub("�", text)


def _name(frame: Frame) -> str:
    text = _visible(frame.predicate.text)
    return text if len(text) <= NAME else f"{text[: NAME - 1]}…"


def find_boxes(frame: Frame, start: int, end: int) -> list[Box]:
    """The predicate and its arguments in the words `start` to `end`, counted from `start`."""
    i = frame.predicate.i
    boxes = [Box("V", i, i + 1, frame.sense or "V")]
    boxes += [Box(role, span.start, span.end, role) for role, span, _ in frame.arguments]
    kept = [box._replace(start=max(box.start, start) - start, end=min(box.end, end) - start) for box in boxes]
    return [box for box in kept if box.start < box.end]


def _lines(words: Sequence[str], boxes: Sequence[tuple[Frame, list[Box]]], width: float) -> Iterator[Line]:
    """As many words in each line as the width has room for, one at least."""
    whole = _edges(words, 0, len(words), [box for _, some in boxes for box in some])
    start = 0
    while start < len(words):
        end = start + 1
        while end < len(words) and whole[end + 1] - whole[start] <= width:
            end += 1
        while True:
            rows = [(frame, _parts(some, start, end)) for frame, some in boxes]
            rows = [(frame, some) for frame, some in rows if some]
            edges = _edges(words, start, end, [box for _, some in rows for box in some])
            if edges[-1] <= width or end == start + 1:
                break
            end -= 1  # the label of a part of an argument needs more room than its words
        yield Line(start, end, edges, rows)
        start = end


def _parts(boxes: Sequence[Box], start: int, end: int) -> list[Box]:
    """The parts of boxes in the words `start` to `end`."""
    parts = []
    for role, first, last, name in boxes:
        if first < end and last > start:
            label = f"{'… ' if first < start else ''}{name}{' …' if last > end else ''}"
            parts.append(Box(role, max(first, start), min(last, end), label))
    return parts


def _edges(words: Sequence[str], start: int, end: int, boxes: Sequence[Box]) -> list[float]:
    """Left edge of each word of `start` to `end`, and right edge of the last, so that labels fit into their boxes."""
    widths = [COLUMN * (_columns(word) + 1) if word else 0.0 for word in words[start:end]]
    for box in sorted(boxes, key=lambda box: box.end - box.start):
        missing = LETTER * (len(box.label) + 1) + COLUMN - sum(widths[box.start - start : box.end - start])
        widths[box.end - 1 - start] += max(0.0, missing)
    edges = [0.0]
    for width in widths:
        edges.append(edges[-1] + width)
    return edges


def _columns(text: str) -> int:
    """Width in terminal columns: two for wide characters, none for combining marks."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _box(box: Box, left: float, right: float, top: float) -> str:
    role = box.role
    colour = PREDICATE if role == "V" else COLOURS.get(role.removeprefix("C-").removeprefix("R-"), OTHER)
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{BOX}" rx="3" fill="{colour}"/>'
        f'<text x="{(left + right) / 2:.1f}" y="{top + 14}" fill="{"white" if role == "V" else "black"}">'
        f"{escape(_visible(box.label))}</text>"
    )
