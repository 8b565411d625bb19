"""Cross entropy alone: the baseline, and the control with as many updates of the net as another trainer made."""

from __future__ import annotations

from pydantic import Field

from spen_plugins.model import Model
from spen_plugins.task import Task
from spen_plugins.trainer import (
    Context,
    OptimizerConfig,
    Phase,
    PlateauConfig,
    Stage,
    Terms,
    Trainer,
    TrainerConfig,
    all_but,
    cross_entropy,
)


class CrossEntropy(Trainer):
    """Minimises −ln q(gold | x) by the inference net; an energy, where the config has one, stays as it is."""

    class Config(TrainerConfig):
        optimizer: OptimizerConfig = OptimizerConfig()
        """The net's optimiser."""
        clip: float | None = Field(10.0, gt=0)
        """Largest gradient norm; null for no clipping."""
        plateau: PlateauConfig | None = PlateauConfig()
        """Schedule of the learning rate; null keeps it."""
        per_variable: bool = False
        """Mean over an example's variables instead of their sum."""
        steps: int = Field(1, ge=1)
        """Updates in a row on one batch."""
        rounds: int = Field(1, ge=1)
        """How often they are repeated on it; `steps` x `rounds` updates in all."""

    config: Config

    def stages(self, model: Model, task: Task) -> list[Stage]:
        config = self.config
        phase = Phase(
            name="inference_net",
            trains=("inference_net",),
            loss=self._loss,
            optimizer=config.optimizer,
            steps=config.steps,
            clip=config.clip,
            plateau=config.plateau,
        )
        frozen = all_but(model, "inference_net")
        return [Stage("train", (phase,), config.epochs, config.rounds, frozen, patience=config.patience)]

    def _loss(self, context: Context) -> Terms:
        return {"cross_entropy": cross_entropy(context, self.config.per_variable)}
