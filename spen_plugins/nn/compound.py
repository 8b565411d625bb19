"""The compound objective of an energy, a test-time net and a cost-augmented net."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.batch import Batch
from spen_plugins.energy import BoundEnergy
from spen_plugins.energy_loss import Terms
from spen_plugins.inference_net import CostNet
from spen_plugins.nn.cost import MarginCost, margin_cost
from spen_plugins.spaces import Proposal


@dataclass(frozen=True)
class CompoundObjective:
    """The compound objective (Tu et al. 2020, Eq. 6): a margin for a cost-augmented net F, a perceptron for A.

        Θ minimises    [Δ(F, y) − E(x, F) + E(x, y)]₊ + λ [E(x, y) − E(x, A)]₊
        the nets       −(Δ(F, y) − E(x, F)) + λ E(x, A)

    Terms are `(batch,)` each. Without gold there is no F, Θ has no loss, and the nets minimise λ E(x, A).

    Args:
        cost: Δ, as of `margin_cost`.
        perceptron_weight: λ.
        truncate_nets: if true, the nets' objective is truncated at zero too (Tu & Gimpel 2018).
    """

    cost: MarginCost
    perceptron_weight: float
    truncate_nets: bool = False

    def energy_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal, cost_net: CostNet) -> Terms:
        """The energy's loss: `margin` and `perceptron`, 0 in rows without gold."""
        if batch.gold is None:
            return {"margin": 0 * energy(proposal.mean)[:, 0]}
        augmenting = cost_net(batch, proposal)
        wrong, right, predicted = energy(torch.cat([augmenting.mean, batch.gold, proposal.mean], 1)).unbind(1)
        return {
            "margin": F.relu(self._cost(batch, augmenting) - wrong + right) * batch.labelled,
            "perceptron": self.perceptron_weight * F.relu(right - predicted) * batch.labelled,
        }

    def net_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal, augmenting: Proposal | None) -> Terms:
        """The nets' loss: `cost_augmented` and `test_time`.

        Args:
            energy, batch, proposal: as of `EnergyLoss.net_terms`.
            augmenting: the proposal of F; None without gold.
        """
        if augmenting is None:
            return {"test_time": self.perceptron_weight * energy(proposal.mean)[:, 0]}
        labelled = batch.labelled
        outputs = [augmenting.mean, proposal.mean, *([batch.gold] if self.truncate_nets else [])]
        wrong, predicted, *golds = energy(torch.cat(outputs, 1)).unbind(1)
        # Without truncation E(x, y) is constant for the nets.
        right = golds[0] if golds else 0.0
        violated = torch.where(labelled, to_minimise(right - predicted, self.truncate_nets), predicted)
        violation = self._cost(batch, augmenting) - wrong + right
        return {
            "cost_augmented": to_minimise(violation, self.truncate_nets) * labelled,
            "test_time": self.perceptron_weight * violated,
        }

    def _cost(self, batch: Batch, augmenting: Proposal) -> Tensor:
        return margin_cost(augmenting.space, augmenting.mean, batch.gold, batch.x.mask, self.cost)[:, 0]


def to_minimise(violation: Tensor, truncate: bool) -> Tensor:
    """The nets' objective that maximises a violation: minus it, truncated at zero or not."""
    return -F.relu(violation) if truncate else -violation
