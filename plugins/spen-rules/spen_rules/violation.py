"""Energy loss `rules.violation`: a fixed energy teaches the net, on examples with and without gold."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

import spen_plugins as sp


class Violation(sp.EnergyLoss):
    """The net minimises E(x, y) at its own relaxed output; the loss of the energy is its value at gold.

    Energies of spen-rules have no parameters to learn; the energy of gold is then a measure, beside that of the net.
    """

    class Config(sp.Config):
        of: Literal["marginals", "emissions"] = "marginals"
        """The output that the energy judges: "marginals", the probabilities of each variable; "emissions", the softmax
        of a CRF's emissions, as in structured tuning (Li et al. 2020). They differ for CRFs alone."""

    config: Config

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if batch.gold is None:
            return proposal.logits.new_zeros(len(batch))
        return energy(batch.gold)[:, 0] * batch.labelled

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        output = proposal.mean
        if self.config.of == "emissions":
            output = proposal.space.relax(proposal.logits, batch.x.mask)
        return {"violation": energy(output)[:, 0]}

    def measures(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        return {"violation of gold": self(energy, batch, proposal)}
