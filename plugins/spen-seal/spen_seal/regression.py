"""Energy losses that train σ(−E) to predict an output's score (deep value networks, Gygli et al. 2017)."""

from __future__ import annotations

from abc import ABC
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import ValueLoss
from spen_seal.contrast import draw


class ScoreLoss(ValueLoss, ABC):
    """The sum over an example's outputs ŷ of the cross entropy of σ(−E(x, ŷ)) against ŷ's soft score s:

        −s ln σ(−E) − (1 − s) ln(1 − σ(−E))

    The net minimises −σ(−E), which is bounded: λ1 has another scale than with losses whose net term is E.

    In rows without gold, s is the output's `Rewards.reward`; without a reward, the loss of such a row is 0.
    """

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.task = task

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        y = self.outputs(energy, batch, proposal)
        needs_reward = isinstance(self.task, sp.Rewards) and not batch.labelled.all()
        if needs_reward and (rewards := self.task.reward(batch.x, y)) is not None:
            return self.value_loss(energy, batch, y, rewards).sum(1)
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        return self.value_loss(energy, batch, y).sum(1) * batch.labelled


class Regression(ScoreLoss):
    """The regression loss at the net's output ŷ (Lee et al. 2022, Eq. 7, its misprint corrected)."""

    def outputs(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        return proposal.mean


class SampledRegression(ScoreLoss):
    """Regression-s: the regression loss summed over ŷ and K − 1 outputs around it (Lee et al. 2022, Sec. 2.3)."""

    class Config(sp.Config):
        samples: int = Field(10, ge=1)
        """K, the number of outputs, ŷ included."""
        sample: Literal["continuous", "discrete"] = "continuous"
        """Samples: relaxed outputs with Gaussian noise on the net's logits, or draws from the net's distribution."""
        std: float = Field(1.0, gt=0)
        """Standard deviation of the noise; continuous samples only."""

    config: Config

    def outputs(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        c = self.config
        if c.samples == 1:
            return proposal.mean
        return torch.cat([proposal.mean, draw(proposal, c.samples - 1, c.sample, c.std)], 1)
