"""SEAL-static: the energy learns first, then teaches the net without moving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from pydantic import Field, model_validator

import spen_plugins as sp
from spen_seal.net import SealConfig, net_phase


class Static(sp.Trainer):
    """SEAL with a fixed energy (Lee et al. 2022, Sec. 2.1 and Table 1, "SEAL-static"), in up to three stages:

    1. `net`: the net learns by cross entropy, where the energy loss wants one to start from (samples for NCE).
    2. `energy`: the energy learns by its loss, the net standing still; its score is what gradient-based inference gets
       out of it, or its own loss.
    3. `seal`: the net learns from λ1 · net terms + λ2 · cross entropy; not a bit of the energy moves.

    With `init.energy` and `energy_epochs` 0 the energy of another run teaches.
    """

    needs = ("energy", "energy_loss")

    class Config(SealConfig):
        net_epochs: int = Field(0, ge=0)
        """Epochs at most of stage 1, in which the net makes one update a batch."""
        energy_epochs: int = Field(60, ge=0)
        """Epochs at most of stage 2."""
        select: Literal["gbi", "loss"] = "gbi"
        """What chooses the energy's best epoch, on the validation part: the score of its predictions by `gbi`, or its
        loss."""
        gbi: sp.Gbi.Config = sp.Gbi.Config()
        """How those predictions are made."""
        fresh_net: bool = True
        """The net begins stage 3 from the weights it had before stage 1; false: from those it has."""

        @model_validator(mode="after")
        def _something_to_learn(self) -> Static.Config:
            if self.energy_weight == 0 and self.cross_entropy_weight == 0:
                raise ValueError("energy_weight and cross_entropy_weight are both 0: the net has nothing to learn from")
            return self

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        c = self.config
        stages = []
        if c.net_epochs:
            stages.append(sp.net_stage(model, task, c.net_epochs, c.net, c.patience, per_variable=c.per_variable))
        if c.energy_epochs:
            select = self._select(task)
            stages.append(
                sp.energy_stage(model, c.energy_epochs, c.energy, c.patience, trainer="seal.static", select=select)
            )
        phase = net_phase(c, c.energy_weight, ("inference_net",))
        start = reset(model) if c.fresh_net and stages else None
        frozen = sp.frozen_except(model, "inference_net")
        stages.append(sp.Stage("seal", (phase,), c.epochs, frozen=frozen, start=start, patience=c.patience))
        return stages

    def _select(self, task: sp.Task) -> Callable[[sp.Model, Sequence[sp.Batch]], float]:
        if self.config.select == "gbi":
            return lambda model, batches: sp.gbi_score(model, task, batches, self.config.gbi)
        return _minus_loss


def reset(model: sp.Model) -> Callable[[sp.Model], None]:
    """What puts the net's weights back to what they are now."""
    before = {name: value.detach().clone() for name, value in model.inference_net.state_dict().items()}

    def put(model: sp.Model) -> None:
        model.inference_net.load_state_dict(before)

    return put


def _minus_loss(model: sp.Model, batches: Sequence[sp.Batch]) -> float:
    """Minus the mean energy loss; samples are the same ones at every epoch."""
    total = count = 0
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for batch in batches:
            bound = model.energy.at(batch.x)
            proposal = model.inference_net.training_proposal(batch.x, bound)
            total += sum(float(term.sum()) for term in model.energy_loss.terms(bound, batch, proposal).values())
            count += len(batch)
    return -total / max(count, 1)
