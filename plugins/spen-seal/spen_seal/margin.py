"""Margin losses: the hinge of the paper, and the compound objective of the released code."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.nn import MarginCost, margin_cost, output_size
from spen_seal.samples import nothing


class Margin(sp.EnergyLoss):
    """[Δ(ŷ, y) − E(x, ŷ) + E(x, y)]₊ with ŷ the net's output (Lee et al. 2022, Eq. 6).

    The net minimises E(x, ŷ) alone, without Δ and without truncation, as in the paper.
    """

    class Config(sp.Config):
        cost: MarginCost = "mean_l1"
        """Δ: the L1 distance divided by the number of labels (of tokens, for sequences), as released; its sum;
        or 1 − the soft score."""

    config: Config

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if batch.gold is None:
            return nothing(energy, proposal)
        y, gold = proposal.mean, batch.gold
        wrong, right = energy(torch.cat([y, gold], 1)).unbind(1)
        cost = margin_cost(self.space, y, gold, batch.x.mask, self.config.cost)[:, 0]
        return F.relu(cost - wrong + right) * batch.labelled


class StackedCostNet(sp.CostNet):
    """F(x, y*): two layers on [ŷ ; gold], per token for sequences, softplus between them.

    The gradient stops before the test-time net (Tu et al. 2020, stacked): training F does not change A.
    """

    def __init__(self, config: sp.Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        size = output_size(self)
        self.layers = nn.Sequential(nn.Linear(2 * size, size), nn.Softplus(), nn.Linear(size, size))

    def forward(self, batch: sp.Batch, proposal: sp.Proposal) -> sp.Proposal:
        logits = self.layers(torch.cat([proposal.mean.detach(), batch.gold], -1))
        return self.space.independent(logits, batch.x.mask)


class CompoundMargin(sp.EnergyLoss):
    """The margin loss in the code of Lee et al. (2022): the compound objective of Tu et al. (2020, Eq. 6), stacked F.

    With A the test-time net's output, F the cost-augmented net's and w the perceptron's weight,

        Θ minimises   [Δ(F, y) − E(x, F) + E(x, y)]₊ + w·[E(x, y) − E(x, A)]₊
        the nets      −(Δ(F, y) − E(x, F)) + w·E(x, A)

    Truncated for Θ only. Without gold there is no F, and the nets minimise w·E(x, A).
    """

    class Config(sp.Config):
        cost: MarginCost = "mean_l1"
        """Δ: the L1 distance divided by the number of labels (of tokens, for sequences), as released; its sum;
        or 1 − the soft score."""
        perceptron_weight: float = Field(1.0, ge=0)
        """w; 0.001 to 0.01 in the released configs."""

    config: Config

    def __init__(self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.cost_net = StackedCostNet(sp.Config(), task)

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if batch.gold is None:
            return nothing(energy, proposal)
        augmented, gold = self.cost_net(batch, proposal).mean, batch.gold
        cost = margin_cost(self.space, augmented, gold, batch.x.mask, self.config.cost)[:, 0]
        violating, right, predicted = energy(torch.cat([augmented, gold, proposal.mean], 1)).unbind(1)
        hinge = F.relu(cost - violating + right)
        return (hinge + self.config.perceptron_weight * F.relu(right - predicted)) * batch.labelled

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        weight = self.config.perceptron_weight
        if batch.gold is None:
            return {"energy": weight * energy(proposal.mean)[:, 0]}
        augmented = self.cost_net(batch, proposal).mean
        cost = margin_cost(self.space, augmented, batch.gold, batch.x.mask, self.config.cost)[:, 0]
        violating, predicted = energy(torch.cat([augmented, proposal.mean], 1)).unbind(1)
        return {"energy": (violating - cost) * batch.labelled + weight * predicted}
