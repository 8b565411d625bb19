"""The energy's weight by itself: λ1 that gives the energy a share of the gradient at the net's output."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

import spen_plugins as sp

DECAY = 0.98
"""Of the running means of norms: they are over about the last fifty updates."""
LARGEST = 1e6
"""λ1 of an energy whose gradient vanishes."""


class SharedLoss:
    """λ1 · net terms + λ2 · cross entropy, with λ1 from running means of both gradients' norms at the net's logits.

    λ1 = s / (1 − s) · mean ‖∂ λ2 CE / ∂ logits‖ / mean ‖∂ net terms / ∂ logits‖, so that the net terms' gradient has
    the share s of the sum of both norms, whatever the scale of the energy. The means are exponential and without bias:
    the first update has the ratio of its own batch.

    Args:
        share: s, above 0 and below 1.
        weight: λ2, above 0.
        per_variable: as of `sp.cross_entropy`.
    """

    def __init__(self, share: float, weight: float, per_variable: bool) -> None:
        self.share, self.weight, self.per_variable = share, weight, per_variable
        self._means, self._seen = [0.0, 0.0], 0

    def __call__(self, context: sp.Context) -> sp.Terms:
        terms = dict(sp.net_terms(context))
        cross_entropy = self.weight * sp.cross_entropy(context, self.per_variable)
        if context.training:
            self._see(sum(terms.values()), cross_entropy, context.proposal.logits)
        weight = self.energy_weight
        return {name: weight * term for name, term in terms.items()} | {"cross_entropy": cross_entropy}

    @property
    def energy_weight(self) -> float:
        """λ1; 0 before the first update, and while cross entropy has no gradient."""
        gold, energy = self._means
        if not gold:
            return 0.0
        return min(LARGEST, self.share / (1 - self.share) * gold / energy) if energy else LARGEST

    def measures(self, context: sp.Context) -> sp.Terms:
        """λ1, for the history."""
        return {"energy_weight": torch.tensor([self.energy_weight])}

    def state_dict(self) -> dict[str, Any]:
        return {"means": list(self._means), "seen": self._seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._means, self._seen = list(state["means"]), state["seen"]

    def _see(self, energy: Tensor, cross_entropy: Tensor, logits: Tensor) -> None:
        norms = [_measure_norm(term, logits) for term in (cross_entropy, energy)]
        if not all(map(math.isfinite, norms)):
            return  # the loop, or a scaler, sees what is wrong
        self._seen += 1
        kept = (DECAY - DECAY**self._seen) / (1 - DECAY**self._seen)
        gold_mean, energy_mean = self._means
        if norms[1]:  # an energy without a gradient for a while, a hinge, keeps its scale
            energy_mean = kept * energy_mean + (1 - kept) * norms[1] if energy_mean else norms[1]
        self._means = [kept * gold_mean + (1 - kept) * norms[0], energy_mean]


def _measure_norm(term: Tensor, logits: Tensor) -> float:
    """Norm of a term's gradient at the logits; 0 if it doesn't depend on them."""
    if not term.requires_grad:
        return 0.0
    [gradient] = torch.autograd.grad(term.sum(), [logits], retain_graph=True, allow_unused=True)
    return 0.0 if gradient is None else float(gradient.norm())
