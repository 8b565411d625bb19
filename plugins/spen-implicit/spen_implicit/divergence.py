"""Energy loss `cd`: gold against samples of the net, which cost what they have wrong (Shankar & Piratla)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import MarginCost, margin_cost


class ContrastiveDivergence(sp.EnergyLoss):
    """−ln of gold's share in exp(−E(y)) + Σ_k exp(−E(ȳ_k) + Δ_k), over K outputs ȳ_k of the net.

    The paper prints it without the minus, and calls Δ, the cost of an output, its score s. With one output it is the
    hinge of the margin loss made smooth, softplus(Δ + E(y) − E(ȳ)).
    """

    class Config(sp.Config):
        samples: int = Field(20, ge=1)
        """K, the number of the net's outputs for each example; one if they are `soft`."""
        outputs: Literal["relaxed", "straight", "soft", "discrete"] = "relaxed"
        """Relaxed samples, with a gradient to the net; the same rounded, with their gradient (straight-through); the
        net's relaxed output itself; or discrete samples, without gradient."""
        temperature: float = Field(1.0, gt=0)
        """Of relaxed samples; a low one makes them nearly discrete, and their gradient large."""
        cost: MarginCost = "score"
        """Δ: 1 − the soft score; or the L1 distance, summed or divided by the number of variables."""

    config: Config

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        y, gold = self._outputs(proposal), batch.gold
        cost = margin_cost(self.space, y, gold, batch.x.mask, self.config.cost)
        scores = -energy(torch.cat([gold.to(y), y], 1))
        scores = torch.cat([scores[:, :1], scores[:, 1:] + cost], 1)
        return (scores.logsumexp(1) - scores[:, 0]) * batch.labelled

    def _outputs(self, proposal: sp.Proposal) -> Tensor:
        """ȳ, `(batch, K, *variables)`."""
        config = self.config
        if config.outputs == "soft":
            return proposal.mean
        if config.outputs == "discrete":
            return proposal.sample(config.samples)
        y = proposal.rsample(config.samples, config.temperature)
        if config.outputs == "relaxed":
            return y
        return y + (self.space.round(y, proposal.mask) - y).detach()
