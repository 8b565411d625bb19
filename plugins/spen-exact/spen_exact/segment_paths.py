"""The best segmentations of sentences, optionally with some kinds at most once, and exact samples."""

from __future__ import annotations

import torch
from torch import Tensor

from spen_exact.segment_scores import NEVER, SegmentScores
from spen_exact.segment_sums import Forward
from spen_plugins.nn import draw_index

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
    has_kind = (sets & bits.unsqueeze(1)) == bits.unsqueeze(1)
    sets_before = (sets ^ torch.where(has_kind, bits.unsqueeze(1), 0)).unsqueeze(-1).expand(-1, -1, -1, k)
    has_kind = has_kind.unsqueeze(-1)

    entry = scores.first.new_full((batch, sets.shape[1], kinds, k), IMPOSSIBLE)
    is_first = (sets == bits.unsqueeze(1)).expand(batch, -1, -1)
    entry[..., 0] = torch.where(is_first, scores.first, IMPOSSIBLE)
    links = scores.links.t().unsqueeze(-1)
    places, begin_scores, starts, sources, final = scores.places, [], [], [], entry
    long_begins: tuple[Tensor, Tensor] | None = None
    end_scores, source = entry, torch.zeros_like(sets_before)
    for t in range(tokens):
        if t:
            best_ends, source = _find_top((end_scores.unsqueeze(2) + links).flatten(3), k)
            entry = torch.where(has_kind, best_ends.gather(1, sets_before), IMPOSSIBLE)
            source = source.gather(1, sets_before)
        sources.append(source)
        begin_scores.append(entry + scores.start[:, t, None, :, None])
        count = min(t + 1, places.longest)
        inner = scores.inner[:, places.first[t + 1] : places.first[t + 2], None, :, None]
        candidates = [torch.stack(begin_scores[-count:], 1) + inner]
        pointers = torch.arange((t + 1 - count) * k, (t + 1) * k, device=bits.device).expand(*entry.shape[:3], -1)
        if t >= places.longest:
            value = begin_scores[t - places.longest]
            long_pointers = torch.arange(
                (t - places.longest) * k, (t - places.longest + 1) * k, device=bits.device
            ).expand_as(value)
            if long_begins is not None:
                value, place = _find_top(torch.cat([long_begins[0], value], -1), k)
                long_pointers = torch.cat([long_begins[1], long_pointers], -1).gather(-1, place)
            long_begins = value, long_pointers
            candidates.append((value + scores.long[:, None]).unsqueeze(1))
            pointers = torch.cat([pointers, long_pointers], -1)
        value, place = _find_top(torch.cat(candidates, 1).movedim(1, 3).flatten(3), k)
        starts.append(pointers.gather(-1, place))
        end_scores = value + scores.end[:, t, None, :, None]
        final = torch.where((scores.lengths == t + 1)[:, None, None, None], end_scores, final)
    total, place = (final + scores.last[:, None]).flatten(1).topk(k, 1)
    total = total.masked_fill(total < NEVER / 1000, IMPOSSIBLE)  # a temperature may divide NEVER
    place = torch.where(total == IMPOSSIBLE, place[:, :1], place)
    return *_trace_paths(
        place, torch.stack(starts, 1), torch.stack(sources, 1), sets_before[..., 0], scores.lengths
    ), total


def _find_top(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of the last axis, and their places; −∞ if there are fewer."""
    if k == 1:
        value, place = values.max(-1, keepdim=True)
        return value, place
    values = torch.cat([values, values.new_full((*values.shape[:-1], k), IMPOSSIBLE)], -1)
    value, place = values.topk(k, -1)
    return value, torch.where(value == IMPOSSIBLE, 0, place)


def _trace_paths(
    place: Tensor, starts: Tensor, sources: Tensor, sets_before: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """The segments of the paths that end in `place` `(batch, path)`, numbers of (set, kind, rank).

    Args:
        starts: the first word of a segment that ends with a token, and the rank of the path to it, as one number,
            `(batch, token, set, kind, rank)`.
        sources: the kind before a segment that begins with a token, and the rank of the path to that kind; like
            `starts`.
        sets_before: the set before a segment, `(batch, set, kind)`.
    """
    batch, tokens, _, kinds, k = starts.shape
    row = torch.arange(batch, device=place.device).unsqueeze(1)
    is_start = torch.zeros(batch, place.shape[1], tokens, dtype=torch.bool, device=place.device)
    segment_kinds = torch.zeros_like(is_start, dtype=torch.long)
    set_number, kind, rank = place // (kinds * k), place // k % kinds, place % k
    end = (lengths.unsqueeze(1) - 1).expand_as(place)
    path = torch.arange(place.shape[1], device=place.device).expand_as(place)
    while bool((end >= 0).any()):
        is_open = end >= 0
        last = end.clamp(min=0)
        pointer = starts[row, last, set_number, kind, rank]
        start, rank = pointer // k, pointer % k
        is_start[row.expand_as(path)[is_open], path[is_open], start[is_open]] = True
        segment_kinds[row.expand_as(path)[is_open], path[is_open], start[is_open]] = kind[is_open]
        source = sources[row, start, set_number, kind, rank]
        set_number = sets_before[row, set_number, kind]
        kind, rank = source // k, source % k
        end = torch.where(is_open, start - 1, end)
    return is_start, segment_kinds


def best_once(scores: SegmentScores, unique: Tensor | None) -> tuple[Tensor, Tensor]:
    """The best segmentation of each sentence with each unique kind at most once.

    The search limits only the kinds that a segmentation repeats, until it repeats none.

    Args:
        unique: `(kind,)` boolean; None: no kind is unique.

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
        has_repetition = repeated.any(1)
        if not has_repetition.any():
            return starts, kinds
        limited |= repeated
        bits = torch.where(limited, 1 << (limited.cumsum(1) - 1).clamp(min=0), 0)
        for bit in bits[has_repetition].amax(1).unique().tolist():  # the number of sets that a row needs
            rows = (has_repetition & (bits.amax(1) == bit)).nonzero()[:, 0]
            paths = k_best(scores.rows(rows), 1, bits[rows])
            starts[rows], kinds[rows] = paths[0][:, 0], paths[1][:, 0]


def sample(scores: SegmentScores, forward: Forward, n: int) -> tuple[Tensor, Tensor]:
    """`n` exact draws for each sentence, each segment given the one after it, from the last to the first.

    Returns:
        True where a segment begins, and its kind there, `(batch, n, token)`.
    """
    batch, tokens, _ = scores.start.shape
    places, device = scores.places, scores.start.device
    begin_scores, links = forward.entry + scores.start, scores.links.t()
    is_start = torch.zeros(batch, n, tokens, dtype=torch.bool, device=device)
    segment_kinds = torch.zeros_like(is_start, dtype=torch.long)
    sizes, words = torch.arange(1, places.longest + 1, device=device), torch.arange(tokens, device=device)
    # Samples that are not complete: their row and number, the number of words left, and the kind of the last segment.
    row, number = (scores.lengths > 0).unsqueeze(1).expand(batch, n).nonzero(as_tuple=True)
    end = scores.lengths[row]
    kind = _draw(forward.ends[row, end - 1] + scores.last)
    while len(row):
        last_end = end.unsqueeze(1)
        start = last_end - sizes
        exists, start = start >= 0, start.clamp(min=0)
        place = places.find(start, last_end.expand_as(start))
        index = row.unsqueeze(1), kind.unsqueeze(1)
        weights = begin_scores[index[0], start, index[1]] + scores.inner[index[0], place, index[1]]
        weights = weights.masked_fill(~exists, IMPOSSIBLE)
        if tokens > places.longest:
            long_scores = begin_scores[row, :, kind] + scores.long[index[1]]
            weights = torch.cat([weights, long_scores.masked_fill(words >= last_end - places.longest, IMPOSSIBLE)], 1)
            start = torch.cat([start, words.expand(len(row), -1)], 1)
        end = start.gather(1, _draw(weights).unsqueeze(1))[:, 0]
        is_start[row, number, end], segment_kinds[row, number, end] = True, kind
        is_open = end > 0
        row, number, end, kind = (values[is_open] for values in (row, number, end, kind))
        kind = _draw(forward.ends[row, end - 1] + links[kind])
    return is_start, segment_kinds


def _draw(logits: Tensor) -> Tensor:
    """Draws a number for each row with probabilities ∝ exp(logits), `(row, number)` -> `(row,)`."""
    return draw_index(torch.exp(logits - logits.amax(1, keepdim=True)))
