"""Frames as a picture: lines of text, and below each line one row per predicate with its arguments."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate
from typing import NamedTuple

from spacy.tokens import Doc, Span

from spen_spacy.extensions import frames
from spen_spacy.frame import Frame

COLUMN = 8.5
"""Width in pixels of a character of the text (14 pixels high), and then of a label, which is smaller."""
LETTER = 7.0
TEXT, ROW, BOX = 34, 28, 20
"""Height of the text, of a row, and of a box in it."""
GAP = 10
"""Height between a line's last row and the next line."""
NAME = 16
"""Maximal number of characters of a predicate beside its row."""
PREDICATE, OTHER, GREY = "#37474f", "#cfd8dc", "#607d8b"
COLOURS = {"ARG0": "#90caf9", "ARG1": "#ffcc80", "ARG2": "#a5d6a7", "ARG3": "#f48fb1", "ARG4": "#ce93d8"}
_NO_XML = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML lacks, or that would be read as white space."""


class Box(NamedTuple):
    """A predicate or an argument, or the part of it in a line; `end` is exclusive."""

    role: str
    start: int
    end: int
    label: str
    """The role, or a predicate's sense if it has one; with … on the side where it continues in another line."""


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
    frame's predicate. Arguments that a line break divides have … on that side. Tokens of an argument outside the part
    are left out. A predicate's box has its sense, or V without one. Control characters are drawn as �.

    Args:
        text: a doc, or a span of one.
        width: pixels at which lines are wrapped; only a line of one word may be wider.
    """
    start, end = (text.start, text.end) if isinstance(text, Span) else (0, len(text))
    doc = text.doc
    words = [_replace_invisible(token.text) if not token.is_space else "" for token in doc[start:end]]
    boxes = [(frame, find_boxes(frame, start, end)) for frame in frames(doc) if start <= frame.predicate.i < end]
    lines, margin = list(_wrap_lines(words, boxes, width - COLUMN)), COLUMN
    if len(lines) > 1:
        margin = COLUMN * 2 + LETTER * max((len(_shorten_name(frame)) for frame, _ in boxes), default=0)
        lines = list(_wrap_lines(words, boxes, width - margin))
    elements = {"words": "", "names": "", "boxes": ""}
    top = 0
    for line in lines:
        for word, x in zip(words[line.start : line.end], line.edges, strict=False):
            elements["words"] += f'<text x="{margin + x:.1f}" y="{top + 22}">{escape(word)}</text>' if word else ""
        for row, (frame, frame_boxes) in enumerate(line.rows):
            row_top = top + TEXT + ROW * row
            if len(lines) > 1:
                elements["names"] += f'<text x="{COLUMN:.1f}" y="{row_top + 14}">{escape(_shorten_name(frame))}</text>'
            for box in frame_boxes:
                edges = line.edges[box.start - line.start], line.edges[box.end - line.start]
                elements["boxes"] += _draw_box(box, margin + edges[0], margin + edges[1] - COLUMN, row_top)
        top += TEXT + ROW * len(line.rows) + GAP
    total_width = margin + max((line.edges[-1] for line in lines), default=0.0)
    total_height = max(top, TEXT + GAP) - GAP + 4
    names = (
        f'<g font-family="sans-serif" font-size="11" fill="{GREY}">{elements["names"]}</g>' if elements["names"] else ""
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total_width:.0f}" height="{total_height}" '
        f'viewBox="0 0 {total_width:.0f} {total_height}" role="img">'
        '<rect width="100%" height="100%" fill="white"/>'
        f'<g font-family="monospace" font-size="14">{elements["words"]}</g>{names}'
        f'<g font-family="sans-serif" font-size="11" text-anchor="middle">{elements["boxes"]}</g></svg>\n'
    )


def _replace_invisible(text: str) -> str:
    """The text with � for each character that XML lacks."""
    return _NO_XML.sub("�", text)


def _shorten_name(frame: Frame) -> str:
    text = _replace_invisible(frame.predicate.text)
    return text if len(text) <= NAME else f"{text[: NAME - 1]}…"


def find_boxes(frame: Frame, start: int, end: int) -> list[Box]:
    """The predicate and its arguments in the words `start` to `end`, counted from `start`."""
    i = frame.predicate.i
    boxes = [Box("V", i, i + 1, frame.sense or "V")]
    boxes += [Box(role, span.start, span.end, role) for role, span, _ in frame.arguments]
    clipped = [box._replace(start=max(box.start, start) - start, end=min(box.end, end) - start) for box in boxes]
    return [box for box in clipped if box.start < box.end]


def _wrap_lines(words: Sequence[str], boxes: Sequence[tuple[Frame, list[Box]]], width: float) -> Iterator[Line]:
    """Lines of as many words as the width has room for, at least one."""
    all_edges = _compute_edges(words, 0, len(words), [box for _, frame_boxes in boxes for box in frame_boxes])
    start = 0
    while start < len(words):
        end = start + 1
        while end < len(words) and all_edges[end + 1] - all_edges[start] <= width:
            end += 1
        while True:
            rows = [(frame, _cut_boxes(frame_boxes, start, end)) for frame, frame_boxes in boxes]
            rows = [(frame, frame_boxes) for frame, frame_boxes in rows if frame_boxes]
            edges = _compute_edges(words, start, end, [box for _, frame_boxes in rows for box in frame_boxes])
            if edges[-1] <= width or end == start + 1:
                break
            end -= 1  # the label of a part of an argument needs more room than its words
        yield Line(start, end, edges, rows)
        start = end


def _cut_boxes(boxes: Sequence[Box], start: int, end: int) -> list[Box]:
    """The parts of boxes in the words `start` to `end`."""
    parts = []
    for role, first, last, name in boxes:
        if first < end and last > start:
            label = f"{'… ' if first < start else ''}{name}{' …' if last > end else ''}"
            parts.append(Box(role, max(first, start), min(last, end), label))
    return parts


def _compute_edges(words: Sequence[str], start: int, end: int, boxes: Sequence[Box]) -> list[float]:
    """Left edge of each word of `start` to `end`, and right edge of the last, so that labels fit into their boxes."""
    widths = [COLUMN * (_count_columns(word) + 1) if word else 0.0 for word in words[start:end]]
    for box in sorted(boxes, key=lambda box: box.end - box.start):
        missing = LETTER * (len(box.label) + 1) + COLUMN - sum(widths[box.start - start : box.end - start])
        widths[box.end - 1 - start] += max(0.0, missing)
    return list(accumulate(widths, initial=0.0))


def _count_columns(text: str) -> int:
    """Width in terminal columns: two for wide characters, none for combining marks."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _draw_box(box: Box, left: float, right: float, top: float) -> str:
    role = box.role
    colour = PREDICATE if role == "V" else COLOURS.get(role.removeprefix("C-").removeprefix("R-"), OTHER)
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{right - left:.1f}" height="{BOX}" rx="3" fill="{colour}"/>'
        f'<text x="{(left + right) / 2:.1f}" y="{top + 14}" fill="{"white" if role == "V" else "black"}">'
        f"{escape(_replace_invisible(box.label))}</text>"
    )
