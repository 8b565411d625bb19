"""The best path through additive scores (Viterbi 1967), optionally with at most one span of each chosen type."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


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

    Shapes: tags `(batch, token)`, at least one token; the others as in `viterbi`.
    """
    links = transitions[tags[:, :-1], tags[:, 1:]] > float("-inf")
    if mask is not None:
        links = links | ~mask[:, 1:]
    is_linked = links.all(1) & (start[tags[:, 0]] > float("-inf"))
    if end is None:
        return is_linked
    last = tags[:, -1:] if mask is None else tags.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0))
    return is_linked & (end[last[:, 0]] > float("-inf"))


class Scores(NamedTuple):
    """Additive scores of paths, as in `viterbi`."""

    emissions: Tensor
    mask: Tensor | None
    transitions: Tensor
    start: Tensor
    end: Tensor | None = None

    def rows(self, chosen: Tensor) -> Scores:
        """The scores of the rows that a mask or indices select."""
        mask = None if self.mask is None else self.mask[chosen]
        return self._replace(emissions=self.emissions[chosen], mask=mask)


def begin_once(tags: Tensor, scores: Scores, begins: Tensor) -> Tensor:
    """The best paths among those that begin each type at most once.

    Only types that a path repeats are limited, until it repeats none: a path that is the best under some of the limits
    and obeys all of them is the best under all. Rows without repeated types cost one check.

    Args:
        tags: `(batch, token)`, the best paths without the limit.
        scores: the paths' scores; the transitions are −∞ where a scheme forbids them.
        begins: `(type, tag)` boolean, the tags that begin a span of each type; a path has at most one span of each.

    Returns:
        Tag indices `(batch, token)`, 0 on padding.
    """
    is_limited = begins.new_zeros(len(tags), len(begins))
    while True:
        begins_type = begins.t()[tags]
        if scores.mask is not None:
            begins_type = begins_type & scores.mask.unsqueeze(-1)
        is_repeated = begins_type.sum(1) > 1
        has_repeats = is_repeated.any(1)
        if not has_repeats.any():
            return tags
        is_limited = is_limited | is_repeated
        count = is_limited.sum(1)
        tags = tags.clone()
        for n in count[has_repeats].unique().tolist():
            rows = (has_repeats & (count == n)).nonzero()[:, 0]
            tags[rows] = _find_limited(scores.rows(rows), begins, is_limited[rows], n)


def _find_limited(scores: Scores, begins: Tensor, is_limited: Tensor, count: int) -> Tensor:
    """`viterbi` over states (set, tag). The set has a bit for each of a row's `count` limited types, 1 once begun."""
    emissions, mask, transitions, start, end = scores
    length, k = emissions.shape[1:]
    rank = is_limited.cumsum(1) - 1
    bits = torch.where(is_limited, 1 << rank.clamp(min=0), 0).to(emissions.dtype) @ begins.to(emissions.dtype)
    bit = bits.long().unsqueeze(1)  # (row, 1, tag): the bit that a tag adds to the set
    sets = torch.arange(1 << count, device=emissions.device).view(1, -1, 1)
    is_allowed = (sets & bit) == bit
    previous_sets = sets - torch.where(is_allowed, bit, 0)  # (row, set, tag): the set before each tag
    backwards = transitions.t().contiguous()

    def restrict(values: Tensor, condition: Tensor) -> Tensor:
        return values.masked_fill(~condition, float("-inf"))

    best = restrict((start + emissions[:, 0]).unsqueeze(1).expand(previous_sets.shape), sets == bit)
    rows = [best]
    for t in range(1, length):
        arrivals = (best.unsqueeze(2) + backwards).amax(-1)
        value = restrict(arrivals.gather(1, previous_sets), is_allowed) + emissions[:, t].unsqueeze(1)
        best = value if mask is None else torch.where(mask[:, t, None, None], value, best)
        rows.append(best)
    state = (best if end is None else best + end).flatten(1).argmax(1)
    row_numbers = torch.arange(len(state), device=state.device)
    path = [state % k]
    for t in range(length - 1, 0, -1):
        # The predecessor is recomputed for the path alone, so no back-pointers are stored.
        previous_set = previous_sets[row_numbers, state // k, state % k]
        tag = (rows[t - 1][row_numbers, previous_set] + backwards[state % k]).argmax(-1)
        previous_state = previous_set * k + tag
        state = previous_state if mask is None else torch.where(mask[:, t], previous_state, state)
        path.append(state % k)
    tags = torch.stack(path[::-1], 1)
    return tags if mask is None else tags * mask
