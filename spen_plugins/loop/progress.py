"""Progress of a run for users: a bar with the remaining time, a line per epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from spen_plugins.console import Console
from spen_plugins.errors import visible
from spen_plugins.loop.order import Epochs
from spen_plugins.trainer import Stage

Means = Callable[[], Mapping[str, float]]

LINE_SECONDS = 60.0
"""Time between two lines about an epoch where there is no terminal."""
FIXED = 67
"""Characters of a line of progress beside its losses."""


class Reporter:
    """Progress on a console; none on a quiet one."""

    def __init__(self, console: Console, selection: str) -> None:
        self.console, self.selection = console, selection
        self._progress: Progress | None = None
        self._shown_at = 0.0

    def __enter__(self) -> Reporter:
        if self.console.is_terminal and not self.console.quiet:
            narrow = Column(no_wrap=True)
            columns = (
                TextColumn("{task.description}", table_column=narrow),
                BarColumn(10, table_column=narrow),
                MofNCompleteColumn(table_column=narrow),
                TimeElapsedColumn(narrow),
                TextColumn("left"),
                TimeRemainingColumn(table_column=narrow),
                TextColumn("{task.fields[losses]}", markup=False, table_column=narrow),
            )
            self._progress = Progress(*columns, console=self.console, transient=True)
            self._progress.start()
            self._all = self._progress.add_task("stage", losses="", visible=False)
            self._bar = self._progress.add_task("epoch", losses="", visible=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def say(self, text: str | Text) -> None:
        """Print one line."""
        self.console.print(text, soft_wrap=True)

    def stage(self, stage: Stage, epoch: int, epochs: Epochs | str) -> None:
        """Report that a stage starts or resumes; `epochs` may be an epoch's length in words."""
        steps = ((phase.name, phase.player.steps) for phase in stage.phases)
        players = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in steps)
        rounds = f", {stage.rounds} rounds per batch" if stage.rounds > 1 else ""
        moves = f": {players}{rounds}; at most {stage.epochs} epochs of {_size(epochs)}" if stage.phases else ""
        self.say(f"stage {stage.name}{moves}")
        self._epochs = stage.epochs
        if self._progress is not None:
            self._progress.update(
                self._all, description=f"{stage.name}, epochs", total=stage.epochs, completed=epoch, visible=True
            )

    def epoch(self, epoch: int, batches: int, done: int) -> None:
        """Report that an epoch starts or resumes at batch `done`."""
        self._epoch, self._batches, self._resumed = epoch, batches, done
        self._began = time.monotonic()
        if self._progress is None:
            self._shown_at = self._began
        else:
            self._progress.reset(self._bar, total=batches, completed=done, visible=True)
            self._progress.update(self._bar, description=f"epoch {epoch + 1}/{self._epochs}")

    def batch(self, done: int, means: Means) -> None:
        """Report a finished batch: on a terminal a few times per second, elsewhere by a line a minute."""
        now = time.monotonic()
        if now - self._shown_at <= (LINE_SECONDS if self._progress is None else 0.3):
            return
        self._shown_at = now
        if self._progress is not None:
            losses = _line(means())[: max(0, self.console.width - FIXED)]  # rich would narrow the other columns
            self._progress.update(self._bar, completed=done, losses=losses)
        elif done < self._batches:
            left = (now - self._began) / (done - self._resumed) * (self._batches - done)
            self.say(
                f"epoch {self._epoch + 1:3d}  {done:,} of {self._batches:,} batches  {_line(means())}  "
                f"about {max(1, round(left / 60))} min left in it"
            )

    def epoch_done(self, record: Mapping[str, Any], seconds: float, best: float) -> None:
        """Print one line with the losses of each phase and the score."""
        score = self.selection if record["score"] == record["validation"].get(self.selection) else "score"
        scored = f"epoch {record['epoch'] + 1:3d}  {_line(record['losses'])}  validation {score} {record['score']:.4f} "
        star = ("(new best)", "green") if record["best"] else f"(best {best:.4f})"
        self.say(Text.assemble(visible(scored), star, f"  {seconds:.1f} s"))
        if self._progress is not None:
            self._progress.advance(self._all)


def _size(epochs: Epochs | str) -> str:
    """The length of an epoch, in words."""
    if isinstance(epochs, str):
        return epochs
    a_pass, examples = epochs.batches_of_a_pass, f"{len(epochs.lengths)} examples"
    batches = f"{epochs.batches} batches of {epochs.batch_size}"
    if epochs.batches < a_pass:
        return f"{batches}; a pass over the {examples} has {a_pass:,}"
    passes = f" ({epochs.passes} passes over {examples})" if a_pass < epochs.batches == epochs.passes * a_pass else ""
    return batches + passes


def _line(means: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in means.items())
