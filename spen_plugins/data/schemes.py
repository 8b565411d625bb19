"""Tagging schemes for spans: BIO, IOB1, BIOES and IO, and conversion between them.

A span of three words of type X, directly followed by one of a single word of type X:

    bio     B-X I-X I-X B-X     every span begins with B
    iob1    I-X I-X I-X B-X     B only if a span directly follows another of its type
    bioes   B-X I-X E-X S-X     E ends a span, S is a span of one word; L for E and U for S are read too
    io      X X X X         types alone: spans of a type that touch are one
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
    """Tags that are invalid in their scheme: index of the wrong one, the tags found, and valid ones with a remedy."""

    def __init__(self, index: int, found: str, expected: str) -> None:
        self.index, self.found, self.expected = index, found, expected
        super().__init__(f"tag {index}: found {found}; expected {expected}")


def spans(tags: Sequence[str], scheme: Scheme) -> list[Span]:
    """The spans of one sentence, from left to right.

    Raises:
        BrokenTags: the sequence is invalid in the scheme.
    """
    closed: list[Span] = []
    open_type, start, before = None, 0, "O"
    for i, tag in enumerate(tags):
        prefix, kind = _parts(i, tag, scheme)
        goes_on = prefix in ("I", "E") and open_type == kind
        if open_type is not None and not goes_on:
            _may_stop(i, tag, before, open_type, scheme)
            closed.append(Span(open_type, start, i))
            open_type = None
        if prefix in ("I", "E") and not goes_on:
            _may_begin(i, tag, before, kind, scheme)
        if prefix != "O" and not goes_on:
            open_type, start = kind, i
        if prefix in ("E", "S"):
            closed.append(Span(kind, start, i + 1))
            open_type = None
        before = tag
    if open_type is not None:
        _may_stop(len(tags), None, before, open_type, scheme)
        closed.append(Span(open_type, start, len(tags)))
    return closed


def write_tags(spans: Iterable[Span], length: int, scheme: Scheme) -> list[str]:
    """The inverse of `spans`: tags of a sentence of `length` words; spans, from left to right, must not overlap."""
    tags = ["O"] * length
    before = Span("", -1, -1)
    for span in spans:
        kind, start, end = span
        tags[start:end] = [kind if scheme == "io" else f"I-{kind}"] * (end - start)
        if scheme == "io":
            continue
        if scheme != "iob1" or before[::2] == (kind, start):
            tags[start] = f"B-{kind}"
        if scheme == "bioes":
            tags[end - 1] = f"{'S' if end - start == 1 else 'E'}-{kind}"
        before = span
    return tags


def complete_tags(seen: Iterable[str], scheme: Scheme) -> list[str]:
    """O, then all tags of each type in alphabetical order, so that spans of any length can be predicted."""
    kinds = sorted({tag[2:] for tag in seen if tag != "O"})
    return ["O", *(f"{prefix}-{kind}" for kind in kinds for prefix in sorted(_ALLOWED[scheme]))]


def convert(tags: Sequence[str], source: Scheme, target: Scheme) -> list[str]:
    """Tags of one sentence in another scheme; in the same scheme, checked and normalised.

    Raises:
        BrokenTags: `tags` are invalid in the scheme `source`.
    """
    return write_tags(spans(tags, source), len(tags), target)


def _parts(i: int, tag: str, scheme: Scheme) -> tuple[str, str]:
    if tag == "O":
        return "O", ""
    prefix, dash, kind = tag.partition("-")
    if scheme == "io":
        if dash and prefix in ("B", "I", "E", "S", "L", "U"):
            wanted = "O or a type under io (task.scheme=bio, iob1 or bioes reads prefixes)"
            raise BrokenTags(i, f"the tag {tag!r}", wanted)
        return "I", tag
    if scheme == "bioes":
        prefix = _BIOLU.get(prefix, prefix)
    if not dash or not kind or prefix not in tuple(_ALLOWED[scheme]):
        known = ", ".join(f"{letter}-X" for letter in _ALLOWED[scheme])
        raise BrokenTags(i, f"the tag {tag!r}", f"O, {known} under {scheme} ({_REMEDY})")
    return prefix, kind


def _may_begin(i: int, tag: str, before: str, kind: str, scheme: Scheme) -> None:
    """Raise BrokenTags if an I or E occurs without an open span of its type."""
    if scheme in ("iob1", "io"):
        return
    where = f"after {before}" if i else "as the first tag"
    fix = "task.scheme=iob1 reads spans that start with I-" if scheme == "bio" else "S- is a span of one word"
    raise BrokenTags(i, f"{tag} {where}", f"B-{kind} before it ({fix})")


def _may_stop(i: int, tag: str | None, before: str, kind: str, scheme: Scheme) -> None:
    """Raise BrokenTags if a span is left open before tag `i`, which is None at the sentence's end."""
    if scheme != "bioes":
        return
    where = "the sentence's end" if tag is None else tag
    fix = f"S-{kind} is a span of one word; task.scheme=bio reads spans without E- and S-"
    raise BrokenTags(i - (tag is None), f"{where} after {before}", f"I-{kind} or E-{kind} there ({fix})")


def write_span_tags(size: int, predicate: int, spans: Sequence[tuple[str, int, int]]) -> tuple[str, ...]:
    """BIO tags of arguments `(role, first, last)`; a word in several is the shortest's, the predicate V's."""
    if not any(role == "V" and first <= predicate <= last for role, first, last in spans):
        spans = [("V", predicate, predicate), *spans]
    owner: list[int | None] = [None] * size
    for number, (_, first, last) in sorted(enumerate(spans), key=lambda span: span[1][1] - span[1][2]):
        owner[first : last + 1] = [number] * (last + 1 - first)
    verb = next(n for n, (role, first, last) in enumerate(spans) if role == "V" and first <= predicate <= last)
    owner[predicate] = verb
    return write_owner_tags(owner, [role for role, _, _ in spans])


def write_owner_tags(owner: Sequence[int | None], roles: Sequence[str]) -> tuple[str, ...]:
    """BIO tags of words that each belong to an argument or to none; later pieces of an argument are C-X."""
    cuts = [0, *(i for i, (a, b) in enumerate(pairwise(owner), 1) if a != b), len(owner)]
    seen: set[int] = set()
    spans = []
    for start, end in pairwise(cuts):
        number = owner[start]
        if number is None:
            continue
        role = roles[number]
        spans.append(Span(f"C-{role}" if number in seen and not role.startswith("C-") else role, start, end))
        seen.add(number)
    return tuple(write_tags(spans, len(owner), "bio"))
