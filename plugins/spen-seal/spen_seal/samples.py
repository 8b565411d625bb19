"""What the losses share: how outputs are drawn from a net, and the cost of a wrong one."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

import spen_plugins as sp

How = Literal["discrete", "continuous"]
"""Draws from the net's distribution, or relaxed outputs with Gaussian noise on its logits."""


def draw(proposal: sp.Proposal, n: int, sample: How, std: float) -> Tensor:
    """`n` outputs of the net, `(batch, n, *variables)`, without gradient: a sample is data to the loss."""
    with torch.no_grad():
        return proposal.sample(n) if sample == "discrete" else proposal.perturb(n, std)


def candidates(gold: Tensor, proposal: sp.Proposal, n: int, sample: How, std: float) -> Tensor:
    """Gold first, then `n` samples, so that one call of the energy scores them all: `(batch, 1 + n, *variables)`."""
    drawn = draw(proposal, n, sample, std)
    return torch.cat([gold.to(drawn), drawn], 1)


def nothing(energy: sp.BoundEnergy, proposal: sp.Proposal) -> Tensor:
    """The loss of a batch without any gold, `(batch,)`: 0, with a gradient (of zeros) for the phase to walk."""
    return 0 * energy(proposal.y)[:, 0]
