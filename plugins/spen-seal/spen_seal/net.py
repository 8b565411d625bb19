"""What SEAL's trainers share: the net's phase, in which the energy is part of its loss."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import Field

import spen_plugins as sp
from spen_plugins.trainer import Context, Terms, cross_entropy


class SealConfig(sp.TrainerConfig):
    """What both trainers take."""

    energy_weight: float = Field(1.0, ge=0)
    """λ1, weight of the energy loss's term for the net; its scale depends on the loss (E, or σ of it)."""
    cross_entropy_weight: float = Field(1.0, ge=0)
    """λ2, weight of the net's cross entropy."""
    per_variable: bool = False
    """Cross entropy as the mean over an example's variables instead of their sum."""
    energy_optimizer: sp.OptimizerConfig = sp.OptimizerConfig()
    """The energy's optimiser."""
    net_optimizer: sp.OptimizerConfig = sp.OptimizerConfig()
    """The net's optimiser; it also moves an energy loss's own nets."""
    net_clip: float | None = Field(10.0, gt=0)
    """Largest gradient norm of the net; null for no clipping."""
    energy_clip: float | None = Field(None, gt=0)
    """Largest gradient norm of the energy; null for no clipping."""
    net_plateau: sp.PlateauConfig | None = sp.PlateauConfig()
    """Schedule of the net's learning rate; null keeps it."""
    energy_dropout: bool = False
    """The energy drops out while it teaches the net, as released; off by default because the energy is then the
    same function of y for net and loss."""


def net_phase(config: Any, energy_weight: float, trains: tuple[str, ...], steps: int = 1) -> sp.Phase:
    """The phase in which the net learns from λ1 · net term + λ2 · cross entropy (Eq. 5)."""
    return sp.Phase(
        name="inference_net",
        trains=trains,
        loss=partial(_net_loss, config, energy_weight),
        optimizer=config.net_optimizer,
        steps=steps,
        clip=config.net_clip,
        plateau=config.net_plateau,
        frozen_dropout=config.energy_dropout,
    )


def energy_loss(context: Context) -> Terms:
    """Eq. 4."""
    return {"energy_loss": context.model.energy_loss(context.energy, context.batch, context.proposal)}


def _net_loss(config: Any, energy_weight: float, context: Context) -> Terms:
    """A term without weight isn't computed."""
    terms = {}
    if energy_weight > 0:
        asked = context.model.energy_loss.net_term(context.energy, context.batch, context.proposal)
        terms["energy"] = energy_weight * asked
    if config.cross_entropy_weight > 0:
        terms["cross_entropy"] = config.cross_entropy_weight * cross_entropy(context, config.per_variable)
    return terms
