"""Energy losses: what trains the energy, and what the energy then asks of the nets."""

from __future__ import annotations

from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.component import Component
from spen_plugins.energy import BoundEnergy
from spen_plugins.spaces import Proposal


class EnergyLoss(Component):
    """L_E, and its counterpart for the nets. Losses return one number per example and never detach: the phase that
    runs them decides who moves."""

    def forward(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        """What the energy's parameters minimise, `(batch,)`."""
        raise NotImplementedError

    def net_term(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        """What the nets minimise, before λ, `(batch,)`: E(x, A(x)) unless a loss says otherwise."""
        return energy(proposal.mean)[:, 0]
