"""Progress of a run: a bar in a terminal, a line a minute elsewhere."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from spen_plugins.errors import RunError
from spen_plugins.loop.evaluation import counted
from spen_plugins.loop.order import Epochs
from spen_plugins.loop.progress import Reporter, Tracker


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # on a dumb one nothing is drawn


LOSSES = {"inference_net.energy": -12.3456, "inference_net.cross_entropy": 0.12345, "energy.margin": 3.4567}


@pytest.mark.parametrize(
    ("width", "losses"),
    [
        (80, "inference_net"),
        (160, "inference_net.energy -12.35  inference_net.cross_entropy 0.1235  energy.margin 3.457"),
    ],
)
def test_a_line_has_counts_and_times_and_the_losses_that_fit(width: int, losses: str) -> None:
    seen = io.StringIO()
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    stage: Any = SimpleNamespace(name="cross_entropy", phases=[], rounds=1, epochs=60)
    with Reporter(console, "f1") as reporter:
        reporter.stage(stage, 3, Epochs(np.ones(1200), 1, 1, 0, 0))
        reporter.epoch(3, 1200, 10)
        reporter.batch(30, lambda: LOSSES)
        Console(file=seen, width=width).print(reporter._progress.make_tasks_table(reporter._progress.tasks))
    whole, epoch = seen.getvalue().splitlines()
    assert whole.startswith("cross_entropy, epochs ") and "3/60" in whole and "30/1200" in epoch
    for line in (whole, epoch):
        assert len(line) <= width and "0:00:00 left -:--:--" in line
    assert epoch.rstrip().endswith(losses)


def test_without_a_terminal_there_is_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed epoch's rate is that of the batches since; the last batch has the epoch's own line."""
    written, now = io.StringIO(), 1000.0
    monkeypatch.setattr("spen_plugins.loop.progress.time.monotonic", lambda: now)
    with Reporter(Console(file=written, width=40), "f1") as reporter:
        reporter.epoch(3, 1200, 600)
        for done in range(601, 1201):
            now += 0.5
            reporter.batch(done, lambda: {"net.energy": -1.0})
    assert written.getvalue().splitlines() == [
        "epoch   4  721 of 1,200 batches  net.energy -1  about 4 min left in it",
        "epoch   4  842 of 1,200 batches  net.energy -1  about 3 min left in it",
        "epoch   4  963 of 1,200 batches  net.energy -1  about 2 min left in it",
        "epoch   4  1,084 of 1,200 batches  net.energy -1  about 1 min left in it",
    ]


BATCHES = [np.arange(4), np.arange(4), np.arange(2)]


def test_predictions_have_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    written, now = io.StringIO(), 1000.0
    monkeypatch.setattr("spen_plugins.loop.progress.time.monotonic", lambda: now)
    with Tracker(Console(file=written, width=40)):
        for _ in counted.get()(BATCHES):
            now += 90
    assert written.getvalue().splitlines() == [
        "4 of 10 examples  about 2 min left",
        "8 of 10 examples  about 1 min left",
    ]
    assert counted.get() is iter, "outside, nothing is shown"
    with Tracker(Console(file=written, quiet=True)):
        assert counted.get() is iter
    monkeypatch.undo()


def test_a_bar_on_standard_error_leaves_standard_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """It also ends with an error, and a terminal's cursor is visible again."""
    with pytest.raises(RunError), Tracker(Console(stderr=True, force_terminal=True)):
        for rows in counted.get()(BATCHES):
            print(len(rows))
            if len(rows) == 2:
                raise RunError("stopped")
    seen = capsys.readouterr()
    assert seen.out == "4\n4\n2\n" and "examples" in seen.err and "\x1b[?25h" in seen.err[-20:]


def test_a_dumb_terminal_has_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("spen_plugins.loop.progress.LINE_SECONDS", 0.0)
    written = io.StringIO()
    with Tracker(Console(file=written, force_terminal=True)):
        list(counted.get()(BATCHES))
    assert written.getvalue().splitlines() == [f"{done} of 10 examples  about 1 min left" for done in (4, 8)]


def test_a_finished_bar_leaves_no_empty_line() -> None:
    written = io.StringIO()
    with Tracker(Console(file=written, force_terminal=True, color_system=None)):
        list(counted.get()(BATCHES))
    assert written.getvalue().endswith("\n\x1b[?25h\r\x1b[1A\x1b[2K"), "a new line, and the cursor up again"


def test_training_shows_how_far_its_validation_is() -> None:
    seen = io.StringIO()
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    with Reporter(console, "f1") as reporter:
        reporter.stage(SimpleNamespace(name="train", phases=[], rounds=1, epochs=2), 0, Epochs(np.ones(12), 1, 1, 0, 0))
        next(batches := counted.get()(BATCHES)), next(batches)
        Console(file=seen, width=80).print(reporter._progress.make_tasks_table(reporter._progress.tasks))
    assert "examples" in seen.getvalue() and " 4/10 " in seen.getvalue()
