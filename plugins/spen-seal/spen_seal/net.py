"""The net's phase of SEAL's trainers, in which the energy is part of the loss."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import Field, model_validator

import spen_plugins as sp
from spen_seal.share import SharedLoss


class SealConfig(sp.TrainerConfig):
    """Settings of both trainers."""

    energy_weight: float = Field(1.0, ge=0)
    """λ1, weight of the energy loss's net terms; its scale depends on the loss (E, or σ(−E)) and on the data. 0
    is the control without the energy, whatever `energy_share` is."""
    energy_share: float | None = Field(None, gt=0, lt=1)
    """In place of `energy_weight`: the share of the gradient at the net's output that the net terms have. λ1 follows
    the running ratio of both terms' gradient norms there; the history has it (`measures`). null: `energy_weight`."""
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

    @property
    def teaches(self) -> bool:
        """True if the net learns from the energy."""
        return self.energy_weight > 0

    @model_validator(mode="after")
    def _check_losses(self) -> SealConfig:
        if self.energy_share is not None and self.cross_entropy_weight == 0:
            raise ValueError("energy_share is a share beside cross entropy's: it needs a cross_entropy_weight above 0")
        if self.energy_share is not None and self.accumulate > 1:
            raise ValueError("energy_share compares gradients of whole batches: use accumulate=1 and one process")
        if not self.teaches and self.cross_entropy_weight == 0:
            raise ValueError("energy_weight and cross_entropy_weight are both 0: the net has nothing to learn from")
        return self


def net_phase(config: SealConfig, trains: tuple[str, ...], teaches: bool = True) -> sp.Phase:
    """The phase in which the net learns from λ1 · net terms + λ2 · cross entropy (Eq. 5).

    Args:
        config: the trainer's settings.
        trains: prefixes of the parameters that it trains.
        teaches: if false, λ1 is 0.
    """
    fields = {"trains": trains, "player": config.net, "frozen_dropout": config.energy_dropout}
    teaches = teaches and config.teaches
    if teaches and config.energy_share is not None:
        shared = SharedLoss(config.energy_share, config.cross_entropy_weight, config.per_variable)
        return sp.Phase("inference_net", loss=shared, measures=shared.measures, additive=False, **fields)
    weight = config.energy_weight if teaches else 0.0
    return sp.Phase("inference_net", loss=partial(_net_loss, config, weight), **fields)


def _net_loss(config: Any, energy_weight: float, context: sp.Context) -> sp.Terms:
    """Terms of the net's loss; a term with weight 0 isn't computed."""
    terms = dict(sp.net_terms(context, energy_weight))
    if config.cross_entropy_weight > 0:
        terms["cross_entropy"] = config.cross_entropy_weight * sp.cross_entropy(context, config.per_variable)
    return terms
