"""Progress of a run: a bar in a terminal, one line per minute elsewhere."""

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
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal shows no bar


LOSSES = {"inference_net.energy": -12.3456, "inference_net.cross_entropy": 0.12345, "energy.margin": 3.4567}


@pytest.mark.parametrize(
    ("width", "losses"),
    [
        (80, "inference_net"),
        (160, "inference_net.energy -12.35  inference_net.cross_entropy 0.1235  energy.margin 3.457"),
    ],
)
def test_a_line_has_counts_and_times_and_the_losses_that_fit(width: int, losses: str) -> None:
    output = io.StringIO()
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    stage: Any = SimpleNamespace(name="cross_entropy", phases=[], rounds=1, epochs=60)
    with Reporter(console, "f1") as reporter:
        reporter.stage(stage, 3, Epochs(np.ones(1200), 1, 1, 0, 0))
        reporter.epoch(3, 1200, 10)
        reporter.batch(30, lambda: LOSSES)
        Console(file=output, width=width).print(reporter._progress.make_tasks_table(reporter._progress.tasks))
    stage_line, epoch_line = output.getvalue().splitlines()
    assert stage_line.startswith("cross_entropy, epochs ") and "3/60" in stage_line and "30/1200" in epoch_line
    for line in (stage_line, epoch_line):
        assert len(line) <= width and "0:00:00 left -:--:--" in line
    assert epoch_line.rstrip().endswith(losses)


def test_without_a_terminal_there_is_one_line_per_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The speed of a resumed epoch is that of the batches since. The epoch's own line stands for its last batch."""
    output, clock = io.StringIO(), 1000.0
    monkeypatch.setattr("spen_plugins.loop.progress.time.monotonic", lambda: clock)
    with Reporter(Console(file=output, width=40), "f1") as reporter:
        reporter.epoch(3, 1200, 600)
        for number in range(601, 1201):
            clock += 0.5
            reporter.batch(number, lambda: {"net.energy": -1.0})
    assert output.getvalue().splitlines() == [
        "epoch   4  721 of 1,200 batches  net.energy -1  about 4 min left in it",
        "epoch   4  842 of 1,200 batches  net.energy -1  about 3 min left in it",
        "epoch   4  963 of 1,200 batches  net.energy -1  about 2 min left in it",
        "epoch   4  1,084 of 1,200 batches  net.energy -1  about 1 min left in it",
    ]


BATCHES = [np.arange(4), np.arange(4), np.arange(2)]


def test_predictions_log_one_line_per_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    output, clock = io.StringIO(), 1000.0
    monkeypatch.setattr("spen_plugins.loop.progress.time.monotonic", lambda: clock)
    with Tracker(Console(file=output, width=40)):
        for _ in counted.get()(BATCHES):
            clock += 90
    assert output.getvalue().splitlines() == [
        "4 of 10 examples  about 2 min left",
        "8 of 10 examples  about 1 min left",
    ]
    assert counted.get() is iter, "outside, nothing is shown"
    with Tracker(Console(file=output, quiet=True)):
        assert counted.get() is iter
    monkeypatch.undo()


def test_a_bar_on_standard_error_leaves_standard_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """The bar also ends after an error, and the terminal's cursor is visible again."""
    with pytest.raises(RunError), Tracker(Console(stderr=True, force_terminal=True)):
        for rows in counted.get()(BATCHES):
            print(len(rows))
            if len(rows) == 2:
                raise RunError("stopped")
    captured = capsys.readouterr()
    assert captured.out == "4\n4\n2\n" and "examples" in captured.err and "\x1b[?25h" in captured.err[-20:]


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("spen_plugins.loop.progress.LINE_SECONDS", 0.0)
    output = io.StringIO()
    with Tracker(Console(file=output, force_terminal=True)):
        list(counted.get()(BATCHES))
    assert output.getvalue().splitlines() == [f"{number} of 10 examples  about 1 min left" for number in (4, 8)]


def test_a_finished_bar_leaves_no_empty_line() -> None:
    output = io.StringIO()
    with Tracker(Console(file=output, force_terminal=True, color_system=None)):
        list(counted.get()(BATCHES))
    assert output.getvalue().endswith("\n\x1b[?25h\r\x1b[1A\x1b[2K"), "a new line, and the cursor up again"


def test_training_shows_the_progress_of_its_validation() -> None:
    output = io.StringIO()
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    with Reporter(console, "f1") as reporter:
        reporter.stage(SimpleNamespace(name="train", phases=[], rounds=1, epochs=2), 0, Epochs(np.ones(12), 1, 1, 0, 0))
        next(batches := counted.get()(BATCHES)), next(batches)
        Console(file=output, width=80).print(reporter._progress.make_tasks_table(reporter._progress.tasks))
    assert "examples" in output.getvalue() and " 4/10 " in output.getvalue()
