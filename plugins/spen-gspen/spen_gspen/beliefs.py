"""Beliefs of a star: probabilities of its labels and pairs, and their entropy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from spen_plugins.nn import Star


@dataclass(frozen=True)
class Beliefs:
    """Beliefs μ of a distribution over a star: exactly those of some potentials θ, p ∝ exp(⟨θ, y⟩).

    They are the argument of `StarGraph.belief_energy`, as relaxed outputs are the argument of `Energy.forward`.

    Args:
        natural: θ, a `Star`.
    """

    natural: Star

    @cached_property
    def labels(self) -> Tensor:
        """P(y_i = 1), `(batch, label)`."""
        return self.natural.marginals()

    @cached_property
    def pairs(self) -> Tensor:
        """P(y_h = 1, y_i = 1), `(batch, hub, label)`."""
        star = self.natural
        weights, conditionals = star.condition()
        with torch.autocast(weights.device.type, enabled=False):
            return torch.einsum("bv,vh,bvl->bhl", weights, star.values, conditionals)

    def expect(self, potentials: Star) -> Tensor:
        """⟨potentials, μ⟩, the expectation of a star's exponent with the same hubs, `(batch,)`."""
        return (potentials.scores * self.labels).sum(1) + (potentials.between * self.pairs).sum((1, 2))

    def entropy(self) -> Tensor:
        """H(p) in nats, `(batch,)`: ln Z(θ) − ⟨θ, μ⟩."""
        return self.natural.log_z() - self.expect(self.natural)
