"""SEAL-dynamic: the energy and the net are updated in turn on every batch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

import spen_plugins as sp
from spen_seal.net import SealConfig, net_phase


class Dynamic(sp.Trainer):
    """SEAL-dynamic: updates of energy and net in turn (Lee et al. 2022, Algorithm 1, Eq. 4 and 5).

    Each batch: `rounds` x (`energy.steps` updates of Θ on the energy loss, `net.steps` updates of Φ on
    λ1 · net terms + λ2 · cross entropy). A released schedule "score 12 : task 5" is energy.steps 12, rounds 5: 60
    updates of the energy and 5 of the net on one batch. With λ1 = 0 the energy does not affect the net: a baseline.
    """

    needs = ("energy", "energy_loss")

    class Config(SealConfig):
        warmup_epochs: int = Field(0, ge=0)
        """Warm-up epochs, in which the net learns from cross entropy alone and the energy from the net: an untrained
        energy misleads an untrained net."""
        cost_net: sp.Player | None = None
        """The player of the energy loss's cost net, which takes its steps after those of the net; null: both are
        updated together, by the net's player."""
        rounds: int = Field(1, ge=1, le=1000)
        """Rounds of updates (energy and net) on one batch."""
        first: Literal["energy", "net"] = "energy"
        """The player that moves first."""
        sampling_dropout: bool = True
        """If true, the net uses dropout while it makes outputs for the energy to learn from, as released.

        One proposal (one dropout mask, one P_N) serves all `energy.steps` of a round; released code makes a new one at
        each step. New samples are still drawn from it at each step, unless the loss has `redraw: round`.
        """

        @model_validator(mode="after")
        def _check_warmup(self) -> Dynamic.Config:
            if self.warmup_epochs and self.cross_entropy_weight == 0:
                raise ValueError("warmup_epochs requires a cross_entropy_weight above 0: the warm-up has no other loss")
            return self

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        config = self.config
        seal = self._make_stage("seal", model, config.epochs, config.teaches, config.patience)
        if not config.warmup_epochs:
            return [seal]
        return [self._make_stage("warmup", model, config.warmup_epochs, False, None), seal]

    def _make_stage(self, name: str, model: sp.Model, epochs: int, uses_loss: bool, patience: int | None) -> sp.Stage:
        config = self.config
        loss_learns = bool(sp.loss_parts(model, "nets"))
        trains = ("energy", *sp.loss_parts(model, "energy"))
        energy = sp.energy_phase(config.energy, trains, frozen_dropout=config.sampling_dropout)
        is_separate = config.cost_net is not None and uses_loss
        is_joint = loss_learns and uses_loss and not is_separate
        nets = [net_phase(config, ("inference_net", "energy_loss") if is_joint else ("inference_net",), uses_loss)]
        if is_separate:
            dropout, weight = config.energy_dropout, 1.0 if config.energy_share is not None else config.energy_weight
            nets.append(sp.cost_net_phase(model, config.cost_net, weight, frozen_dropout=dropout))
        return sp.Stage(
            name,
            (energy, *nets) if config.first == "energy" else (*nets, energy),
            epochs,
            config.rounds,
            frozen=("energy_loss",) if loss_learns and not uses_loss else (),
            patience=patience,
        )
