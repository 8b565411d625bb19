"""The energy loss `margin`: hinges at a net's output, at its refinement, and between the two."""

from __future__ import annotations

from functools import partial

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

import spen_plugins as sp
from spen_alen.refine import Refinement
from spen_plugins.nn import MarginCost, margin_cost, minimise


class Margin(sp.EnergyLoss):
    """The mean of [Δ(ŷ, y) − E(x, ŷ) + E(x, y)]₊ over three ŷ near a net's output A(x) (ALEN: Pan et al. 2020).

    The ŷ are A(x); y_K, found by K steps of descent on E − Δ from A(x); and the midpoint of both. y_K is data: no
    gradient goes through the descent. The net minimises E(x, A(x)) − Δ(A(x), y) + ρ ‖A(x) − y_K‖², which makes it the
    generator of offending outputs. With K = 0 all ŷ are A(x), and both losses are those of one cost-augmented net (Tu
    & Gimpel 2018). In rows without gold the net minimises E and learns from the descent on E alone.
    """

    class Config(sp.Config):
        cost: MarginCost = "score"
        """Δ: 1 − the space's soft score; the L1 distance; or that divided by the number of variables (labels, tokens,
        pixels)."""
        refine: Refinement = Refinement()
        """The cost-augmented descent to y_K."""
        distance_weight: float = Field(1.0, ge=0)
        """ρ, weight of the squared distance to y_K, summed over variables, in the net's loss."""
        net_cost: bool = True
        """If true, the net minimises E − Δ, as the descent does; otherwise E, as prediction does."""

    config: Config

    def terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """The energy's loss, `(batch,)`; zero in rows without gold."""
        if batch.gold is None:
            return {"hinge": 0 * energy(proposal.mean)[:, 0]}
        y = proposal.mean
        if self.config.refine.steps:
            refined = self.find_offending(energy, batch, proposal)
            y = torch.cat([y, (y + refined) / 2, refined], 1)
        gold_energy, *net_energies = energy(torch.cat([batch.gold, y], 1)).unbind(1)
        cost = margin_cost(self.space, y, batch.gold, batch.x.mask, self.config.cost)
        hinges = F.relu(cost - torch.stack(net_energies, 1) + gold_energy.unsqueeze(1))
        return {"hinge": hinges.mean(1) * batch.labelled}

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """The net's loss, `(batch,)`: `energy`, and `distance` to the refined output."""
        value = self._augment(energy, batch, proposal.mean) if self.config.net_cost else energy(proposal.mean)
        terms = {"energy": value[:, 0]}
        if self.config.refine.steps and self.config.distance_weight:
            difference = proposal.mean - self.find_offending(energy, batch, proposal)  # 0 on padding
            terms["distance"] = self.config.distance_weight * difference.square().flatten(1).sum(1)
        return terms

    def measures(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """`gain`, the decrease of E − Δ by the refinement; zero in rows without gold."""
        if batch.gold is None or not self.config.refine.steps:
            return {}
        outputs = torch.cat([proposal.mean, self.find_offending(energy, batch, proposal)], 1)
        before, after = self._augment(energy, batch, outputs).unbind(1)
        return {"gain": (before - after) * batch.labelled}

    def find_offending(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        """y_K, `(batch, 1, *variables)`, without gradient."""
        objective = partial(self._augment, energy, batch)
        return minimise(objective, self.space, proposal.mean.detach(), batch.x.mask, self.config.refine).y

    def _augment(self, energy: sp.BoundEnergy, batch: sp.Batch, y: Tensor) -> Tensor:
        """E(x, y) − Δ(y, gold), `(batch, sample)`, without Δ in rows without gold."""
        if batch.gold is None:
            return energy(y)
        cost = margin_cost(self.space, y, batch.gold, batch.x.mask, self.config.cost)
        return energy(y) - cost * batch.labelled.unsqueeze(1)
