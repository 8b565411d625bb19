"""The best path through additive scores (Viterbi 1967), with any transitions, or under a scheme only."""

from __future__ import annotations

import torch
from torch import Tensor

from spen_plugins.spaces.schemes import SpanLinks


def span_viterbi(scores: Tensor, mask: Tensor | None, links: SpanLinks) -> Tensor:
    """`viterbi` under a scheme only, in time linear in the number of tags.

    Shapes: scores `(batch, token, tag)`. Returns `(batch, token)`, 0 on padding.
    """
    b, length, k = scores.shape
    if length == 0:
        return scores.new_zeros((b, 0), dtype=torch.long)
    inner, opening, within, unfinished = (numbers.to(scores.device) for numbers in links)
    best = scores[:, 0].index_fill(1, inner, float("-inf"))
    identity = torch.arange(k, device=scores.device).expand(b, k)
    pointers = []
    for t in range(1, length):
        top, first = _close(best, unfinished).max(1, keepdim=True)
        stay, opened = best[:, within], best[:, opening]
        value = top.expand(b, k).index_copy(1, inner, torch.maximum(stay, opened)) + scores[:, t]
        previous = first.expand(b, k).index_copy(1, inner, torch.where(opened > stay, opening, within))
        if mask is not None:  # after the end a path is constant
            here = mask[:, t].unsqueeze(1)
            value, previous = torch.where(here, value, best), torch.where(here, previous, identity)
        best = value
        pointers.append(previous)
    tag = _close(best, unfinished).argmax(1)
    path = [tag]
    for previous in reversed(pointers):
        tag = previous.gather(1, tag.unsqueeze(1)).squeeze(1)
        path.append(tag)
    tags = torch.stack(path[::-1], 1)
    return tags if mask is None else tags * mask


def _close(best: Tensor, unfinished: Tensor) -> Tensor:
    """Scores of paths that may end, or continue with any tag but an inner one."""
    return best.index_fill(1, unfinished, float("-inf")) if len(unfinished) else best


def viterbi(
    scores: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor, end: Tensor | None = None
) -> Tensor:
    """The best path through additive scores, vectorised over the batch.

    Shapes: scores `(batch, token, tag)`; mask `(batch, token)`, true for the first tokens of each row; transitions
    `(tag, tag)` from row to column; start, end `(tag,)`. Returns tag indices `(batch, token)`, 0 on padding.
    """
    length = scores.shape[1]
    if length == 0:
        return scores.new_zeros(scores.shape[:2], dtype=torch.long)
    backwards = transitions.t().contiguous()  # reducing over the last axis is several times faster
    best = start + scores[:, 0]
    rows = [best]
    for t in range(1, length):
        value = (best.unsqueeze(1) + backwards).amax(2) + scores[:, t]
        best = value if mask is None else torch.where(mask[:, t, None], value, best)  # after the end a path is constant
        rows.append(best)
    tag = (best if end is None else best + end).argmax(-1)
    path = [tag]
    for t in range(length - 1, 0, -1):
        # The predecessor is recomputed for the tag on the path, so no back-pointers are stored.
        previous = (rows[t - 1] + backwards[tag]).argmax(-1)
        tag = previous if mask is None else torch.where(mask[:, t], previous, tag)
        path.append(tag)
    tags = torch.stack(path[::-1], 1)
    return tags if mask is None else tags * mask


def is_possible(
    tags: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor, end: Tensor | None = None
) -> Tensor:
    """True where the score of a path is above −∞, `(batch,)`.

    Shapes: tags `(batch, token)`, at least one token; the others as of `viterbi`.
    """
    links = transitions[tags[:, :-1], tags[:, 1:]] > float("-inf")
    if mask is not None:
        links = links | ~mask[:, 1:]
    is_linked = links.all(1) & (start[tags[:, 0]] > float("-inf"))
    if end is None:
        return is_linked
    last = tags[:, -1:] if mask is None else tags.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0))
    return is_linked & (end[last[:, 0]] > float("-inf"))
