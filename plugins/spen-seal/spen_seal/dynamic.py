"""SEAL-dynamic: the energy and the net take turns on every batch."""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import Field, model_validator

import spen_plugins as sp
from spen_plugins.trainer import Context, Terms, cross_entropy


class Dynamic(sp.Trainer):
    """Alg. 1 of SEAL (Lee et al. 2022, Eq. 4 and 5).

    Each batch: `rounds` x (`energy_steps` updates of Θ on the energy loss, `net_steps` updates of Φ on
    λ1 · net term + λ2 · cross entropy). A released schedule "score 12 : task 5" is energy_steps 12, rounds 5: 60
    updates of the energy and 5 of the net on one batch. With λ1 = 0 the energy learns and teaches nothing: a control.
    """

    needs = ("energy", "energy_loss")

    class Config(sp.TrainerConfig):
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
        energy_steps: int = Field(1, ge=1)
        """Updates of the energy in a row."""
        net_steps: int = Field(1, ge=1)
        """Updates of the net in a row."""
        warmup_epochs: int = Field(0, ge=0)
        """Epochs before the others in which the net learns from cross entropy alone, and the energy from the net: an
        energy that knows nothing yet leads a net that starts from nothing astray."""
        rounds: int = Field(1, ge=1)
        """How often both take turns on one batch."""
        first: Literal["energy", "net"] = "energy"
        """Who begins."""
        net_clip: float | None = Field(10.0, gt=0)
        """Largest gradient norm of the net; null for no clipping."""
        energy_clip: float | None = Field(None, gt=0)
        """Largest gradient norm of the energy; null for no clipping."""
        net_plateau: sp.PlateauConfig | None = sp.PlateauConfig()
        """Schedule of the net's learning rate; null keeps it."""
        sampling_dropout: bool = True
        """The net drops out while it makes outputs for the energy to learn from, as released.

        One proposal (one dropout mask, one P_N) serves all `energy_steps` of a round; released code makes a new one at
        each step. New samples are drawn from it at each step all the same, unless the loss says `redraw: round`.
        """
        energy_dropout: bool = False
        """The energy drops out while it teaches the net, as released; off by default because the energy is then the
        same function of y for net and loss."""

        @model_validator(mode="after")
        def _something_to_learn(self) -> Dynamic.Config:
            if self.energy_weight == 0 and self.cross_entropy_weight == 0:
                raise ValueError("energy_weight and cross_entropy_weight are both 0: the net has nothing to learn from")
            if self.warmup_epochs and self.cross_entropy_weight == 0:
                raise ValueError("warmup_epochs needs a cross_entropy_weight above 0: the warm-up has no other loss")
            return self

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        config = self.config
        seal = self._stage("seal", model, config.epochs, config.energy_weight, config.patience)
        if not config.warmup_epochs:
            return [seal]
        return [self._stage("warmup", model, config.warmup_epochs, 0.0, None), seal]

    def _stage(self, name: str, model: sp.Model, epochs: int, energy_weight: float, patience: int | None) -> sp.Stage:
        config = self.config
        loss_learns = any(True for _ in model.energy_loss.parameters())
        loss_used = energy_weight > 0
        energy = sp.Phase(
            name="energy",
            trains=("energy",),
            loss=self._energy_loss,
            optimizer=config.energy_optimizer,
            steps=config.energy_steps,
            clip=config.energy_clip,
            frozen_dropout=config.sampling_dropout,
        )
        net = sp.Phase(
            name="inference_net",
            trains=("inference_net", "energy_loss") if loss_learns and loss_used else ("inference_net",),
            loss=partial(self._net_loss, energy_weight=energy_weight),
            optimizer=config.net_optimizer,
            steps=config.net_steps,
            clip=config.net_clip,
            plateau=config.net_plateau,
            frozen_dropout=config.energy_dropout,
        )
        return sp.Stage(
            name,
            (energy, net) if config.first == "energy" else (net, energy),
            epochs,
            config.rounds,
            frozen=("energy_loss",) if loss_learns and not loss_used else (),
            patience=patience,
        )

    @staticmethod
    def _energy_loss(context: Context) -> Terms:
        """Eq. 4."""
        return {"energy_loss": context.model.energy_loss(context.energy, context.batch, context.proposal)}

    def _net_loss(self, context: Context, energy_weight: float) -> Terms:
        """Eq. 5; a term without weight isn't computed."""
        config, terms = self.config, {}
        if energy_weight > 0:
            asked = context.model.energy_loss.net_term(context.energy, context.batch, context.proposal)
            terms["energy"] = energy_weight * asked
        if config.cross_entropy_weight > 0:
            terms["cross_entropy"] = config.cross_entropy_weight * cross_entropy(context, config.per_variable)
        return terms
