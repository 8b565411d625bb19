"""Energy losses: the losses of the energy, and the energy's terms in the nets' losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.component import Component
from spen_plugins.energy import BoundEnergy
from spen_plugins.spaces import Proposal

Terms = Mapping[str, Tensor]
"""Named parts of a loss, each `(batch,)` and already weighted; the loss is the mean over examples of their sum."""


class EnergyLoss(Component):
    """L_E, the loss of the energy, and the energy's loss terms for the nets.

    A loss with one term implements `forward`, one with several implements `terms` instead. `net_terms` and `measures`
    have defaults. All return one number per example, 0 in rows without gold (except `net_terms`), and never detach: the
    phase decides which parameters are trained.
    """

    moves_with: ClassVar[Literal["nets", "energy"]] = "nets"
    """The player that trains this loss's own parameters: "nets", as for cost nets, or "energy", by its loss."""
    running: Tensor | None = None
    """Running sums over batches, if `net_terms` depend on such sums: saved with checkpoints, but not with the weights.
    The loop then rejects accumulation and several processes, because a batch's terms are not a sum over its parts."""

    def forward(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        """The energy's loss, if it has one term, `(batch,)`."""
        parts = "several parts: call terms" if type(self).terms is not EnergyLoss.terms else "neither forward nor terms"
        raise NotImplementedError(f"{type(self).__name__} has {parts}")

    def terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        """Terms that the energy's parameters minimise; by default the result of `forward`."""
        return {"energy_loss": self(energy, batch, proposal)}

    def net_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        """Terms that the nets minimise, before λ; by default E(x, A(x))."""
        return {"energy": energy(proposal.mean)[:, 0]}

    def measures(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        """Values logged with the terms of the energy's phase, without effect on training."""
        return {}

    def likelihoods(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        """Negative log-likelihoods of the gold outputs in nats, and measures of their estimate, `(batch,)` each, for
        the scores of a finished run; none by default, because not every loss makes exp(−E) an unnormalised density."""
        return {}
