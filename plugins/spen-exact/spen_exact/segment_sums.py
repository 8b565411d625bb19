"""Sums over all segmentations of a sentence, by forward and backward scores (Sarawagi & Cohen 2004).

Each step of the recursion is one word: the time is linear in the number of words times (longest · kinds + kinds²).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from spen_exact.segment_scores import NEVER, SegmentScores
from spen_plugins.nn import make_step


@dataclass(frozen=True)
class Forward:
    """ln of sums over all beginnings of a sentence.

    Attributes:
        entry: over those before a segment of a kind that begins at a word, with the link to it, `(batch, token, kind)`.
        ends: over those whose last segment, of a kind, ends with a word, `(batch, token, kind)`.
        log_z: over whole sentences, `(batch,)`.
    """

    entry: Tensor
    ends: Tensor
    log_z: Tensor


@dataclass(frozen=True)
class Backward:
    """ln of sums over all endings of a sentence.

    Attributes:
        starts: over those that begin with a segment of a kind at a word, with its score, `(batch, token, kind)`.
        exit: over those after a segment of a kind that ends with a word, with the link, `(batch, token, kind)`.
    """

    starts: Tensor
    exit: Tensor


def forward_sums(scores: SegmentScores) -> Forward:
    """The forward scores, and ln Z; in full precision."""
    with torch.autocast(scores.start.device.type, enabled=False):
        places, start, end = scores.places, scores.start.unbind(1), scores.end.unbind(1)
        inner = scores.inner.split([b - a for a, b in pairwise(places.first[1:])], 1)
        entry, step = scores.first.expand_as(start[0]), make_step(scores.links)
        entries, begin_scores, end_scores = [], [], []
        long_scores = None
        for t in range(len(start)):
            if t:
                entry = step(end_scores[-1])
            entries.append(entry)
            begin_scores.append(entry + start[t])
            alternatives = torch.stack(begin_scores[-places.longest :], 1) + inner[t]
            if t >= places.longest:
                begin_score = begin_scores[t - places.longest]
                long_scores = begin_score if long_scores is None else torch.logaddexp(long_scores, begin_score)
                alternatives = torch.cat([alternatives, (long_scores + scores.long).unsqueeze(1)], 1)
            end_scores.append(torch.logsumexp(alternatives, 1) + end[t])
        result = torch.stack(end_scores, 1)
        final = result[torch.arange(len(result), device=result.device), (scores.lengths - 1).clamp(min=0)]
        return Forward(torch.stack(entries, 1), result, torch.logsumexp(final + scores.last, -1))


def backward_sums(scores: SegmentScores) -> Backward:
    """The backward scores, in full precision; `NEVER` and less on padding."""
    with torch.autocast(scores.start.device.type, enabled=False):
        places, start, end = scores.places, scores.start.unbind(1), scores.end.unbind(1)
        inner = scores.inner[:, places.by_start].split([b - a for a, b in pairwise(places.first_by_start)], 1)
        tokens = len(start)
        lengths = scores.lengths.unsqueeze(1)
        step = make_step(scores.links.t())
        begin_scores: list[Tensor] = []
        exit_scores: list[Tensor] = []
        end_scores: list[Tensor] = []
        long_scores = None
        for t in range(tokens - 1, -1, -1):
            exit_score = torch.where(lengths == t + 1, scores.last, NEVER)
            if begin_scores:
                exit_score = torch.where(lengths > t + 1, step(begin_scores[-1]), exit_score)
            exit_scores.append(exit_score)
            end_scores.append(exit_score + end[t])
            alternatives = torch.stack(end_scores[-places.longest :][::-1], 1) + inner[t]
            if tokens - t > places.longest:
                end_score = end_scores[-places.longest - 1]
                long_scores = end_score if long_scores is None else torch.logaddexp(long_scores, end_score)
                alternatives = torch.cat([alternatives, (long_scores + scores.long).unsqueeze(1)], 1)
            begin_scores.append(torch.logsumexp(alternatives, 1) + start[t])
        return Backward(torch.stack(begin_scores[::-1], 1), torch.stack(exit_scores[::-1], 1))


def place_posteriors(scores: SegmentScores, forward: Forward, backward: Backward) -> Tensor:
    """The probability of a segment of each kind in each place, `(batch, place, kind)`; without longer segments."""
    places = scores.places
    beginnings = forward.entry + scores.start - forward.log_z[:, None, None]
    endings = scores.end + backward.exit
    return torch.exp(beginnings[:, places.start] + scores.inner + endings[:, places.end - 1])
