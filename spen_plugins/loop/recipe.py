"""Arguments of the loop: the recipe of a training, and its caller's part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spen_plugins.errors import ConfigError
from spen_plugins.loop.ownership import Owned, check_stages
from spen_plugins.model import Model
from spen_plugins.task import Task
from spen_plugins.trainer import Stage, TrainerConfig


@dataclass
class Recipe:
    """A model, its task, and how it is trained."""

    model: Model
    task: Task
    stages: Sequence[Stage]
    config: TrainerConfig
    seed: int
    owned: Owned = field(init=False)

    def __post_init__(self) -> None:
        self.owned = check_stages(self.model, self.stages)
        if not len(self.task.part("train")):
            raise ConfigError("the task has no training examples")
        if not len(self.task.part("validation")):
            raise ConfigError("the task has no validation examples; they choose the best epoch (give a split)")
        empty = [stage.name for stage in self.stages if stage.examples is not None and not len(stage.examples)]
        if empty:
            raise ConfigError(f"stage {empty[0]!r} has no examples to train on")


@dataclass(frozen=True)
class Callbacks:
    """The caller's part in a training.

    Args:
        checkpoint_seconds: minimal training time between two checkpoints (every stage ends with one).
        stop: polled after every batch; true saves and raises `Interrupted`.
        after_epoch: called with the history record of every epoch; a `RunError` it raises ends the run.
    """

    checkpoint_seconds: float = 60.0
    stop: Callable[[], bool] = lambda: False
    after_epoch: Callable[[dict[str, Any]], None] = lambda record: None


ALONE = Callbacks()
