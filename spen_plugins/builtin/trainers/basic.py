"""Trainers `cross_entropy`, which trains the net alone, and `energy`, which trains the energy alone."""

from __future__ import annotations

from pydantic import Field

from spen_plugins.builtin.trainers.phases import cross_entropy, energy_stage, frozen_except, net_stage
from spen_plugins.energy_loss import Terms
from spen_plugins.errors import ConfigError
from spen_plugins.model import Model
from spen_plugins.player import Player
from spen_plugins.task import Task
from spen_plugins.trainer import Context, Phase, Stage, Trainer, TrainerConfig


class CrossEntropy(Trainer):
    """Training of the inference net by −ln q(gold | x); an energy in the config is not trained."""

    class Config(TrainerConfig):
        net: Player = Player()
        """The net's player."""
        per_variable: bool = False
        """If true, the loss is the mean over an example's variables instead of their sum."""
        rounds: int = Field(1, ge=1, le=1000)
        """Repetitions of the net's steps on one batch; `net.steps` x `rounds` updates in total."""

    config: Config

    def stages(self, model: Model, task: Task) -> list[Stage]:
        config = self.config
        phase = Phase("inference_net", ("inference_net",), self._compute_loss, config.net)
        frozen = frozen_except(model, "inference_net")
        return [Stage("train", (phase,), config.epochs, config.rounds, frozen, patience=config.patience)]

    def _compute_loss(self, context: Context) -> Terms:
        return {"cross_entropy": cross_entropy(context, self.config.per_variable)}


class EnergyAlone(Trainer):
    """SPEN, DVN or NCE training, depending on the energy loss (`ssvm`, `dvn`, `seal.nce`), with inference net `gbi`.

    If the inference net has weights (the net of `gbi`, whose samples NCE contrasts with gold), it is trained first, by
    cross entropy, and fixed from then on.

    Raises:
        ConfigError: the task weighs classes, but no net is trained by cross entropy.
    """

    needs = ("energy", "energy_loss")

    class Config(TrainerConfig):
        energy: Player = Player()
        """The energy's player."""
        net: Player = Player()
        """The net's player, with one update per batch."""
        net_epochs: int = Field(30, ge=0)
        """Maximal number of epochs of the net before the energy; 0 with a net from `init.inference_net`."""

    config: Config

    def stages(self, model: Model, task: Task) -> list[Stage]:
        config = self.config
        stage = energy_stage(model, config.epochs, config.energy, config.patience, trainer="energy")
        if not config.net_epochs or "inference_net" not in frozen_except(model, "energy"):
            if getattr(task.config, "class_weight", None) is not None:
                raise ConfigError(
                    "task.class_weight weighs the cross entropy of a net, but trainer 'energy' alone trains no net; "
                    "use a method with a net, such as cross_entropy or nce, or class_weight=null"
                )
            return [stage]
        return [net_stage(model, task, config.net_epochs, config.net, config.patience), stage]
