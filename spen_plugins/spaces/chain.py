"""Sums over all tag sequences of a linear chain, by forward and backward scores (Lafferty et al. 2001)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Chain(NamedTuple):
    """Transition scores of a chain: `transitions` `(tag, tag)` from row to column, `start` and `end` `(tag,)`."""

    transitions: Tensor
    start: Tensor
    end: Tensor

    def detach(self) -> Chain:
        """The same scores without gradient."""
        return Chain(*(scores.detach() for scores in self))


def forward_scores(emissions: Tensor, mask: Tensor, chain: Chain) -> Tensor:
    """ln α_t(tag): the sum over all beginnings that end in a tag; in full precision.

    Shapes: emissions `(batch, token, tag)`, mask `(batch, token)`; returns `(batch, token, tag)`, each row of padding
    a copy of the last token's.
    """
    with torch.autocast(emissions.device.type, enabled=False):
        step = make_step(chain.transitions)
        alpha = chain.start + emissions[:, 0]
        rows = [alpha]
        for t in range(1, emissions.shape[1]):
            alpha = torch.where(mask[:, t, None], step(alpha) + emissions[:, t], alpha)
            rows.append(alpha)
        return torch.stack(rows, 1)


def backward_scores(emissions: Tensor, mask: Tensor, chain: Chain) -> Tensor:
    """ln β_t(tag): the sum over all endings after a tag, the end's score included; shapes as `forward_scores`."""
    with torch.autocast(emissions.device.type, enabled=False):
        step = make_step(chain.transitions.t())
        beta = chain.end.expand(emissions.shape[0], -1)
        rows = [beta]
        for t in range(emissions.shape[1] - 1, 0, -1):
            beta = torch.where(mask[:, t, None], step(beta + emissions[:, t]), beta)
            rows.append(beta)
        return torch.stack(rows[::-1], 1)


def make_step(transitions: Tensor) -> Callable[[Tensor], Tensor]:
    """Returns the function from scores `(batch, tag)` to ln Σ_i exp(scores_i + A_ij) `(batch, tag)`.

    It is one matrix product of exponentials, scaled to be at most 1. It uses float64 if transitions are so far apart
    that a sum may underflow, and log space, which takes many times longer, if a sum may underflow in float64 too.
    """
    dtype = exact_dtype(transitions)
    if dtype is None:
        return lambda scores: torch.logsumexp(scores.unsqueeze(-1) + transitions, 1)
    shift = transitions.amax(0, keepdim=True).detach()
    factor = torch.exp((transitions - shift).to(dtype))

    def step(scores: Tensor) -> Tensor:
        top = scores.amax(-1, keepdim=True).detach()
        return torch.log(torch.exp((scores - top).to(dtype)) @ factor).to(scores.dtype) + top + shift

    return step


def exact_dtype(transitions: Tensor) -> torch.dtype | None:
    """The dtype in which sums of scaled exponentials lose no precision: that of `transitions`, float64, or None.

    Each sum contains the term of the likeliest tag, exp(A_ij − max A), whatever the scores. Terms that underflow are
    below the smallest number, so they don't matter if that term is larger by a factor of 10 / precision.
    """
    with torch.no_grad():
        lowest, highest = transitions.aminmax()
        spread = float(highest - lowest)
    wider_dtypes = [] if transitions.device.type == "mps" else [torch.float64]
    infos = ((dtype, torch.finfo(dtype)) for dtype in (transitions.dtype, *wider_dtypes))
    return next((dtype for dtype, info in infos if spread < math.log(info.eps / info.tiny / 10)), None)
