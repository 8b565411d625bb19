"""Reward of the fields of citations: the rules' votes on words, and the shape of a citation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

WEIGHTS = {"breaks": 0.4, "once": 0.3, "whole": 0.2, "begins": 0.1}
"""Shares of the terms about the shape; they sum to 1."""


@dataclass(frozen=True)
class Shape:
    """Numbers of the fields that may begin a citation, and groups of fields of which it should have one each."""

    first: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]


def reward(y: Tensor, mask: Tensor, votes: Tensor, breaks: Tensor, shape: Shape) -> Tensor:
    """The share of words that agree with rules, times the weighted mean of the other `terms`; arguments as there."""
    values = terms(y, mask, votes, breaks, shape)
    return values["words"] * sum(weight * values[name] for name, weight in WEIGHTS.items())


def terms(y: Tensor, mask: Tensor, votes: Tensor, breaks: Tensor, shape: Shape) -> dict[str, Tensor]:
    """The terms, `(batch, sample)` each, in [0, 1]; linear or bilinear in y up to ratios and minima.

    words: the share of tokens under a rule whose field the rule names. breaks: the share of changes of field that are
    at a break. once: 1 if no field comes twice, 0 if there are twice as many pieces as fields. whole: the share of the
    groups of fields that are present. begins: 1 if the first field is one of `shape.first`.

    Shapes: y `(batch, sample, token, field)`, zero on padding; mask `(batch, token)`; votes `(batch, token, field)`, 1
    for each field that the token's rule names, 0 without a rule; breaks `(batch, token)`, 1 where a field may begin.
    """
    covered = votes.amax(-1).sum(-1, keepdim=True)
    words = torch.einsum("bstk,btk->bs", y, votes)
    previous, current = y[:, :, :-1], y[:, :, 1:]
    # 1 − Σ y y' is the probability that two independent neighbours differ.
    changes = (1 - (previous * current).sum(-1)) * mask[:, None, 1:]
    at_breaks = (changes * breaks[:, None, 1:]).sum(-1)
    starts = y[:, :, 0] + (current * (1 - previous)).sum(2)
    present = starts.clamp(max=1)
    pieces, fields = starts.sum(-1), present.sum(-1)
    groups = [starts[..., list(group)].sum(-1).clamp(max=1) for group in shape.groups]
    ones = torch.ones_like(words)  # for a task without these fields
    return {
        "words": _compute_share(words, covered),
        "breaks": _compute_share(at_breaks, changes.sum(-1)),
        "once": (1 - _compute_share(pieces - fields, fields)).clamp(min=0),
        "whole": torch.stack(groups).mean(0) if groups else ones,
        "begins": y[:, :, 0, list(shape.first)].sum(-1) if shape.first else ones,
    }


def _compute_share(part: Tensor, total: Tensor) -> Tensor:
    """part / total, 1 where the total is 0."""
    is_positive = total > 1e-6
    return torch.where(is_positive, part / torch.where(is_positive, total, 1), 1)
