"""The k best of exponentially many outputs: list Viterbi for sequences, a beam for independent labels. Both exact.

If fewer than k outputs exist, the remaining rows have score −∞ and repeat the best output.
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
        predecessors = (best[:, None, :, 0] + backwards).topk(min(k, tags), 2).indices[:, :, places]
        source = predecessors * k + ranks
        path_scores = best.flatten(1).gather(1, source.flatten(1)).view_as(source)
        value, index = (path_scores + backwards.expand(len(best), -1, -1).gather(2, predecessors)).topk(k, 2)
        return value, source.gather(2, index)

    return _find_paths(scores, mask, start, end, step, k)


def span_k_best(scores: Tensor, mask: Tensor | None, links: SpanLinks, k: int) -> tuple[Tensor, Tensor]:
    """`chain_k_best` under a scheme's transitions, in time linear in the number of tags; empty links mean no scheme."""
    inner, opening, within, unfinished = (indices.to(scores.device) for indices in links)
    tags = scores.shape[-1]
    start, end = scores.new_zeros(tags).index_fill(0, inner, IMPOSSIBLE), scores.new_zeros(tags)
    end = end.index_fill(0, unfinished, IMPOSSIBLE)
    duplicate_scores = torch.where(opening == within, IMPOSSIBLE, 0.0).to(scores)[:, None]
    rank = torch.arange(k, device=scores.device)
    sources = torch.cat([within[:, None] * k + rank, opening[:, None] * k + rank], 1)

    def step(best: Tensor) -> tuple[Tensor, Tensor]:
        top_value, source = (best + end[:, None]).flatten(1).topk(k, 1)
        b = len(best)
        value, source = (part[:, None].expand(b, tags, k) for part in (top_value, source))
        inner_value, index = torch.cat([best[:, within], best[:, opening] + duplicate_scores], 2).topk(k, 2)
        value = value.index_copy(1, inner, inner_value)
        return value, source.index_copy(1, inner, sources.expand(b, -1, -1).gather(2, index))

    return _find_paths(scores, mask, start, end, step, k)


def _find_paths(
    scores: Tensor, mask: Tensor | None, start: Tensor, end: Tensor, step: Step, k: int
) -> tuple[Tensor, Tensor]:
    """The k best paths under `step`, with a loop over positions only."""
    b, length, tags = scores.shape
    best = scores.new_full((b, tags, k), IMPOSSIBLE)
    best[:, :, 0] = start + scores[:, 0]
    self_pointers = torch.arange(tags * k, device=scores.device).view(tags, k)
    pointers = []
    for t in range(1, length):
        value, source = step(best)
        value = value + scores[:, t, :, None]
        if mask is not None:  # after the end a path is constant
            is_token = mask[:, t, None, None]
            value, source = torch.where(is_token, value, best), torch.where(is_token, source, self_pointers)
        best = value
        pointers.append(source.flatten(1))
    total, state = (best + end[:, None]).flatten(1).topk(k, 1)
    state = torch.where(total == IMPOSSIBLE, state[:, :1], state)
    path = [state // k]
    for source in reversed(pointers):
        state = source.gather(1, state)
        path.append(state // k)
    paths = torch.stack(path[::-1], 2)
    return (paths if mask is None else paths * mask.unsqueeze(1)), total


def cheapest_flips(costs: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k cheapest sets of variables to flip, the empty one first, with additive, non-negative costs.

    Shapes: costs `(batch, variable)`; returns boolean `(batch, k, variable)` and total costs `(batch, k)`, ∞ where
    fewer than k sets exist.
    """
    b, variables = costs.shape
    # A set with the j-th cheapest variable costs no less than j others: the k best use the first k − 1 variables only.
    cost, variable = costs.topk(min(k - 1, variables), largest=False)
    total = costs.new_full((b, k), -IMPOSSIBLE)
    total[:, 0] = 0
    flips = torch.zeros(b, k, cost.shape[1], dtype=torch.bool, device=costs.device)
    for i in range(cost.shape[1]):
        total, index = torch.cat([total, total + cost[:, i, None]], 1).topk(k, largest=False)
        flips = flips.gather(1, (index % k).unsqueeze(2).expand_as(flips))
        flips[:, :, i] = index >= k
    flips &= total.isfinite().unsqueeze(2)
    chosen = torch.zeros(b, k, variables, dtype=torch.bool, device=costs.device)
    return chosen.scatter_(2, variable.unsqueeze(1).expand_as(flips), flips), total
