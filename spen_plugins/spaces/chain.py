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
        step = _steps(chain.transitions)
        alpha = chain.start + emissions[:, 0]
        rows = [alpha]
        for t in range(1, emissions.shape[1]):
            alpha = torch.where(mask[:, t, None], step(alpha) + emissions[:, t], alpha)
            rows.append(alpha)
        return torch.stack(rows, 1)


def backward_scores(emissions: Tensor, mask: Tensor, chain: Chain) -> Tensor:
    """ln β_t(tag): the sum over all endings after a tag, the end's score included; shapes as `forward_scores`."""
    with torch.autocast(emissions.device.type, enabled=False):
        step = _steps(chain.transitions.t())
        beta = chain.end.expand(emissions.shape[0], -1)
        rows = [beta]
        for t in range(emissions.shape[1] - 1, 0, -1):
            beta = torch.where(mask[:, t, None], step(beta + emissions[:, t]), beta)
            rows.append(beta)
        return torch.stack(rows[::-1], 1)


def _steps(transitions: Tensor) -> Callable[[Tensor], Tensor]:
    """Scores `(batch, tag)` -> ln Σ_i exp(scores_i + A_ij) `(batch, tag)`.

    One matrix product of exponentials, scaled to be at most 1: in float64 if transitions are so far apart that a sum
    may underflow, and if it may in float64, too, in log space, which takes many times longer.
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
    """The dtype, its own or float64, in which sums of scaled exponentials of transitions lose no precision; None: none.

    A sum has the term of the likeliest tag, exp(A_ij − max A), whatever the scores. Terms that underflow are below the
    smallest number, so they don't matter if that term is larger by a factor of 10 / precision.
    """
    with torch.no_grad():
        least, most = transitions.aminmax()
        apart = float(most - least)
    wider = [] if transitions.device.type == "mps" else [torch.float64]
    infos = ((dtype, torch.finfo(dtype)) for dtype in (transitions.dtype, *wider))
    return next((dtype for dtype, info in infos if apart < math.log(info.eps / info.tiny / 10)), None)
