"""Trainer `energy`: the energy learns without a net to teach, and predicts by gradient-based inference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pydantic import Field

from spen_plugins.batch import Batch
from spen_plugins.energy_loss import EnergyLoss
from spen_plugins.errors import ConfigError
from spen_plugins.model import Model
from spen_plugins.player import Player
from spen_plugins.task import Task
from spen_plugins.trainer import (
    Context,
    Phase,
    Stage,
    Terms,
    Trainer,
    TrainerConfig,
    all_but,
    cross_entropy,
    energy_phase,
)


class EnergyAlone(Trainer):
    """SPEN, DVN or NCE as their papers have it, by the energy loss: `ssvm`, `dvn`, `seal.nce` with inference net `gbi`.

    Where the inference net has weights (the net that `gbi` stands on, whose samples NCE contrasts with gold), it learns
    first, by cross entropy, and is fixed from then on.
    """

    needs = ("energy", "energy_loss")

    class Config(TrainerConfig):
        energy: Player = Player()
        """The energy's player."""
        net: Player = Player()
        """The net's, one update a batch."""
        net_epochs: int = Field(30, ge=0)
        """Epochs at most in which the net learns before the energy; 0 where it comes from `init.inference_net`."""

    config: Config

    def stages(self, model: Model, task: Task) -> list[Stage]:
        config = self.config
        frozen = all_but(model, "energy")
        need_no_training(model.energy_loss, "energy")
        alone = Stage("energy", (energy_phase(config.energy),), config.epochs, frozen=frozen, patience=config.patience)
        if not config.net_epochs or "inference_net" not in frozen:
            return [alone]
        return [net_stage("net", model, task, config.net_epochs, config.net, config.patience), alone]


def net_stage(
    name: str, model: Model, task: Task, epochs: int, net: Player, patience: int | None, per_variable: bool = False
) -> Stage:
    """A stage in which the inference net learns by cross entropy alone and everything else is frozen.

    Its validation score is that of the net itself, not of an optimiser that stands on it.

    Args:
        name: of the stage.
        model, task: whose net, and what scores it.
        epochs: at most.
        net: the net's player; it makes one update a batch here, whatever its `steps`.
        patience: epochs without a better score before the stage ends.
        per_variable: cross entropy as the mean over an example's variables.
    """

    def loss(context: Context) -> Terms:
        return {"cross_entropy": cross_entropy(context, per_variable)}

    phase = Phase("inference_net", ("inference_net",), loss, net.model_copy(update={"steps": 1}))
    select = partial(_net_score, task) if model.inference_net.uses_energy else None
    frozen = all_but(model, "inference_net")
    return Stage(name, (phase,), epochs, frozen=frozen, select=select, patience=patience)


def need_no_training(loss: EnergyLoss, trainer: str) -> None:
    """`ConfigError` where an energy would learn from what an untrained net of its loss comes up with."""
    own = next(loss.named_parameters(), None)
    if own is not None:
        raise ConfigError(
            f"trainer {trainer!r}: {type(loss).__name__} has a net of its own ({own[0].split('.')[0]}) that learns "
            "together with the inference net, and that stands still here. Take an energy_loss without one ('ssvm' for "
            "a margin), or a trainer that moves both on every batch"
        )


def _net_score(task: Task, model: Model, batches: Sequence[Batch]) -> float:
    net = model.inference_net
    return task.selection_score((net.training_proposal(b.x, model.energy.at(b.x)), b) for b in batches)
