"""Losses that teach σ(−E) the score of an output, as deep value networks learn (Gygli et al. 2017)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.batch import Batch
from spen_plugins.energy import BoundEnergy
from spen_plugins.energy_loss import EnergyLoss, Terms
from spen_plugins.spaces import Proposal


class ValueLoss(EnergyLoss, ABC):
    """Cross entropy of σ(−E(x, ŷ)) against ŷ's soft score, over some outputs ŷ of each example."""

    @abstractmethod
    def outputs(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        """The outputs whose scores are learned, `(batch, sample, *variables)`."""

    def net_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        """−σ(−E), the negative predicted score."""
        return {"energy": -torch.sigmoid(-energy(proposal.mean)[:, 0])}

    def value_loss(self, energy: BoundEnergy, batch: Batch, y: Tensor, rewards: Tensor | None = None) -> Tensor:
        """−s ln σ(−E) − (1 − s) ln(1 − σ(−E)) of each output: `(batch, sample)`.

        s is its soft score against gold; in rows without gold its reward, of `rewards` `(batch, sample)`.
        """
        scores = rewards if batch.gold is None else self.space.score(y, batch.gold, batch.x.mask)
        if batch.gold is not None and rewards is not None:
            scores = torch.where(batch.labelled.unsqueeze(1), scores, rewards)
        return F.binary_cross_entropy_with_logits(-energy(y), scores, reduction="none")
