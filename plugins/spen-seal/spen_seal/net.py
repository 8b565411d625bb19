"""The net's phase of SEAL's trainers, in which the energy is part of the loss."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import Field

import spen_plugins as sp


class SealConfig(sp.TrainerConfig):
    """Settings of both trainers."""

    energy_weight: float = Field(1.0, ge=0)
    """λ1, weight of the energy loss's net terms; its scale depends on the loss (E, or σ(−E))."""
    cross_entropy_weight: float = Field(1.0, ge=0)
    """λ2, weight of the net's cross entropy."""
    per_variable: bool = False
    """If true, cross entropy is the mean over an example's variables instead of their sum."""
    energy: sp.Player = sp.Player()
    """The energy's player."""
    net: sp.Player = sp.Player()
    """The net's player; it also updates an energy loss's cost net that has no player of its own."""
    energy_dropout: bool = False
    """If true, the energy uses dropout while it teaches the net, as released; off by default so that net and loss
    see the same function of y."""


def net_phase(config: Any, energy_weight: float, trains: tuple[str, ...]) -> sp.Phase:
    """The phase in which the net learns from λ1 · net terms + λ2 · cross entropy (Eq. 5)."""
    loss = partial(_net_loss, config, energy_weight)
    return sp.Phase("inference_net", trains, loss, config.net, frozen_dropout=config.energy_dropout)


def _net_loss(config: Any, energy_weight: float, context: sp.Context) -> sp.Terms:
    """Terms of the net's loss; a term with weight 0 isn't computed."""
    terms = dict(sp.net_terms(context, energy_weight))
    if config.cross_entropy_weight > 0:
        terms["cross_entropy"] = config.cross_entropy_weight * sp.cross_entropy(context, config.per_variable)
    return terms
