"""Energy losses: what trains the energy, and what the energy then asks of the nets."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.component import Component
from spen_plugins.energy import BoundEnergy
from spen_plugins.spaces import Proposal

Terms = Mapping[str, Tensor]
"""Named parts of a loss, each `(batch,)` and already weighted; who learns from them minimises the mean of their sum."""


class EnergyLoss(Component):
    """L_E, and its counterpart for the nets.

    A loss of one part implements `forward`; one of several implements `terms` instead. `net_terms` and `measures` have
    defaults. All give one number per example, 0 in rows without gold (but for `net_terms`), and never detach: the phase
    that runs them decides who moves.
    """

    def forward(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        """The energy's loss where it has one part, `(batch,)`."""
        raise NotImplementedError(f"{type(self).__name__} has neither forward nor terms; implement one of them")

    def terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        """What the energy's parameters minimise, by parts; `forward` alone unless a loss has several."""
        return {"energy_loss": self(energy, batch, proposal)}

    def net_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        """What the nets minimise, by parts and before λ: E(x, A(x)) unless a loss says otherwise."""
        return {"energy": energy(proposal.mean)[:, 0]}

    def measures(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        """What is logged beside the terms of the energy's phase; nobody learns from it."""
        return {}
