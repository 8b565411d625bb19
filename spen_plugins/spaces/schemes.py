"""Tag schemes BIO and BIOES: allowed transitions, first and last tags."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor


class Transitions(NamedTuple):
    """Allowed transitions, boolean: `following` `(tag, tag)` from row to column; `start`, `end` `(tag,)`."""

    following: Tensor
    start: Tensor
    end: Tensor


def allowed_transitions(tags: Sequence[str], scheme: str) -> Transitions:
    """Allowed transitions, first and last tags under "none", "bio" or "bioes"; kept for the next batch."""
    return _list_transitions(tuple(tags), scheme)


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # what a first call there has would be refused in training
def _list_transitions(tags: tuple[str, ...], scheme: str) -> Transitions:
    parts = [find_parts(tag, scheme) for tag in tags]
    goes_on = torch.tensor([prefix in ("I", "E") for prefix, _ in parts])
    is_open = torch.tensor([prefix in ("B", "I") for prefix, _ in parts])
    same = torch.tensor([[bool(x) and x == y for _, y in parts] for _, x in parts])
    linked = same & is_open.unsqueeze(1) & goes_on.unsqueeze(0)
    if scheme == "bioes":
        return Transitions(linked | ~(is_open.unsqueeze(1) | goes_on.unsqueeze(0)), ~goes_on, ~is_open)
    return Transitions(linked | ~goes_on.unsqueeze(0), ~goes_on, torch.ones_like(goes_on))


def find_parts(tag: str, scheme: str) -> tuple[str, str]:
    """Prefix and type of a span's tag; empty for O, and for all tags without a scheme."""
    prefix, dash, kind = tag.partition("-")
    letters = {"none": (), "bio": ("B", "I"), "bioes": ("B", "I", "E", "S")}[scheme]
    return (prefix, kind) if dash and prefix in letters else ("", "")


class SpanLinks(NamedTuple):
    """Compact transitions of a scheme: a tag that continues a span has two predecessors, the others share theirs.

    `inner` are the indices of the continuing tags (I-x, E-x); `opening` the B-x and `within` the I-x before each, equal
    if only one exists, its own index if none does; all `(inner,)`. `unfinished` `(open,)` are the tags that only an
    inner one may follow, and that can't be last: B-x and I-x under BIOES, none under BIO.
    """

    inner: Tensor
    opening: Tensor
    within: Tensor
    unfinished: Tensor


def span_links(tags: list[str], scheme: str) -> SpanLinks:
    """The links of "bio" or "bioes"; empty under "none"."""
    number = {tag: i for i, tag in enumerate(tags)}
    parts = [find_parts(tag, scheme) for tag in tags]
    inner = [i for i, (prefix, _) in enumerate(parts) if prefix in ("I", "E")]
    within = [number.get(f"I-{parts[i][1]}", number.get(f"B-{parts[i][1]}", i)) for i in inner]
    opening = [number.get(f"B-{parts[i][1]}", other) for i, other in zip(inner, within, strict=True)]
    unfinished = [i for i, (prefix, _) in enumerate(parts) if prefix in ("B", "I") and scheme == "bioes"]
    return SpanLinks(*(torch.tensor(numbers, dtype=torch.long) for numbers in (inner, opening, within, unfinished)))
