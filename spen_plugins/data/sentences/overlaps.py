"""Arguments that share words, as tags, of which a word has one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from spen_plugins.data.schemes import Span, write_tags


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
