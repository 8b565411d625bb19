"""Entropy of relaxed outputs."""

from __future__ import annotations

import torch
from torch import Tensor

from spen_plugins.spaces import OutputSpace


def entropy(space: OutputSpace, y: Tensor) -> Tensor:
    """Σ_i H(y_i) of relaxed outputs as distributions of independent variables, `(batch, sample)`; 0 on padding.

    Twice differentiable: where a probability is 0, as on padding, its slope is 0.

    Args:
        space: the output space; a discrete one.
        y: `(batch, sample, *variables)`.
    """
    parts = _part(y)
    if not space.simplex:
        parts = parts + _part(1 - y)
    return parts.flatten(2).sum(-1)


def _part(p: Tensor) -> Tensor:
    """−p ln p. At 0 its slope is infinite, even under a mask; here it is 0, as for the smallest numbers, whose second
    derivative −1 / p is too large."""
    return torch.special.entr(torch.where(p >= torch.finfo(p.dtype).tiny, p, 1.0))
