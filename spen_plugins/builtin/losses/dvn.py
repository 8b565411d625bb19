"""Energy loss `dvn`: σ(−E) learns to predict an output's score, on outputs found by the energy itself."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.builtin.losses.ssvm import read_net_output
from spen_plugins.energy import BoundEnergy
from spen_plugins.inference import descent
from spen_plugins.inference.descent import Descent, Start
from spen_plugins.nn import ValueLoss
from spen_plugins.settings.config import Config
from spen_plugins.spaces import Proposal

Tuple = Literal["gold", "inference", "adversarial"]


class Dvn(ValueLoss):
    """Cross entropy of σ(−E(x, ŷ)) against ŷ's soft score, over training tuples (Gygli et al. 2017, Sec. 3.2).

    Tuples: gold; the current result of gradient-based inference; and an adversarial output that ascends this
    loss, starting from gold in half of the examples (drawn anew each time) and from the first of `starts` in the rest.
    """

    class Config(Config):
        tuples: list[Tuple] = Field(default=["gold", "inference", "adversarial"], min_length=1)
        """Outputs that the energy learns to score."""
        descent: Descent = Descent(steps=20)
        """Gradient-based inference of outputs of low energy."""
        adversary: Descent = Descent(steps=1, pick="last")
        """Gradient ascent of the adversary on the loss."""
        starts: list[Start] = Field(default=["zeros"], min_length=1)
        """Starting points of inference; "net" is the output of the experiment's inference net."""
        random: int = Field(1, ge=1)
        """Number of starts for "random", drawn anew each time."""

    def forward(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        return self.value_loss(energy, batch, self.outputs(energy, batch, proposal)).mean(1) * batch.labelled

    def outputs(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        """The tuples' ŷ, `(batch, tuple, *variables)`, without gradient."""
        c, mask, gold = self.config, batch.x.mask, batch.gold
        net = read_net_output(c.starts, proposal)
        start = descent.starts(c.starts, self.space, gold, mask, c.random, net)
        tuples = {"gold": gold}
        if "inference" in c.tuples:
            tuples["inference"] = descent.minimise(energy, self.space, start, mask, c.descent).lowest().y
        if "adversarial" in c.tuples:
            here = torch.rand(len(batch), 1, *[1] * (gold.dim() - 2), device=gold.device) < 0.5
            start = torch.where(here, gold, start[:, :1])

            def climb(y: Tensor) -> Tensor:
                return -self.value_loss(energy, batch, y)

            tuples["adversarial"] = descent.minimise(climb, self.space, start, mask, c.adversary).y
        return torch.cat([tuples[name] for name in c.tuples], 1)
