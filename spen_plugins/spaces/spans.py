"""Labelled spans in sequences of tags: their posteriors, and the set without overlap that is worth most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from spen_plugins.spaces.schemes import find_parts

Follow = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""Rows, tokens from the second on, the tag before each and its own -> the probability of its tag given the one before;
all `(span,)`."""


class Spans(NamedTuple):
    """Labelled spans with their posteriors, each `(span,)`; ends are exclusive, types numbered as in `SpanTags`."""

    row: Tensor
    start: Tensor
    end: Tensor
    type: Tensor
    p: Tensor

    def pick(self, chosen: Tensor) -> Spans:
        """Some of the spans, by a mask or by their numbers."""
        numbers = chosen.nonzero().squeeze(1) if chosen.dtype == torch.bool else chosen  # not once for each field
        return Spans(*(values.index_select(0, numbers) for values in self))

    @classmethod
    def join(cls, parts: Sequence[Spans]) -> Spans:
        """All spans of the parts, by row, then by end."""
        spans = cls(*(torch.cat(values) for values in zip(*parts, strict=True)))
        order = torch.arange(len(spans.row), device=spans.row.device)
        for key in (spans.type, spans.start, spans.end, spans.row):
            order = order[key[order].argsort(stable=True)]
        return spans.pick(order)


class SpanTags(NamedTuple):
    """The tags of each type of span, under BIO or BIOES.

    `types` are in alphabetical order; `begin`, `inside`, `end`, `single`, `(type,)`, the tags of a span's first, inner
    and last word and of its only one, -1 where there is none; `outside` the tag O, -1 without one. Under BIO, where
    `closes` is false, a last word has the tag of an inner one, and an only word that of a first one.
    """

    types: tuple[str, ...]
    outside: int
    begin: Tensor
    inside: Tensor
    end: Tensor
    single: Tensor
    closes: bool

    def write(self, spans: Spans, mask: Tensor) -> Tensor:
        """The tags `(row, token)` of sentences with these spans, which don't overlap; 0 on padding, `mask`'s."""
        tags = torch.full(mask.shape, max(self.outside, 0), dtype=torch.long)
        row, start, end, kind, _ = (values.cpu() for values in spans)
        size = end - start
        place = torch.arange(int(size.sum())) + (start - size.cumsum(0) + size).repeat_interleave(size)
        tags[row.repeat_interleave(size), place] = self.inside[kind].repeat_interleave(size)
        tags[row, end - 1] = self.end[kind]
        tags[row, start] = torch.where(size == 1, self.single[kind], self.begin[kind])
        return tags.to(mask.device) * mask


def span_tags(tags: Sequence[str], scheme: str) -> SpanTags | None:
    """The tags of spans under "bio" or "bioes"; None under "none"."""
    if scheme == "none":
        return None
    number = {tag: i for i, tag in enumerate(tags)}
    types = tuple(sorted({kind for prefix, kind in (find_parts(tag, scheme) for tag in tags) if prefix}))

    def find(letter: str) -> Tensor:
        return torch.tensor([number.get(f"{letter}-{kind}", -1) for kind in types], dtype=torch.long)

    begin, inside, closes = find("B"), find("I"), scheme == "bioes"
    end, single = (find("E"), find("S")) if closes else (inside, begin)
    return SpanTags(types, number.get("O", -1), begin, inside, end, single, closes)


def find_spans(p: Tensor, follow: Follow, tags: SpanTags, mask: Tensor | None, floor: float) -> Spans:
    """The spans whose posterior under a chain of tags is above a floor, of any length.

    A span has its first tag, the tags inside, and after it no tag that continues it. No span has a higher posterior
    than its beginning, so that beginnings at or below the floor are dropped: about 1 / floor per token are left.

    Args:
        p: marginals, `(batch, token, tag)`.
        follow: the chain's conditional probabilities.
        tags: of the scheme.
        mask: `(batch, token)`; None: no padding.
        floor: at least 0.
    """
    begin, inside, end, single = (numbers.to(p.device) for numbers in (tags.begin, tags.inside, tags.end, tags.single))
    lengths = p.new_full((len(p),), p.shape[1], dtype=torch.long) if mask is None else mask.sum(1)
    here = torch.arange(p.shape[1], device=p.device) < lengths[:, None]

    def marginal(numbers: Tensor) -> Tensor:
        return p[..., numbers.clamp(min=0)] * ((numbers >= 0) & here[..., None])

    first, found = marginal(begin), []
    if tags.closes:
        alone = marginal(single)
        row, start, kind = (alone > floor).nonzero(as_tuple=True)
        found.append(Spans(row, start, start + 1, kind, alone[row, start, kind]))
    row, start, kind = (first > floor).nonzero(as_tuple=True)
    spans, last = Spans(row, start, start + 1, kind, first[row, start, kind]), begin[kind]
    while True:
        inner = spans.p * _follow(follow, spans, last, inside, lengths)
        if tags.closes:
            closed = spans.p * _follow(follow, spans, last, end, lengths)
            found.append(spans._replace(end=spans.end + 1, p=closed).pick(closed > floor))
        else:
            found.append(spans._replace(p=spans.p - inner).pick(spans.p - inner > floor))
        goes_on = inner > floor
        if not goes_on.any():
            return Spans.join(found)
        spans = spans._replace(end=spans.end + 1, p=inner).pick(goes_on)
        last = inside[spans.type]


def _follow(follow: Follow, spans: Spans, last: Tensor, numbers: Tensor, lengths: Tensor) -> Tensor:
    """The probability that the word after each beginning has its type's tag, 0 where there is no such word or tag."""
    tag = numbers[spans.type]
    there = ((tag >= 0) & (spans.end < lengths[spans.row])).nonzero().squeeze(1)
    some = (values.index_select(0, there) for values in (spans.row, spans.end, last, tag))
    return torch.zeros_like(spans.p).index_copy_(0, there, follow(*some))


def best_spans(spans: Spans, threshold: float, unique: Tensor | None = None) -> Spans:
    """The set without overlap of largest Σ (p − threshold), in each row (weighted interval scheduling).

    Unique types are limited as in `begin_once`: only those that a set repeats, until it repeats none, so that the set
    is the best one under the limits.

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
    limited = torch.zeros(int(spans.row.max()) + 1, len(unique), dtype=torch.bool, device=spans.row.device)
    while True:
        count = torch.zeros(limited.shape, dtype=torch.long, device=spans.row.device)
        count.index_put_((spans.row, spans.type), chosen.long(), accumulate=True)
        repeated = (count > 1) & unique
        wrong = repeated.any(1)
        if not wrong.any():
            return spans.pick(chosen)
        limited |= repeated
        bit = torch.where(limited, 1 << (limited.cumsum(1) - 1).clamp(min=0), 0)[spans.row, spans.type]
        again = wrong[spans.row]
        chosen[again] = _schedule(spans.pick(again), gain[again], bit[again])


def _schedule(spans: Spans, gain: Tensor, bit: Tensor) -> Tensor:
    """The spans `(span,)` boolean of the best set of each row, over states (words, limited types so far, as bits).

    Args:
        spans: by row, then by end.
        bit: `(span,)` of a span's type, 0 if the type may be repeated.
    """
    _, row = spans.row.unique_consecutive(return_inverse=True)
    rows, tokens = int(row[-1]) + 1, int(spans.end.max())
    device = row.device
    sets = torch.arange(int(bit.max()) * 2 or 1, device=device)
    allowed = (sets & bit[:, None]) == bit[:, None]
    before = sets ^ torch.where(allowed, bit[:, None], 0)
    best = gain.new_full((tokens + 1, rows, len(sets)), -torch.inf)
    best[0, :, 0] = 0
    pick = torch.full(best.shape, -1, device=device)
    order = spans.end.argsort(stable=True)
    ends = torch.bincount(spans.end, minlength=tokens + 1).cumsum(0).tolist()
    for token in range(1, tokens + 1):
        best[token] = best[token - 1]
        numbers = order[ends[token - 1] : ends[token]]
        if not len(numbers):
            continue
        to = row[numbers]
        value = best[spans.start[numbers, None], to[:, None], before[numbers]] + gain[numbers, None]
        value = value.masked_fill(~allowed[numbers], -torch.inf)
        best[token].scatter_reduce_(0, to[:, None].expand_as(value), value, "amax")
        wins = (value == best[token, to]) & (value > best[token - 1, to])
        which, at = wins.nonzero(as_tuple=True)
        pick[token, to[which], at] = numbers[which]
    every = torch.arange(rows, device=device)
    state = best[tokens].argmax(1)
    place, chosen = torch.full_like(state, tokens), torch.zeros_like(row, dtype=torch.bool)
    for token in range(tokens, 0, -1):
        number = torch.where(place == token, pick[token, every, state], -1)
        taken = number >= 0
        chosen[number[taken]] = True
        state = torch.where(taken, state ^ bit[number], state)
        place = torch.where(taken, spans.start[number], place.clamp(max=token - 1))
    return chosen
