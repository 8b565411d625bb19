"""Energy loss `ssvm`: the structured hinge loss at an output found by gradient-based inference."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.batch import Batch
from spen_plugins.energy import BoundEnergy
from spen_plugins.energy_loss import EnergyLoss
from spen_plugins.inference import descent
from spen_plugins.inference.descent import Descent, Start
from spen_plugins.nn import MarginCost, margin_cost
from spen_plugins.settings.config import Config
from spen_plugins.spaces import Proposal


class Ssvm(EnergyLoss):
    """[Δ(ŷ, y) − E(x, ŷ) + E(x, y)]₊ at the ŷ where it is largest (Belanger & McCallum 2016, Eq. 8).

    ŷ is the lowest point of E − Δ that cost-augmented gradient-based inference finds from its starts. It is data to the
    loss: no gradient goes through the descent.
    """

    class Config(Config):
        cost: MarginCost = "mean_l1"
        """Δ: the L1 distance divided by the number of labels (of tokens, for sequences); its sum; or 1 − the space's
        soft score (soft F1 for labels)."""
        descent: Descent = Descent(steps=20)
        """Cost-augmented inference of ŷ."""
        starts: list[Start] = Field(default=["zeros"], min_length=1)
        """Starting points of inference; "net" is the output of the experiment's inference net."""
        random: int = Field(1, ge=1)
        """Number of starts for "random", drawn anew each time."""

    def forward(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        mask, gold, c = batch.x.mask, batch.gold, self.config

        def augmented(y: Tensor) -> Tensor:
            return energy(y) - margin_cost(self.space, y, gold, mask, c.cost)

        start = descent.starts(c.starts, self.space, gold, mask, c.random, read_net_output(c.starts, proposal))
        violating = descent.minimise(augmented, self.space, start, mask, c.descent).lowest().y
        return F.relu(energy(gold) - augmented(violating))[:, 0] * batch.labelled


def read_net_output(starts: list[Start], proposal: Proposal) -> Tensor | None:
    """The inference net's output if a descent starts from it, else None."""
    return proposal.mean.detach() if "net" in starts else None
