"""Cross entropy alone: the baseline, also with as many net updates per batch as another trainer."""

from __future__ import annotations

from pydantic import Field

from spen_plugins.builtin.trainers.phases import cross_entropy, frozen_except
from spen_plugins.energy_loss import Terms
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
        phase = Phase("inference_net", ("inference_net",), self._loss, config.net)
        frozen = frozen_except(model, "inference_net")
        return [Stage("train", (phase,), config.epochs, config.rounds, frozen, patience=config.patience)]

    def _loss(self, context: Context) -> Terms:
        return {"cross_entropy": cross_entropy(context, self.config.per_variable)}
