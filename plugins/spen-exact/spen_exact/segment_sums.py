"""Sums over all segmentations of a sentence, by forward and backward scores (Sarawagi & Cohen 2004).

A step of the recursion is a word: time is linear in the words times (longest · kinds + kinds²).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from spen_exact.segment_scores import NEVER, SegmentScores

NEAR = 60.0
"""Nats by which links may differ: e^-60 does not underflow in float32."""


@dataclass(frozen=True)
class Forward:
    """ln of sums over all beginnings.

    `entry` of those before a segment of a kind that begins at a word, the link to it included; `ended` of those whose
    last segment, of a kind, ends with a word; both `(batch, token, kind)`; `log_z` over whole sentences, `(batch,)`.
    """

    entry: Tensor
    ended: Tensor
    log_z: Tensor


@dataclass(frozen=True)
class Backward:
    """ln of sums over all endings.

    `begun` of those that begin with a segment of a kind at a word, its score included; `rest` of those after a segment
    of a kind that ends with a word, the link included; both `(batch, token, kind)`.
    """

    begun: Tensor
    rest: Tensor


def forward_sums(scores: SegmentScores) -> Forward:
    """The forward scores, and ln Z."""
    at, start, end = scores.places, scores.start.unbind(1), scores.end.unbind(1)
    inner = scores.inner.split([b - a for a, b in pairwise(at.first[1:])], 1)
    entry, step = scores.first.expand_as(start[0]), _steps(scores.links)
    entries, begun, ended = [], [], []
    long = None
    for t in range(len(start)):
        if t:
            entry = step(ended[-1])
        entries.append(entry)
        begun.append(entry + start[t])
        here = torch.stack(begun[-at.longest :], 1) + inner[t]
        if t >= at.longest:
            last = begun[t - at.longest]
            long = last if long is None else torch.logaddexp(long, last)
            here = torch.cat([here, (long + scores.long).unsqueeze(1)], 1)
        ended.append(torch.logsumexp(here, 1) + end[t])
    result = torch.stack(ended, 1)
    final = result[torch.arange(len(result), device=result.device), (scores.lengths - 1).clamp(min=0)]
    return Forward(torch.stack(entries, 1), result, torch.logsumexp(final + scores.last, -1))


def backward_sums(scores: SegmentScores) -> Backward:
    """The backward scores; `NEVER` and less on padding."""
    at, start, end = scores.places, scores.start.unbind(1), scores.end.unbind(1)
    inner = scores.inner[:, at.by_start].split([b - a for a, b in pairwise(at.begun)], 1)
    tokens = len(start)
    lengths = scores.lengths.unsqueeze(1)
    step = _steps(scores.links.t())
    begun: list[Tensor] = []
    rests: list[Tensor] = []
    ends: list[Tensor] = []
    long = None
    for t in range(tokens - 1, -1, -1):
        rest = torch.where(lengths == t + 1, scores.last, NEVER)
        if begun:
            rest = torch.where(lengths > t + 1, step(begun[-1]), rest)
        rests.append(rest)
        ends.append(rest + end[t])
        here = torch.stack(ends[-at.longest :][::-1], 1) + inner[t]
        if tokens - t > at.longest:
            last = ends[-at.longest - 1]
            long = last if long is None else torch.logaddexp(long, last)
            here = torch.cat([here, (long + scores.long).unsqueeze(1)], 1)
        begun.append(torch.logsumexp(here, 1) + start[t])
    return Backward(torch.stack(begun[::-1], 1), torch.stack(rests[::-1], 1))


def place_posteriors(scores: SegmentScores, forward: Forward, backward: Backward) -> Tensor:
    """The probability of a segment of each kind in each place, `(batch, place, kind)`; without longer segments."""
    at = scores.places
    before = forward.entry + scores.start - forward.log_z[:, None, None]
    after = scores.end + backward.rest
    return torch.exp(before[:, at.start] + scores.inner + after[:, at.end - 1])


def _steps(links: Tensor) -> Callable[[Tensor], Tensor]:
    """Sums `(batch, kind)` -> ln Σ_i exp(sums_i + links_ij), `(batch, kind)`.

    One matrix product of exponentials that are at most 1. The sum has the term of the likeliest kind. If links are so
    far apart that it may underflow, the sum is in log space, which takes many times longer.
    """
    with torch.no_grad():
        least, most = links.aminmax()
        is_near = float(most - least) < NEAR
    if not is_near:
        return lambda sums: torch.logsumexp(sums.unsqueeze(-1) + links, 1)
    shift = links.amax(0, keepdim=True).detach()
    factor = torch.exp(links - shift)

    def step(sums: Tensor) -> Tensor:
        top = sums.amax(-1, keepdim=True).detach()
        return torch.log(torch.exp(sums - top) @ factor) + top + shift

    return step
