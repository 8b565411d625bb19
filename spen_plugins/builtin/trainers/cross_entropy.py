"""Cross entropy alone: the baseline, and the control with as many updates of the net as another trainer made."""

from __future__ import annotations

from pydantic import Field

from spen_plugins.builtin.trainers.phases import cross_entropy, frozen_except
from spen_plugins.energy_loss import Terms
from spen_plugins.model import Model
from spen_plugins.player import Player
from spen_plugins.task import Task
from spen_plugins.trainer import Context, Phase, Stage, Trainer, TrainerConfig


class CrossEntropy(Trainer):
    """Minimises −ln q(gold | x) by the inference net; an energy, where the config has one, stays as it is."""

    class Config(TrainerConfig):
        net: Player = Player()
        """The net's player."""
        per_variable: bool = False
        """Mean over an example's variables instead of their sum."""
        rounds: int = Field(1, ge=1)
        """How often the net's steps are repeated on one batch; `net.steps` x `rounds` updates in all."""

    config: Config

    def stages(self, model: Model, task: Task) -> list[Stage]:
        config = self.config
        phase = Phase("inference_net", ("inference_net",), self._loss, config.net)
        frozen = frozen_except(model, "inference_net")
        return [Stage("train", (phase,), config.epochs, config.rounds, frozen, patience=config.patience)]

    def _loss(self, context: Context) -> Terms:
        return {"cross_entropy": cross_entropy(context, self.config.per_variable)}
