"""SEAL-static: the energy is trained first, then fixed while it teaches the net."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from pydantic import Field

import spen_plugins as sp
from spen_seal.net import SealConfig, net_phase


class Static(sp.Trainer):
    """SEAL with a fixed energy (Lee et al. 2022, Sec. 2.1 and Table 1, "SEAL-static"), in up to three stages:

    1. `net`: the net learns by cross entropy, if the energy loss needs a trained net (samples for NCE).
    2. `energy`: the energy learns by its loss, the net fixed; the selection score is that of gradient-based inference
       with the energy, or the energy's loss.
    3. `seal`: the net learns from λ1 · net terms + λ2 · cross entropy, from its weights before stage 1; the energy is
       fixed.

    `init.energy` with `energy_epochs` 0 takes the energy of another run.
    """

    needs = ("energy", "energy_loss")

    class Config(SealConfig):
        net_epochs: int = Field(0, ge=0)
        """Maximal number of epochs of stage 1, in which the net makes one update per batch."""
        energy_epochs: int = Field(60, ge=0)
        """Maximal number of epochs of stage 2."""
        select: Literal["gbi", "loss"] = "gbi"
        """Selection score of the energy's epochs on the validation part: the score of predictions by `gbi`, or the
        negative loss."""
        gbi: sp.Gbi.Config = sp.Gbi.Config()
        """Gradient-based inference for these predictions."""

    config: Config

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        c = self.config
        if learns_shared_features(model):
            raise sp.ConfigError(
                "energy.features 'shared' would change the fixed energy when the net learns; give the energy its own "
                "features, or freeze the net's (features.frozen='all')"
            )
        stages = []
        if c.net_epochs:
            stages.append(sp.net_stage(model, task, c.net_epochs, c.net, c.patience, per_variable=c.per_variable))
        if c.energy_epochs:
            select = self._make_selection(task)
            stages.append(
                sp.energy_stage(model, c.energy_epochs, c.energy, c.patience, trainer="seal.static", select=select)
            )
        phase = net_phase(c, ("inference_net",))
        start = keep_weights(model) if stages else None
        frozen = sp.frozen_except(model, "inference_net")
        stages.append(sp.Stage("seal", (phase,), c.epochs, frozen=frozen, start=start, patience=c.patience))
        return stages

    def _make_selection(self, task: sp.Task) -> Callable[[sp.Model, Sequence[sp.Batch]], float]:
        if self.config.select == "gbi":
            return lambda model, batches: sp.gbi_score(model, task, batches, self.config.gbi)
        return _score_loss


def learns_shared_features(model: sp.Model) -> bool:
    """True if the energy sees vectors that the net learns."""
    is_shared = any(isinstance(part, sp.FeatureNetwork) and part.of_net for part in model.energy.modules())
    networks = [part for part in model.inference_net.modules() if isinstance(part, sp.FeatureNetwork)]
    return is_shared and any(p.requires_grad for network in networks for p in network.parameters())


def keep_weights(model: sp.Model) -> Callable[[sp.Model], None]:
    """A function that resets the net's weights to their current values."""
    weights = {name: value.detach().clone() for name, value in model.inference_net.state_dict().items()}

    def reset(model: sp.Model) -> None:
        model.inference_net.load_state_dict(weights)

    return reset


def _score_loss(model: sp.Model, batches: Sequence[sp.Batch]) -> float:
    """Minus the mean energy loss, with the same samples at every epoch."""
    total = count = 0
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for batch in batches:
            bound = model.energy.at(batch.x)
            proposal = model.inference_net.training_proposal(batch.x, bound)
            total += sum(float(term.sum()) for term in model.energy_loss.terms(bound, batch, proposal).values())
            count += len(batch)
    return -total / max(count, 1)
