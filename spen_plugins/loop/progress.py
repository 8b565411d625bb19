"""Progress for users: of training, a bar with the remaining time and a line per epoch; of predictions, a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
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
from spen_plugins.loop.evaluation import counted
from spen_plugins.loop.order import Epochs
from spen_plugins.trainer import Stage

Means = Callable[[], Mapping[str, float]]

LINE_SECONDS = 60.0
"""Time between two lines about an epoch, without a terminal."""
FIXED = 67
"""Characters of a line of progress besides its losses."""


class Tracker:
    """Progress of all predictions inside its `with`: a bar in a terminal, elsewhere a line per minute; nothing on a
    quiet console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress: Progress | None = None
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        if self.console.is_interactive and not self.console.quiet:
            column = Column(no_wrap=True)
            columns = (
                TextColumn("{task.description}", table_column=column),
                BarColumn(10, table_column=column),
                MofNCompleteColumn(table_column=column),
                TimeElapsedColumn(column),
                TextColumn("left"),
                TimeRemainingColumn(table_column=column),
                TextColumn("{task.fields[losses]}", markup=False, table_column=column),
            )
            to_stdout = not self.console.stderr  # otherwise rich would send printed text to standard error
            self._progress = Progress(*columns, console=self.console, transient=True, redirect_stdout=to_stdout)
        self._token = None if self.console.quiet else counted.set(self._track)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            counted.reset(self._token)
        if self._progress is not None:
            self._progress.stop()

    def _track(self, batches: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
        """Yields the same batches of rows, and shows how many rows are done."""
        progress, total, count, start = self._progress, sum(map(len, batches)), 0, self._begin()
        if progress is None:
            for rows in batches:
                yield rows
                count += len(rows)
                if self._is_due() and count < total:
                    eta = _describe_remaining(start, count, total)
                    self.console.print(f"{count:,} of {total:,} examples  {eta}", soft_wrap=True)
            return
        bar, was_drawn = progress.add_task("examples", total=total, losses=""), progress.live.is_started
        progress.start()
        try:
            for rows in batches:
                yield rows
                progress.advance(bar, len(rows))
        finally:
            if not was_drawn:
                progress.stop()  # before its last line is removed, which would leave an empty one
            progress.remove_task(bar)

    def _begin(self) -> float:
        """Returns the time; without a terminal, the next line comes a minute later."""
        now = time.monotonic()
        if self._progress is None:
            self._shown_at = now
        return now

    def _is_due(self) -> bool:
        """True a few times per second in a terminal, elsewhere once a minute."""
        now = time.monotonic()
        if now - self._shown_at <= (LINE_SECONDS if self._progress is None else 0.3):
            return False
        self._shown_at = now
        return True


class Reporter(Tracker):
    """Progress of training, on a console; nothing on a quiet console."""

    def __init__(self, console: Console, selection: str) -> None:
        super().__init__(console)
        self.selection = selection

    def __enter__(self) -> Self:
        super().__enter__()
        if self._progress is not None:
            self._progress.start()
            self._stage_bar = self._progress.add_task("stage", losses="", visible=False)
            self._epoch_bar = self._progress.add_task("epoch", losses="", visible=False)
        return self

    def say(self, text: str | Text) -> None:
        """Print one line."""
        self.console.print(text, soft_wrap=True)

    def stage(self, stage: Stage, epoch: int, epochs: Epochs | str) -> None:
        """Report that a stage starts or resumes; `epochs` may be an epoch's length in words."""
        steps = ((phase.name, phase.player.steps) for phase in stage.phases)
        players = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in steps)
        rounds = f", {stage.rounds} rounds per batch" if stage.rounds > 1 else ""
        plan = f": {players}{rounds}; at most {stage.epochs} epochs of {_describe_size(epochs)}" if stage.phases else ""
        self.say(f"stage {stage.name}{plan}")
        self._epochs = stage.epochs
        if self._progress is not None:
            self._progress.update(
                self._stage_bar, description=f"{stage.name}, epochs", total=stage.epochs, completed=epoch, visible=True
            )

    def epoch(self, epoch: int, batches: int, finished_batches: int) -> None:
        """Report that an epoch starts or resumes at batch `finished_batches`."""
        self._epoch, self._batches, self._first_batch = epoch, batches, finished_batches
        self._started_at = self._begin()
        if self._progress is not None:
            self._progress.reset(self._epoch_bar, total=batches, completed=finished_batches, visible=True)
            self._progress.update(self._epoch_bar, description=f"epoch {epoch + 1}/{self._epochs}")

    def batch(self, finished_batches: int, means: Means) -> None:
        """Report a finished batch: on a terminal a few times per second, elsewhere by a line per minute."""
        if not self._is_due():
            return
        if self._progress is not None:
            losses = _format(means())[: max(0, self.console.width - FIXED)]  # rich would narrow the other columns
            self._progress.update(self._epoch_bar, completed=finished_batches, losses=losses)
        elif finished_batches < self._batches:
            eta = _describe_remaining(
                self._started_at, finished_batches - self._first_batch, self._batches - self._first_batch
            )
            self.say(
                f"epoch {self._epoch + 1:3d}  {finished_batches:,} of {self._batches:,} batches  "
                f"{_format(means())}  {eta} in it"
            )

    def epoch_done(self, record: Mapping[str, Any], seconds: float, best: float) -> None:
        """Print one line with the losses of each phase and the score."""
        score = self.selection if record["score"] == record["validation"].get(self.selection) else "score"
        text = f"epoch {record['epoch'] + 1:3d}  {_format(record['losses'])}  validation {score} {record['score']:.4f} "
        mark = ("(new best)", "green") if record["best"] else f"(best {best:.4f})"
        self.say(Text.assemble(visible(text), mark, f"  {seconds:.1f} s"))
        if self._progress is not None:
            self._progress.advance(self._stage_bar)


def _describe_remaining(start: float, count: int, total: int) -> str:
    """The remaining time, in words, of work of which `count` of `total` units were done since `start`."""
    seconds = (time.monotonic() - start) / count * (total - count)
    return f"about {max(1, round(seconds / 60))} min left"


def _describe_size(epochs: Epochs | str) -> str:
    """The length of an epoch, in words."""
    if isinstance(epochs, str):
        return epochs
    pass_batches, examples = epochs.batches_of_a_pass, f"{len(epochs.lengths)} examples"
    batches = f"{epochs.batches} batches of {epochs.batch_size}"
    if epochs.batches < pass_batches:
        return f"{batches}; a pass over the {examples} has {pass_batches:,}"
    passes = (
        f" ({epochs.passes} passes over {examples})"
        if pass_batches < epochs.batches == epochs.passes * pass_batches
        else ""
    )
    return batches + passes


def _format(means: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in means.items())
