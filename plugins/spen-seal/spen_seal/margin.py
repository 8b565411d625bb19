"""Margin losses: the hinge of the paper, and the compound objective of the released code."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.nn import CompoundObjective, MarginCost, margin_cost, output_size


class MarginConfig(sp.Config):
    """Settings of both losses."""

    cost: MarginCost = "mean_l1"
    """Δ: the L1 distance divided by the number of labels (of tokens, for sequences), as released; its sum;
    or 1 − the soft score."""


class Margin(sp.EnergyLoss):
    """[Δ(ŷ, y) − E(x, ŷ) + E(x, y)]₊ with ŷ the net's output (Lee et al. 2022, Eq. 6).

    The net minimises E(x, ŷ) alone, without Δ and without truncation, as in the paper.
    """

    Config = MarginConfig
    config: MarginConfig

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        y, gold = proposal.mean, batch.gold
        net_energy, gold_energy = energy(torch.cat([y, gold], 1)).unbind(1)
        cost = margin_cost(self.space, y, gold, batch.x.mask, self.config.cost)[:, 0]
        return F.relu(cost - net_energy + gold_energy) * batch.labelled


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
    """The margin loss in the code of Lee et al. (2022): `CompoundObjective`, truncated for Θ only, with a stacked F."""

    class Config(MarginConfig):
        perceptron_weight: float = Field(1.0, ge=0)
        """λ; 0.001 to 0.01 in the released configs."""

    config: Config

    def __init__(self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.cost_net = StackedCostNet(sp.Config(), task)
        self.objective = CompoundObjective(config.cost, config.perceptron_weight)

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        return sum(self.objective.energy_terms(energy, batch, proposal, self.cost_net).values())

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        augmenting = None if batch.gold is None else self.cost_net(batch, proposal)
        return {"energy": sum(self.objective.net_terms(energy, batch, proposal, augmenting).values())}
