"""The k best of exponentially many outputs: list Viterbi for sequences, a beam for independent labels. Both exact.

Fewer outputs than k may exist: the rest have score −∞ and repeat the best one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from spen_plugins.spaces.schemes import SpanLinks

Step = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Scores of the k best paths to each tag `(batch, tag, k)` -> scores of the k best extensions to each tag, and their
predecessors, as tag · k + rank; both `(batch, tag, k)`."""

IMPOSSIBLE = float("-inf")


def chain_k_best(
    scores: Tensor, mask: Tensor | None, transitions: Tensor, start: Tensor, end: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """The k best paths through additive scores (Seshadri & Sundberg 1994, the parallel list Viterbi algorithm).

    Shapes: as `viterbi`; returns tag indices `(batch, k, token)`, 0 on padding, and scores `(batch, k)`, best first.
    """
    tags = scores.shape[-1]
    backwards = transitions.t().contiguous()
    # Tags in the order of the best path through each: path r of the a-th tag is no better than the first paths of the a
    # tags before it and its own r better paths.
    pairs = [(a, r) for a in range(min(k, tags)) for r in range(k - a)]
    places, ranks = torch.tensor(pairs, device=scores.device).unbind(1)

    def step(best: Tensor) -> tuple[Tensor, Tensor]:
        nearest = (best[:, None, :, 0] + backwards).topk(min(k, tags), 2).indices[:, :, places]
        source = nearest * k + ranks
        reached = best.flatten(1).gather(1, source.flatten(1)).view_as(source)
        value, at = (reached + backwards.expand(len(best), -1, -1).gather(2, nearest)).topk(k, 2)
        return value, source.gather(2, at)

    return _find_paths(scores, mask, start, end, step, k)


def span_k_best(scores: Tensor, mask: Tensor | None, links: SpanLinks, k: int) -> tuple[Tensor, Tensor]:
    """`chain_k_best` under a scheme alone, in time linear in the tags; links without tags mean no scheme."""
    inner, opening, within, unfinished = (numbers.to(scores.device) for numbers in links)
    tags = scores.shape[-1]
    start, end = scores.new_zeros(tags).index_fill(0, inner, IMPOSSIBLE), scores.new_zeros(tags)
    end = end.index_fill(0, unfinished, IMPOSSIBLE)
    twice = torch.where(opening == within, IMPOSSIBLE, 0.0).to(scores)[:, None]
    rank = torch.arange(k, device=scores.device)
    sources = torch.cat([within[:, None] * k + rank, opening[:, None] * k + rank], 1)

    def step(best: Tensor) -> tuple[Tensor, Tensor]:
        top, source = (best + end[:, None]).flatten(1).topk(k, 1)
        b = len(best)
        value, source = (part[:, None].expand(b, tags, k) for part in (top, source))
        inside, at = torch.cat([best[:, within], best[:, opening] + twice], 2).topk(k, 2)
        value = value.index_copy(1, inner, inside)
        return value, source.index_copy(1, inner, sources.expand(b, -1, -1).gather(2, at))

    return _find_paths(scores, mask, start, end, step, k)


def _find_paths(
    scores: Tensor, mask: Tensor | None, start: Tensor, end: Tensor, step: Step, k: int
) -> tuple[Tensor, Tensor]:
    """The k best paths under `step`, with a loop over positions only."""
    b, length, tags = scores.shape
    best = scores.new_full((b, tags, k), IMPOSSIBLE)
    best[:, :, 0] = start + scores[:, 0]
    stay = torch.arange(tags * k, device=scores.device).view(tags, k)
    pointers = []
    for t in range(1, length):
        value, source = step(best)
        value = value + scores[:, t, :, None]
        if mask is not None:  # after the end a path is constant
            here = mask[:, t, None, None]
            value, source = torch.where(here, value, best), torch.where(here, source, stay)
        best = value
        pointers.append(source.flatten(1))
    total, place = (best + end[:, None]).flatten(1).topk(k, 1)
    place = torch.where(total == IMPOSSIBLE, place[:, :1], place)
    path = [place // k]
    for source in reversed(pointers):
        place = source.gather(1, place)
        path.append(place // k)
    paths = torch.stack(path[::-1], 2)
    return (paths if mask is None else paths * mask.unsqueeze(1)), total


def cheapest_flips(costs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k cheapest sets of variables to flip, the empty one first, with additive, non-negative costs.

    Shapes: costs `(batch, variable)`; returns boolean `(batch, k, variable)` and total costs `(batch, k)`, ∞ where
    fewer than k sets exist.
    """
    b, variables = costs.shape
    # For a set with the j-th cheapest variable j other sets cost no more: the k best use variables up to k − 1 only.
    cost, variable = costs.topk(min(k - 1, variables), largest=False)
    total = costs.new_full((b, k), -IMPOSSIBLE)
    total[:, 0] = 0
    flips = torch.zeros(b, k, cost.shape[1], dtype=torch.bool, device=costs.device)
    for i in range(cost.shape[1]):
        total, at = torch.cat([total, total + cost[:, i, None]], 1).topk(k, largest=False)
        flips = flips.gather(1, (at % k).unsqueeze(2).expand_as(flips))
        flips[:, :, i] = at >= k
    flips &= total.isfinite().unsqueeze(2)
    chosen = torch.zeros(b, k, variables, dtype=torch.bool, device=costs.device)
    return chosen.scatter_(2, variable.unsqueeze(1).expand_as(flips), flips), total
