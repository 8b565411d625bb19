"""State of training: stage, epoch, batch, the best score so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from spen_plugins.loop.ledger import Sums
from spen_plugins.trainer import Stage


@dataclass
class Position:
    """Position in the training, part of the checkpoint."""

    stage: int = 0
    started: bool = False
    """True if the stage's `start` has been called."""
    epoch: int = 0
    batch: int = 0
    best: float = -math.inf
    best_epoch: int = -1
    history_lines: int = 0
    sums: Sums = field(default_factory=dict)

    def is_patience_over(self, stage: Stage) -> bool:
        """True if there was no better score for the stage's patience."""
        return stage.patience is not None and self.epoch - self.best_epoch > stage.patience

    def next_epoch(self) -> None:
        """The beginning of the next epoch."""
        self.epoch, self.batch, self.sums = self.epoch + 1, 0, {}

    def next_stage(self, goes_on: bool = False) -> Position:
        """The beginning of the next stage; one that goes on has the same best score to reach."""
        best = self.best if goes_on else -math.inf
        return Position(stage=self.stage + 1, history_lines=self.history_lines, best=best)
