"""Objectives of the minimax game of an energy and inference nets: margin, perceptron, …, and the compound objective."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

import spen_plugins as sp
from spen_infnet.cost_nets import Stacked
from spen_plugins.nn import CompoundObjective, MarginCost, margin_cost, to_minimise


class GameConfig(sp.Config):
    """Settings of all objectives."""

    cost: MarginCost = "l1"
    """Δ: the L1 distance summed over variables, as in the paper; the same divided by the number of variables (of
    tokens, for sequences); or 1 − the soft score."""
    truncate_nets: bool = False
    """If true, the nets' objective is truncated at zero too (Tu & Gimpel 2018)."""


class Hinge(sp.EnergyLoss, ABC):
    """[h(Δ, E(x, ŷ), E(x, y))]₊ with ŷ an inference net's output; subclasses define h.

    Θ minimises it, always truncated at zero. The net maximises it, by default without the truncation (Tu et al. 2020,
    Sec. 4.1): an untrained net has outputs of high energy, where the truncated loss has no gradient.
    """

    Config = GameConfig
    config: Any

    def terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """The energy's loss, `(batch,)`; zero in rows without gold."""
        if batch.gold is None:
            return {"hinge": 0 * energy(proposal.mean)[:, 0]}
        violation, _ = self._compare(energy, batch, proposal)
        return {"hinge": F.relu(violation) * batch.labelled}

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """The net's loss, `(batch,)`; in rows without gold E(x, ŷ)."""
        if batch.gold is None:
            return {"energy": energy(proposal.mean)[:, 0]}
        violation, net_energy = self._compare(energy, batch, proposal)
        return {"energy": torch.where(batch.labelled, to_minimise(violation, self.config.truncate_nets), net_energy)}

    def measures(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        return {} if batch.gold is None else measure_game(energy, batch, proposal, self.config.cost)

    def _compare(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> tuple[Tensor, Tensor]:
        """h and E(x, ŷ), `(batch,)` each."""
        net_energy, gold_energy = energy(torch.cat([proposal.mean, batch.gold], 1)).unbind(1)
        cost = margin_cost(self.space, proposal.mean, batch.gold, batch.x.mask, self.config.cost)[:, 0]
        return self._compute_violation(cost, net_energy, gold_energy), net_energy

    @abstractmethod
    def _compute_violation(self, cost: Tensor, net_energy: Tensor, gold_energy: Tensor) -> Tensor:
        """h of Δ, E(x, ŷ) and E(x, y), `(batch,)` each."""


def measure_game(energy: sp.BoundEnergy, batch: sp.Batch, augmenting: sp.Proposal, cost: MarginCost) -> sp.Terms:
    """l1 = Δ − E(x, ŷ) and l0 = [l1 + E(x, y)]₊ of Tu et al. (2020), Sec. 4.3, `(batch,)` each, whatever the objective
    is; zero in rows without gold."""
    y = augmenting.mean
    net_energy, gold_energy = energy(torch.cat([y, batch.gold], 1)).unbind(1)
    l1 = margin_cost(augmenting.space, y, batch.gold, batch.x.mask, cost)[:, 0] - net_energy
    return {"l1": l1 * batch.labelled, "l0": F.relu(l1 + gold_energy) * batch.labelled}


class Margin(Hinge):
    """Margin-rescaled: [Δ(F(x), y) − E(x, F(x)) + E(x, y)]₊ (Tu & Gimpel 2018; Tu et al. 2020, Eq. 4).

    The single net learns cost-augmented inference; the trainer's `finetune` adapts it to test-time inference.
    """

    def _compute_violation(self, cost: Tensor, net_energy: Tensor, gold_energy: Tensor) -> Tensor:
        return cost - net_energy + gold_energy


class Perceptron(Hinge):
    """[−E(x, A(x)) + E(x, y)]₊ (Tu et al. 2020, Eq. 5, the second part): no Δ, so the net is the test-time net."""

    def _compute_violation(self, cost: Tensor, net_energy: Tensor, gold_energy: Tensor) -> Tensor:
        return gold_energy - net_energy


class Contrastive(Hinge):
    """[m − E(x, F(x)) + E(x, y)]₊ with a fixed margin m (Tu & Gimpel 2018)."""

    class Config(GameConfig):
        margin: float = Field(1.0, ge=0)
        """m, in units of the energy."""

    def _compute_violation(self, cost: Tensor, net_energy: Tensor, gold_energy: Tensor) -> Tensor:
        return self.config.margin - net_energy + gold_energy


class Slack(Hinge):
    """Slack-rescaled: Δ(F(x), y) · [1 − E(x, F(x)) + E(x, y)]₊ (Tsochantaridis et al. 2004; Tu & Gimpel 2018)."""

    def _compute_violation(self, cost: Tensor, net_energy: Tensor, gold_energy: Tensor) -> Tensor:
        return cost * (1 - net_energy + gold_energy)


class Compound(sp.EnergyLoss):
    """`CompoundObjective`, and w times the cross entropy of F for the nets (Tu et al. 2020, Eq. 6).

    `cost_net` chooses F: `infnet.stacked` (the default), `infnet.shared`, `infnet.separated` or another.
    """

    parts: ClassVar = {"cost_net": "cost_net"}

    class Config(GameConfig):
        perceptron_weight: float = Field(1.0, ge=0)
        """λ of Eq. 6; 10 in the authors' code."""
        cost_net_cross_entropy: float = Field(0.0, ge=0)
        """w, weight of F's own cross entropy, summed over variables; that of A is the trainer's."""

    def __init__(
        self,
        config: Any,
        task: sp.Task,
        features: sp.FeatureNetwork | None = None,
        cost_net: sp.CostNet | None = None,
    ) -> None:
        super().__init__(config, task, features)
        self.cost_net = cost_net if cost_net is not None else Stacked(Stacked.Config(), task)
        self.objective = CompoundObjective(config.cost, config.perceptron_weight, config.truncate_nets)

    def terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        return self.objective.energy_terms(energy, batch, proposal, self.cost_net)

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        augmenting = None if batch.gold is None else self.cost_net(batch, proposal)
        terms = self.objective.net_terms(energy, batch, proposal, augmenting)
        weight = self.config.cost_net_cross_entropy
        if weight and augmenting is not None:
            return {**terms, "cost_net_cross_entropy": -weight * augmenting.log_prob(batch.gold)[:, 0] * batch.labelled}
        return terms

    def measures(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        if batch.gold is None:
            return {}
        return measure_game(energy, batch, self.cost_net(batch, proposal), self.config.cost)
