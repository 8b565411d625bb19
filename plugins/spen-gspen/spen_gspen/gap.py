"""The energy loss `gap`: the least loss-augmented energy of beliefs against the energy of gold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_gspen.beliefs import Beliefs
from spen_gspen.mirror import Mirror, find_beliefs, require_star
from spen_plugins.nn import require_label_sets


class Gap(sp.EnergyLoss):
    """E(x, y) − min_μ [E(x, μ) − λ Δ(μ, y)], with Δ the L1 distance of the labels (Graber & Schwing 2019).

    It is not truncated at 0. The gradient is that at the μ of the search (Danskin). Without the global term and
    with ε = 1 and λ = 0 it is −ln p(y | x) of the star.
    """

    class Config(sp.Config):
        cost: float = Field(1.0, ge=0)
        """λ, weight of Δ; the released code counts each wrong label twice."""
        mirror: Mirror = Mirror()
        """The search for μ."""

    config: Config

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_label_sets(self)

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        return self.gap(energy, batch, self.config.cost)

    def gap(self, energy: sp.BoundEnergy, batch: sp.Batch, cost: float) -> Tensor:
        """The loss with λ = `cost`, `(batch,)`; 0 in rows without gold."""
        graph, potentials = require_star(energy, "energy_loss 'gspen.gap'"), energy.features
        if batch.gold is None:
            return 0 * potentials.scores.sum(1)
        gold = batch.gold[:, 0].to(potentials.scores.dtype)
        augmented = replace(potentials, scores=potentials.scores + cost * (1 - 2 * gold))
        beliefs = Beliefs(find_beliefs(graph, augmented, self.config.mirror)[-1])
        distance = (beliefs.labels - gold).abs().sum(1)
        gap = energy(gold.unsqueeze(1))[:, 0] - graph.belief_energy(potentials, beliefs) + cost * distance
        return gap * batch.labelled
