"""Frames among a doc's `user_data`, where `Doc.from_docs` and `Span.as_doc(copy_user_data=True)` keep them.

Both move the places in keys of extensions, `("._.", name, start, end)`, and drop none: a part of a doc has the frames
of all of it, and in a joined doc those of words outside a part may lie at another part's words. So a doc's frames are
one entry, with the text that they were found in. A checksum of the entry is in its key, so that it only replaces its
equal. Places are in characters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from spacy.tokens import Doc, Span

FRAMES = "spen_frames"
"""Name in the keys of entries. A key's start is that of the entry's text; its end distinguishes entries."""

PlainFrame = Mapping[str, Any]
"""A frame as plain values: `start` and `end` of its predicate, `piece` (start and end of what was read), `arguments`
(each role, start, end and score), and further values."""


class Candidate(NamedTuple):
    """A frame in a doc that has its predicate."""

    frame: PlainFrame
    predicate: Span
    arguments: list[tuple[str, Span, float]]
    """Role, span and score of the arguments that the doc has whole."""
    fit: tuple[int, int, int]
    """The larger, the better: minus the number of the other arguments, how far the doc shares the piece to both sides,
    and the number of shared characters."""


def keep(doc: Doc, frames: Sequence[PlainFrame]) -> None:
    """Writes a doc's frames, from left to right, in place of those that it has."""
    for key in [key for key in doc.user_data if is_kept(key)]:
        del doc.user_data[key]
    entry = {"text": doc.text, "starts": [frame["start"] for frame in frames], "frames": list(frames)}
    doc.user_data[("._.", FRAMES, 0, crc32(repr(entry).encode()))] = entry


def is_kept(key: Any) -> bool:
    """True for a key of `user_data` that is an entry's."""
    return isinstance(key, tuple) and key[:2] == ("._.", FRAMES)


def find_frames(doc: Doc, first: int, last: int) -> list[Candidate]:
    """The frames of predicates that begin at `first` or later, before `last`; from left to right.

    Of several at one place, the frame whose text is the doc's is chosen: others belong to words outside the parts that
    they came with.
    """
    candidates = list(_list_candidates(doc, first, last))
    text = doc.text if candidates else ""
    best: dict[int, Candidate] = {}
    for shift, source, frame in candidates:
        candidate, start = _fit(doc, text, shift, source, frame), shift + frame["start"]
        if candidate is not None and (start not in best or candidate.fit > best[start].fit):
            best[start] = candidate
    return [best[start] for start in sorted(best)]


def _list_candidates(doc: Doc, first: int, last: int) -> Iterator[tuple[int, str, PlainFrame]]:
    """The distance by which each text was moved, the text, and its frames whose predicates begin there."""
    for key, entry in doc.user_data.items():
        if is_kept(key):
            shift = key[2]
            bounds = [bisect_left(entry["starts"], place - shift) for place in (first, last)]
            yield from ((shift, entry["text"], frame) for frame in entry["frames"][slice(*bounds)])


def _fit(doc: Doc, text: str, shift: int, source: str, frame: PlainFrame) -> Candidate | None:
    """A frame of another text, `source`, at its place in a doc; None if it isn't this doc's."""
    (begin, end), index = frame["piece"], frame["start"]
    predicate = _find_span(doc, text, index + shift, source[index : frame["end"]], "V")
    if predicate is None:
        return None
    all_arguments = [
        (role, _find_span(doc, text, a + shift, source[a:b], role), score) for role, a, b, score in frame["arguments"]
    ]
    arguments = [(role, span, score) for role, span, score in all_arguments if span is not None]
    left = source[begin:index][::-1], text[max(0, begin + shift) : index + shift][::-1]
    right = source[index:end], text[index + shift : end + shift]
    common = [_count_common(*side) for side in (left, right)]
    # 2: the piece's edge; 1: the doc's.
    reach = [
        2 * (n == len(piece)) or int(n == len(surroundings))
        for n, (piece, surroundings) in zip(common, (left, right), strict=True)
    ]
    missing = len(all_arguments) - len(arguments)
    if missing and not any(reach):  # a part of a doc has the piece up to its begin or end, unless it is from the middle
        return None
    return Candidate(frame, predicate, arguments, (-missing, sum(reach), sum(common)))


def _find_span(doc: Doc, text: str, first: int, words: str, label: str) -> Span | None:
    """The tokens from this character on whose text this is; None if the doc doesn't have them."""
    if first < 0 or not text.startswith(words, first):
        return None
    return doc.char_span(first, first + len(words), label=label)


def _count_common(a: str, b: str) -> int:
    """Length of the common beginning of two texts."""
    return next(
        (i for i, (first, second) in enumerate(zip(a, b, strict=False)) if first != second), min(len(a), len(b))
    )
