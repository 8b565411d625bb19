"""Energy losses that contrast gold with samples of the net: NCE ranking and plain ranking."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_seal.samples import candidates, nothing


class Contrast(sp.Config):
    """What both losses take."""

    samples: int = Field(20, ge=1)
    """K, outputs drawn from the net for each example."""
    redraw: Literal["step", "round"] = "step"
    """step: draw anew at each update of the energy (as released). round: draw once and keep the samples with the
    proposal, which is made anew whenever the net has moved: they serve all `energy_steps` of one round."""
    sample: Literal["discrete", "continuous"] = "discrete"
    """Draw from the net's distribution, or relaxed outputs with Gaussian noise on the net's logits."""
    std: float = Field(1.0, gt=0)
    """The noise's deviation; continuous samples only."""


class Ranking(sp.EnergyLoss):
    """−ln of gold's share in Σ exp(−E) over gold and K samples (Lee et al. 2021, Eq. 10).

    Gold stands in the denominator too, as in the released code: the papers' sum from k = 1 is unbounded below.
    """

    Config = Contrast
    config: Contrast

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if batch.gold is None:
            return nothing(energy, proposal)
        y = self._candidates(batch, proposal)
        return gold_surprise(-energy(y)) * batch.labelled

    def _candidates(self, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        c = self.config

        def draw() -> Tensor:
            return candidates(batch.gold, proposal, c.samples, c.sample, c.std)

        return draw() if c.redraw == "step" else proposal.keep((id(self), "candidates"), draw)


class Nce(Ranking):
    """NCE ranking: −ln softmax of s = −E(x, y) − ln P_N(y | x) at gold, P_N the net (SEAL, Eq. 8 and 9).

    Gold stands in the denominator too, with its own ln P_N. The net's distribution is noise here: no gradient to it.
    """

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if batch.gold is None:
            return nothing(energy, proposal)
        y = self._candidates(batch, proposal)
        with torch.no_grad():
            noise = proposal.log_prob(y)
        return gold_surprise(-energy(y) - noise) * batch.labelled


def gold_surprise(scores: Tensor) -> Tensor:
    """−ln softmax(scores) at the first column: `(batch, 1 + sample)` -> `(batch,)`."""
    scores = scores - scores.detach().amax(1, keepdim=True)
    # A share under e^-60 is nothing at any precision, but its gradient would be a denormal number, and those make the
    # energy's backward pass three times slower on a CPU.
    return scores.clamp(min=-60).logsumexp(1) - scores[:, 0]
