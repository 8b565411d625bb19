"""Trainer `rules.tuning`: a trained net continues for some epochs with a constraint beside its cross entropy."""

from __future__ import annotations

from pydantic import Field

import spen_plugins as sp


class Tuning(sp.Trainer):
    """Structured tuning (Li et al. 2020) in two stages:

    1. `net`: the net learns by cross entropy, as a baseline does.
    2. `tuning`: from its best weights it learns from cross entropy + λ · the energy loss's net terms; the energy is
       fixed. The best of these epochs is kept. λ = 0 is the control: the same updates without the energy.
    """

    needs = ("energy", "energy_loss")

    class Config(sp.TrainerConfig):
        epochs: int = Field(60, ge=0)
        """Maximal number of epochs of stage 1; 0 with a net from `init.inference_net`."""
        tuning_epochs: int = Field(5, ge=1)
        """Number of epochs of stage 2."""
        energy_weight: float = Field(1.0, ge=0)
        """λ, the weight of the constraint beside cross entropy, both of which are sums over an example's variables."""
        per_variable: bool = False
        """If true, cross entropy in stage 1 is the mean over an example's variables instead of their sum."""
        net: sp.Player = sp.Player()
        """The net's player in stage 1."""
        tuning: sp.Player = sp.Player(lr=3e-4)
        """And in stage 2: as published, at a third of the learning rate."""

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        c = self.config
        phase = sp.Phase("inference_net", ("inference_net",), self._compute_loss, c.tuning, measures=_compute_measures)
        frozen = sp.frozen_except(model, "inference_net")
        return [
            sp.net_stage(model, task, c.epochs, c.net, c.patience, per_variable=c.per_variable),
            sp.Stage("tuning", (phase,), c.tuning_epochs, frozen=frozen),
        ]

    def _compute_loss(self, context: sp.Context) -> sp.Terms:
        return {**sp.net_terms(context, self.config.energy_weight), "cross_entropy": sp.cross_entropy(context)}


def _compute_measures(context: sp.Context) -> sp.Terms:
    return context.model.energy_loss.measures(context.energy, context.batch, context.proposal)
