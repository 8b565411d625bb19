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
    """Allowed transitions, first and last tags under "none", "bio" or "bioes"; cached."""
    return _list_transitions(tuple(tags), scheme)


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # inference tensors would fail in training
def _list_transitions(tags: tuple[str, ...], scheme: str) -> Transitions:
    parts = [find_parts(tag, scheme) for tag in tags]
    is_continuation = torch.tensor([prefix in ("I", "E") for prefix, _ in parts])
    is_open = torch.tensor([prefix in ("B", "I") for prefix, _ in parts])
    has_same_type = torch.tensor([[bool(x) and x == y for _, y in parts] for _, x in parts])
    is_linked = has_same_type & is_open.unsqueeze(1) & is_continuation.unsqueeze(0)
    if scheme == "bioes":
        return Transitions(
            is_linked | ~(is_open.unsqueeze(1) | is_continuation.unsqueeze(0)), ~is_continuation, ~is_open
        )
    return Transitions(is_linked | ~is_continuation.unsqueeze(0), ~is_continuation, torch.ones_like(is_continuation))


def find_parts(tag: str, scheme: str) -> tuple[str, str]:
    """Prefix and type of a span's tag; empty for O, and for all tags without a scheme."""
    prefix, dash, kind = tag.partition("-")
    letters = {"none": (), "bio": ("B", "I"), "bioes": ("B", "I", "E", "S")}[scheme]
    return (prefix, kind) if dash and prefix in letters else ("", "")


class SpanLinks(NamedTuple):
    """Compact transitions of a scheme: a tag that continues a span has two predecessors, the others share theirs.

    `inner` are the indices of the continuing tags (I-x, E-x). `opening` and `within` are the B-x and the I-x that may
    precede each of them: equal if only one exists, the tag's own index if neither does. All three are `(inner,)`.
    `unfinished` `(open,)` are the tags that only an inner tag may follow, and that can't be last: B-x and I-x under
    BIOES, none under BIO.
    """

    inner: Tensor
    opening: Tensor
    within: Tensor
    unfinished: Tensor


def span_links(tags: list[str], scheme: str) -> SpanLinks:
    """The links of "bio" or "bioes"; empty under "none"."""
    tag_indices = {tag: i for i, tag in enumerate(tags)}
    parts = [find_parts(tag, scheme) for tag in tags]
    inner = [i for i, (prefix, _) in enumerate(parts) if prefix in ("I", "E")]
    within = [tag_indices.get(f"I-{parts[i][1]}", tag_indices.get(f"B-{parts[i][1]}", i)) for i in inner]
    opening = [tag_indices.get(f"B-{parts[i][1]}", fallback) for i, fallback in zip(inner, within, strict=True)]
    unfinished = [i for i, (prefix, _) in enumerate(parts) if prefix in ("B", "I") and scheme == "bioes"]
    return SpanLinks(*(torch.tensor(indices, dtype=torch.long) for indices in (inner, opening, within, unfinished)))
