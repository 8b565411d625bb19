"""Tagging schemes for spans: BIO, IOB1, BIOES and IO, and conversion between them.

A span of three words of type X, directly followed by one of a single word of type X:

    bio     B-X I-X I-X B-X     every span begins with B
    iob1    I-X I-X I-X B-X     B only if a span directly follows another of its type
    bioes   B-X I-X E-X S-X     E ends a span, S is a span of one word; L for E and U for S are read too
    io      X X X X         types alone: touching spans of a type are one
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Scheme = Literal["bio", "iob1", "bioes", "io"]
_ALLOWED = {"bio": "BI", "iob1": "BI", "bioes": "BIES"}
_BIOLU = {"L": "E", "U": "S"}
_REMEDY = (
    "a tag is B-TYPE, such as B-PER; tags= and task.words= choose other columns; task.scheme=bioes reads S- and E- "
    "(and U- and L-), task.scheme=io types without prefixes; the config `tags` learns tags that are not spans"
)


class Span(NamedTuple):
    """A span of type `type`: words `start` to `end` (exclusive)."""

    type: str
    start: int
    end: int


class BrokenTags(ValueError):
    """Tags that are invalid in their scheme: the index of the invalid tag, the tags found, valid tags and a remedy."""

    def __init__(self, index: int, found: str, expected: str) -> None:
        self.index, self.found, self.expected = index, found, expected
        super().__init__(f"tag {index}: found {found}; expected {expected}")


def spans(tags: Sequence[str], scheme: Scheme) -> list[Span]:
    """The spans of one sentence, from left to right.

    Raises:
        BrokenTags: the sequence is invalid in the scheme.
    """
    closed_spans: list[Span] = []
    open_type, start, previous = None, 0, "O"
    for i, tag in enumerate(tags):
        prefix, kind = _split_tag(i, tag, scheme)
        continues_span = prefix in ("I", "E") and open_type == kind
        if open_type is not None and not continues_span:
            _check_end(i, tag, previous, open_type, scheme)
            closed_spans.append(Span(open_type, start, i))
            open_type = None
        if prefix in ("I", "E") and not continues_span:
            _check_begin(i, tag, previous, kind, scheme)
        if prefix != "O" and not continues_span:
            open_type, start = kind, i
        if prefix in ("E", "S"):
            closed_spans.append(Span(kind, start, i + 1))
            open_type = None
        previous = tag
    if open_type is not None:
        _check_end(len(tags), None, previous, open_type, scheme)
        closed_spans.append(Span(open_type, start, len(tags)))
    return closed_spans


def write_tags(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """The inverse of `spans`: tags of a sentence of `length` words; spans, from left to right, must not overlap."""
    tags = ["O"] * length
    previous = Span("", -1, -1)
    for span in spans:
        kind, start, end = span
        tags[start:end] = [kind if scheme == "io" else f"I-{kind}"] * (end - start)
        if scheme == "io":
            continue
        if scheme != "iob1" or previous[::2] == (kind, start):
            tags[start] = f"B-{kind}"
        if scheme == "bioes":
            tags[end - 1] = f"{'S' if end - start == 1 else 'E'}-{kind}"
        previous = span
    return tags


def complete_tags(tags: Iterable[str], scheme: Scheme) -> list[str]:
    """O, then all tags of each type in alphabetical order, so that spans of any length can be predicted."""
    kinds = sorted({tag[2:] for tag in tags if tag != "O"})
    return ["O", *(f"{prefix}-{kind}" for kind in kinds for prefix in sorted(_ALLOWED[scheme]))]


def convert(tags: Sequence[str], source: Scheme, target: Scheme) -> list[str]:
    """Tags of one sentence in another scheme; in the same scheme, checked and normalised.

    Raises:
        BrokenTags: `tags` are invalid in the scheme `source`.
    """
    return write_tags(spans(tags, source), len(tags), target)


def _split_tag(i: int, tag: str, scheme: Scheme) -> tuple[str, str]:
    if tag == "O":
        return "O", ""
    prefix, dash, kind = tag.partition("-")
    if scheme == "io":
        if dash and prefix in ("B", "I", "E", "S", "L", "U"):
            expected = "O or a type under io (task.scheme=bio, iob1 or bioes reads prefixes)"
            raise BrokenTags(i, f"the tag {tag!r}", expected)
        return "I", tag
    if scheme == "bioes":
        prefix = _BIOLU.get(prefix, prefix)
    if not dash or not kind or prefix not in tuple(_ALLOWED[scheme]):
        forms = ", ".join(f"{letter}-X" for letter in _ALLOWED[scheme])
        raise BrokenTags(i, f"the tag {tag!r}", f"O, {forms} under {scheme} ({_REMEDY})")
    return prefix, kind


def _check_begin(i: int, tag: str, previous: str, kind: str, scheme: Scheme) -> None:
    """Raise BrokenTags if an I or E occurs without an open span of its type."""
    if scheme in ("iob1", "io"):
        return
    place = f"after {previous}" if i else "as the first tag"
    remedy = "task.scheme=iob1 reads spans that start with I-" if scheme == "bio" else "S- is a span of one word"
    raise BrokenTags(i, f"{tag} {place}", f"B-{kind} before it ({remedy})")


def _check_end(i: int, tag: str | None, previous: str, kind: str, scheme: Scheme) -> None:
    """Raise BrokenTags if a span is left open before tag `i`, which is None at the sentence's end."""
    if scheme != "bioes":
        return
    place = "the sentence's end" if tag is None else tag
    remedy = f"S-{kind} is a span of one word; task.scheme=bio reads spans without E- and S-"
    raise BrokenTags(i - (tag is None), f"{place} after {previous}", f"I-{kind} or E-{kind} there ({remedy})")


def write_span_tags(size: int, predicate: int, spans: Sequence[tuple[str, int, int]]) -> tuple[str, ...]:
    """BIO tags of arguments `(role, first, last)`; a word in several belongs to the shortest, the predicate to V."""
    if not any(role == "V" and first <= predicate <= last for role, first, last in spans):
        spans = [("V", predicate, predicate), *spans]
    owner: list[int | None] = [None] * size
    for number, (_, first, last) in sorted(enumerate(spans), key=lambda span: span[1][1] - span[1][2]):
        owner[first : last + 1] = [number] * (last + 1 - first)
    verb = next(n for n, (role, first, last) in enumerate(spans) if role == "V" and first <= predicate <= last)
    owner[predicate] = verb
    return write_owner_tags(owner, [role for role, _, _ in spans])


def write_owner_tags(owner: Sequence[int | None], roles: Sequence[str]) -> tuple[str, ...]:
    """BIO tags of words that belong to one argument or none each; later pieces of an argument are C-X."""
    cuts = [0, *(i for i, (a, b) in enumerate(pairwise(owner), 1) if a != b), len(owner)]
    previous: set[int] = set()
    spans = []
    for start, end in pairwise(cuts):
        number = owner[start]
        if number is None:
            continue
        role = roles[number]
        spans.append(Span(f"C-{role}" if number in previous and not role.startswith("C-") else role, start, end))
        previous.add(number)
    return tuple(write_tags(spans, len(owner), "bio"))
