"""Logic over probabilities: truth values are logarithms, from ln 1e-6 for false to 0 for true (Li et al. 2020)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

import spen_plugins as sp

SMALLEST = 1e-6
"""Probability of a false statement: a violated clause counts at most −ln 1e-6 = 13.8."""
FALSE = math.log(SMALLEST)


class Constraint(sp.Energy):
    """An energy without parameters: the violation of a rule by y, 0 for discrete outputs that satisfy it.

    A clause a ⇒ b counts max(0, ln a − ln b), an implication of product logic.
    """

    class Config(sp.Config):
        logic: Literal["godel", "product"] = "godel"
        """Value of "and": "godel", the smallest of the parts (Li et al. 2020), so that the one worst violation has the
        gradient; "product", their product, so that each has a part of it."""

    config: Config

    def all_of(self, values: Tensor) -> Tensor:
        """The "and" over the last axis, `(…, value)` -> `(…)`."""
        return values.sum(-1).clamp(min=FALSE) if self.config.logic == "product" else values.amin(-1)

    def all_others(self, values: Tensor) -> Tensor:
        """For each place of the last axis, the "and" of all other places, of the shape of `values`; true where there
        is no other."""
        if values.shape[-1] < 2:
            return torch.zeros_like(values)
        if self.config.logic == "product":
            return (values.sum(-1, keepdim=True) - values).clamp(FALSE, 0)
        smallest = values.topk(2, largest=False)
        places = torch.arange(values.shape[-1], device=values.device)
        is_smallest = places == smallest.indices[..., :1]
        return torch.where(is_smallest, smallest.values[..., 1:], smallest.values[..., :1])


def log_truth(probabilities: Tensor) -> Tensor:
    """ln p, at least ln 1e-6, of the shape of `probabilities`."""
    return torch.log(probabilities.clamp(SMALLEST, 1))


def violation(premise: Tensor, conclusion: Tensor) -> Tensor:
    """max(0, premise − conclusion): how much truer a clause's premise is than its conclusion, of the shape
    of both, broadcast."""
    return (premise - conclusion).clamp(min=0)
