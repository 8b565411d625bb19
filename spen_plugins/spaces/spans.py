"""Labelled spans in sequences of tags: their posteriors, and the best set without overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from spen_plugins.spaces.schemes import find_parts

Follow = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""Rows, tokens (never the first), previous tags and tags -> the probability of each tag given the previous tag; all
`(span,)`."""


class Spans(NamedTuple):
    """Labelled spans with their posteriors, each `(span,)`; ends are exclusive, types numbered as in `SpanTags`."""

    row: Tensor
    start: Tensor
    end: Tensor
    type: Tensor
    p: Tensor

    def pick(self, chosen: Tensor) -> Spans:
        """The spans that a mask or indices select."""
        indices = chosen.nonzero().squeeze(1) if chosen.dtype == torch.bool else chosen  # not once for each field
        return Spans(*(values.index_select(0, indices) for values in self))

    @classmethod
    def join(cls, parts: Sequence[Spans]) -> Spans:
        """All spans of the parts, ordered by row, then by end."""
        spans = cls(*(torch.cat(values) for values in zip(*parts, strict=True)))
        order = torch.arange(len(spans.row), device=spans.row.device)
        for key in (spans.type, spans.start, spans.end, spans.row):
            order = order[key[order].argsort(stable=True)]
        return spans.pick(order)


class SpanTags(NamedTuple):
    """The tags of each type of span, under BIO or BIOES.

    `types` are in alphabetical order; `begin`, `inside`, `end`, `single`, `(type,)`, the tags of a span's first, inner
    and last word and of its only one, -1 where there is none; `outside` the tag O, -1 without one. Under BIO, where
    `closes` is false, a span's last word has the tag of an inner word, and a single word that of a first word.
    """

    types: tuple[str, ...]
    outside: int
    begin: Tensor
    inside: Tensor
    end: Tensor
    single: Tensor
    closes: bool

    def write(self, spans: Spans, mask: Tensor) -> Tensor:
        """The tags `(row, token)` of sentences with these spans, which don't overlap; 0 where `mask` is false."""
        tags = torch.full(mask.shape, max(self.outside, 0), dtype=torch.long)
        row, start, end, kind, _ = (values.cpu() for values in spans)
        size = end - start
        tokens = torch.arange(int(size.sum())) + (start - size.cumsum(0) + size).repeat_interleave(size)
        tags[row.repeat_interleave(size), tokens] = self.inside[kind].repeat_interleave(size)
        tags[row, end - 1] = self.end[kind]
        tags[row, start] = torch.where(size == 1, self.single[kind], self.begin[kind])
        return tags.to(mask.device) * mask


def span_tags(tags: Sequence[str], scheme: str) -> SpanTags | None:
    """The tags of spans under "bio" or "bioes"; None under "none"."""
    if scheme == "none":
        return None
    tag_indices = {tag: i for i, tag in enumerate(tags)}
    types = tuple(sorted({kind for prefix, kind in (find_parts(tag, scheme) for tag in tags) if prefix}))

    def find(letter: str) -> Tensor:
        return torch.tensor([tag_indices.get(f"{letter}-{kind}", -1) for kind in types], dtype=torch.long)

    begin, inside, closes = find("B"), find("I"), scheme == "bioes"
    end, single = (find("E"), find("S")) if closes else (inside, begin)
    return SpanTags(types, tag_indices.get("O", -1), begin, inside, end, single, closes)


def find_spans(p: Tensor, follow: Follow, tags: SpanTags, mask: Tensor | None, floor: float) -> Spans:
    """The spans whose posterior under a chain of tags is above a floor, of any length.

    A span has its first tag, the tags inside, and after it no tag that continues it. No span has a higher posterior
    than its beginning, so beginnings at or below the floor are dropped: about 1 / floor per token remain.

    Args:
        p: marginals, `(batch, token, tag)`.
        follow: the chain's conditional probabilities.
        tags: the scheme's tags.
        mask: `(batch, token)`; None: no padding.
        floor: at least 0.
    """
    begin, inside, end, single = (indices.to(p.device) for indices in (tags.begin, tags.inside, tags.end, tags.single))
    lengths = p.new_full((len(p),), p.shape[1], dtype=torch.long) if mask is None else mask.sum(1)
    is_token = torch.arange(p.shape[1], device=p.device) < lengths[:, None]

    def select_marginals(indices: Tensor) -> Tensor:
        return p[..., indices.clamp(min=0)] * ((indices >= 0) & is_token[..., None])

    begin_p, parts = select_marginals(begin), []
    if tags.closes:
        single_p = select_marginals(single)
        row, start, kind = (single_p > floor).nonzero(as_tuple=True)
        parts.append(Spans(row, start, start + 1, kind, single_p[row, start, kind]))
    row, start, kind = (begin_p > floor).nonzero(as_tuple=True)
    spans, last = Spans(row, start, start + 1, kind, begin_p[row, start, kind]), begin[kind]
    while True:
        inner_p = spans.p * _follow(follow, spans, last, inside, lengths)
        if tags.closes:
            closed_p = spans.p * _follow(follow, spans, last, end, lengths)
            parts.append(spans._replace(end=spans.end + 1, p=closed_p).pick(closed_p > floor))
        else:
            parts.append(spans._replace(p=spans.p - inner_p).pick(spans.p - inner_p > floor))
        goes_on = inner_p > floor
        if not goes_on.any():
            return Spans.join(parts)
        spans = spans._replace(end=spans.end + 1, p=inner_p).pick(goes_on)
        last = inside[spans.type]


def _follow(follow: Follow, spans: Spans, last: Tensor, type_tags: Tensor, lengths: Tensor) -> Tensor:
    """The probability that the word after each beginning has its type's tag; 0 if there is no such word or tag."""
    tag = type_tags[spans.type]
    indices = ((tag >= 0) & (spans.end < lengths[spans.row])).nonzero().squeeze(1)
    arguments = (values.index_select(0, indices) for values in (spans.row, spans.end, last, tag))
    return torch.zeros_like(spans.p).index_copy_(0, indices, follow(*arguments))


def best_spans(spans: Spans, threshold: float, unique: Tensor | None = None) -> Spans:
    """The set of spans without overlap that has the largest Σ (p − threshold), per row (weighted interval scheduling).

    As in `begin_once`, unique types are limited only if a set repeats them, until it repeats none, so the set is the
    best one under all limits.

    Args:
        spans: candidates.
        threshold: τ, at least 0.
        unique: `(type,)` boolean, types of which a row has at most one span; None: none.
    """
    spans = Spans.join([spans.pick(spans.p > threshold)])
    if not len(spans.row):
        return spans
    gain = spans.p - threshold
    overlaps = (spans.row[1:] == spans.row[:-1]) & (spans.start[1:] < spans.end[:-1])
    chosen = _schedule(spans, gain, torch.zeros_like(spans.type)) if overlaps.any() else torch.ones_like(gain).bool()
    if unique is None:
        return spans.pick(chosen)
    unique = unique.to(spans.row.device)
    is_limited = torch.zeros(int(spans.row.max()) + 1, len(unique), dtype=torch.bool, device=spans.row.device)
    while True:
        count = torch.zeros(is_limited.shape, dtype=torch.long, device=spans.row.device)
        count.index_put_((spans.row, spans.type), chosen.long(), accumulate=True)
        is_repeated = (count > 1) & unique
        has_repeats = is_repeated.any(1)
        if not has_repeats.any():
            return spans.pick(chosen)
        is_limited |= is_repeated
        bit = torch.where(is_limited, 1 << (is_limited.cumsum(1) - 1).clamp(min=0), 0)[spans.row, spans.type]
        is_affected = has_repeats[spans.row]
        chosen[is_affected] = _schedule(spans.pick(is_affected), gain[is_affected], bit[is_affected])


def _schedule(spans: Spans, gain: Tensor, bit: Tensor) -> Tensor:
    """True for the spans of the best set of each row, `(span,)`, over states (words, limited types so far, as bits).

    Args:
        spans: ordered by row, then by end.
        bit: `(span,)`, the bit of each span's type, 0 if the type may be repeated.
    """
    _, row = spans.row.unique_consecutive(return_inverse=True)
    rows, tokens = int(row[-1]) + 1, int(spans.end.max())
    device = row.device
    sets = torch.arange(int(bit.max()) * 2 or 1, device=device)
    is_allowed = (sets & bit[:, None]) == bit[:, None]
    previous_sets = sets ^ torch.where(is_allowed, bit[:, None], 0)
    best = gain.new_full((tokens + 1, rows, len(sets)), -torch.inf)
    best[0, :, 0] = 0
    picks = torch.full(best.shape, -1, device=device)
    order = spans.end.argsort(stable=True)
    ends = torch.bincount(spans.end, minlength=tokens + 1).cumsum(0).tolist()
    for token in range(1, tokens + 1):
        best[token] = best[token - 1]
        candidates = order[ends[token - 1] : ends[token]]
        if not len(candidates):
            continue
        target_rows = row[candidates]
        value = (
            best[spans.start[candidates, None], target_rows[:, None], previous_sets[candidates]]
            + gain[candidates, None]
        )
        value = value.masked_fill(~is_allowed[candidates], -torch.inf)
        best[token].scatter_reduce_(0, target_rows[:, None].expand_as(value), value, "amax")
        wins = (value == best[token, target_rows]) & (value > best[token - 1, target_rows])
        span_index, set_index = wins.nonzero(as_tuple=True)
        picks[token, target_rows[span_index], set_index] = candidates[span_index]
    row_numbers = torch.arange(rows, device=device)
    state = best[tokens].argmax(1)
    position, chosen = torch.full_like(state, tokens), torch.zeros_like(row, dtype=torch.bool)
    for token in range(tokens, 0, -1):
        span_numbers = torch.where(position == token, picks[token, row_numbers, state], -1)
        is_taken = span_numbers >= 0
        chosen[span_numbers[is_taken]] = True
        state = torch.where(is_taken, state ^ bit[span_numbers], state)
        position = torch.where(is_taken, spans.start[span_numbers], position.clamp(max=token - 1))
    return chosen
