"""The best segmentations of sentences, also with each of chosen types at most once, and exact samples."""

from __future__ import annotations

import torch
from torch import Tensor

from spen_exact.segment_scores import NEVER, SegmentScores
from spen_exact.segment_sums import Forward

IMPOSSIBLE = float("-inf")


def k_best(scores: SegmentScores, k: int, bits: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The k best segmentations, by list Viterbi (Seshadri & Sundberg 1994) over states (set, kind).

    Args:
        bits: `(batch, kind)`, powers of two for kinds of which a sentence has at most one segment, else 0; None: all 0.

    Returns:
        True where a segment begins, and its kind there, `(batch, k, token)`, and scores `(batch, k)`, best first. If
        fewer exist, the score is −∞ and the best one is repeated.
    """
    batch, tokens, kinds = scores.start.shape
    bits = torch.zeros(batch, kinds, dtype=torch.long, device=scores.start.device) if bits is None else bits
    sets = torch.arange(2 * int(bits.max()) or 1, device=bits.device).view(1, -1, 1)
    has = (sets & bits.unsqueeze(1)) == bits.unsqueeze(1)
    before = (sets ^ torch.where(has, bits.unsqueeze(1), 0)).unsqueeze(-1).expand(-1, -1, -1, k)
    has = has.unsqueeze(-1)

    entry = scores.first.new_full((batch, sets.shape[1], kinds, k), IMPOSSIBLE)
    begins = (sets == bits.unsqueeze(1)).expand(batch, -1, -1)
    entry[..., 0] = torch.where(begins, scores.first, IMPOSSIBLE)
    back = scores.links.t().unsqueeze(-1)
    at, begun, starts, sources, final = scores.places, [], [], [], entry
    long: tuple[Tensor, Tensor] | None = None
    ended, source = entry, torch.zeros_like(before)
    for t in range(tokens):
        if t:
            reached, source = _top((ended.unsqueeze(2) + back).flatten(3), k)
            entry = torch.where(has, reached.gather(1, before), IMPOSSIBLE)
            source = source.gather(1, before)
        sources.append(source)
        begun.append(entry + scores.start[:, t, None, :, None])
        few = min(t + 1, at.longest)
        inner = scores.inner[:, at.first[t + 1] : at.first[t + 2], None, :, None]
        here = [torch.stack(begun[-few:], 1) + inner]
        first = torch.arange((t + 1 - few) * k, (t + 1) * k, device=bits.device).expand(*entry.shape[:3], -1)
        if t >= at.longest:
            value = begun[t - at.longest]
            number = torch.arange((t - at.longest) * k, (t - at.longest + 1) * k, device=bits.device).expand_as(value)
            if long is not None:
                value, place = _top(torch.cat([long[0], value], -1), k)
                number = torch.cat([long[1], number], -1).gather(-1, place)
            long = value, number
            here.append((value + scores.long[:, None]).unsqueeze(1))
            first = torch.cat([first, number], -1)
        value, place = _top(torch.cat(here, 1).movedim(1, 3).flatten(3), k)
        starts.append(first.gather(-1, place))
        ended = value + scores.end[:, t, None, :, None]
        final = torch.where((scores.lengths == t + 1)[:, None, None, None], ended, final)
    total, place = (final + scores.last[:, None]).flatten(1).topk(k, 1)
    total = total.masked_fill(total < NEVER / 2, IMPOSSIBLE)
    place = torch.where(total == IMPOSSIBLE, place[:, :1], place)
    return *_trace(place, torch.stack(starts, 1), torch.stack(sources, 1), before[..., 0], scores.lengths), total


def _top(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of the last axis, and their places; −∞ if there are fewer."""
    if k == 1:
        value, place = values.max(-1, keepdim=True)
        return value, place
    values = torch.cat([values, values.new_full((*values.shape[:-1], k), IMPOSSIBLE)], -1)
    value, place = values.topk(k, -1)
    return value, torch.where(value == IMPOSSIBLE, 0, place)


def _trace(place: Tensor, starts: Tensor, sources: Tensor, before: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The segments of the paths that end in `place` `(batch, path)`, numbers of (set, kind, rank).

    Args:
        starts, sources: `(batch, token, set, kind, rank)`, for a segment that ends with a token its first word and the
            rank of the path to it; for one that begins there the kind before and the rank of the path to that.
        before: `(batch, set, kind)`, the set before a segment.
    """
    batch, tokens, _, kinds, k = starts.shape
    row = torch.arange(batch, device=place.device).unsqueeze(1)
    is_start = torch.zeros(batch, place.shape[1], tokens, dtype=torch.bool, device=place.device)
    kind_at = torch.zeros_like(is_start, dtype=torch.long)
    here, kind, rank = place // (kinds * k), place // k % kinds, place % k
    end = (lengths.unsqueeze(1) - 1).expand_as(place)
    path = torch.arange(place.shape[1], device=place.device).expand_as(place)
    while bool((end >= 0).any()):
        on = end >= 0
        last = end.clamp(min=0)
        begun = starts[row, last, here, kind, rank]
        start, rank = begun // k, begun % k
        is_start[row.expand_as(path)[on], path[on], start[on]] = True
        kind_at[row.expand_as(path)[on], path[on], start[on]] = kind[on]
        source = sources[row, start, here, kind, rank]
        here = before[row, here, kind]
        kind, rank = source // k, source % k
        end = torch.where(on, start - 1, end)
    return is_start, kind_at


def best_once(scores: SegmentScores, unique: Tensor | None) -> tuple[Tensor, Tensor]:
    """The best segmentation of each sentence, of those with each unique kind at most once.

    Only kinds that a segmentation repeats are limited, until it repeats none.

    Args:
        unique: `(kind,)` boolean; None: no kind is.

    Returns:
        True where a segment begins, and its kind there, `(batch, token)`.
    """
    starts, kinds = (part[:, 0] for part in k_best(scores, 1)[:2])
    if unique is None:
        return starts, kinds
    limited = torch.zeros(len(starts), len(unique), dtype=torch.bool, device=starts.device)
    while True:
        count = torch.zeros(limited.shape, dtype=torch.long, device=starts.device).scatter_add_(1, kinds, starts.long())
        repeated = (count > 1) & unique.to(starts.device)
        wrong = repeated.any(1)
        if not wrong.any():
            return starts, kinds
        limited |= repeated
        bits = torch.where(limited, 1 << (limited.cumsum(1) - 1).clamp(min=0), 0)
        for bit in bits[wrong].amax(1).unique().tolist():  # as many sets as a row needs
            rows = (wrong & (bits.amax(1) == bit)).nonzero()[:, 0]
            found = k_best(scores.rows(rows), 1, bits[rows])
            starts[rows], kinds[rows] = found[0][:, 0], found[1][:, 0]


def sample(scores: SegmentScores, forward: Forward, n: int) -> tuple[Tensor, Tensor]:
    """`n` exact draws for each sentence, each segment given the one after it, from the last to the first.

    Returns:
        True where a segment begins, and its kind there, `(batch, n, token)`.
    """
    batch, tokens, _ = scores.start.shape
    at, device = scores.places, scores.start.device
    begun, back = forward.entry + scores.start, scores.links.t()
    is_start = torch.zeros(batch, n, tokens, dtype=torch.bool, device=device)
    kind_at = torch.zeros_like(is_start, dtype=torch.long)
    sizes, words = torch.arange(1, at.longest + 1, device=device), torch.arange(tokens, device=device)
    # Samples that are not complete: their row and number, the words that are left, and the kind of the last segment.
    row, number = (scores.lengths > 0).unsqueeze(1).expand(batch, n).nonzero(as_tuple=True)
    end = scores.lengths[row]
    kind = _draw(forward.ended[row, end - 1] + scores.last)
    while len(row):
        left = end.unsqueeze(1)
        start = left - sizes
        there, start = start >= 0, start.clamp(min=0)
        place = at.find(start, left.expand_as(start))
        of = row.unsqueeze(1), kind.unsqueeze(1)
        weights = begun[of[0], start, of[1]] + scores.inner[of[0], place, of[1]]
        weights = weights.masked_fill(~there, IMPOSSIBLE)
        if tokens > at.longest:
            far = begun[row, :, kind] + scores.long[of[1]]
            weights = torch.cat([weights, far.masked_fill(words >= left - at.longest, IMPOSSIBLE)], 1)
            start = torch.cat([start, words.expand(len(row), -1)], 1)
        end = start.gather(1, _draw(weights).unsqueeze(1))[:, 0]
        is_start[row, number, end], kind_at[row, number, end] = True, kind
        more = end > 0
        row, number, end, kind = (values[more] for values in (row, number, end, kind))
        kind = _draw(forward.ended[row, end - 1] + back[kind])
    return is_start, kind_at


def _draw(logits: Tensor) -> Tensor:
    """A number with each row's probabilities ∝ exp(logits), `(row, number)` -> `(row,)`."""
    if not len(logits):
        return logits.new_zeros(0, dtype=torch.long)
    cumulative = torch.exp(logits - logits.amax(1, keepdim=True)).cumsum(1)
    u = 1 - torch.rand(len(logits), 1, device=logits.device, dtype=logits.dtype)  # above 0: no number of weight 0
    return torch.searchsorted(cumulative, u * cumulative[:, -1:])[:, 0]
