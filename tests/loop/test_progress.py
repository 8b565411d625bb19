"""The bar of a run: its times are seen in a terminal of any width."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from spen_plugins.loop.order import Epochs
from spen_plugins.loop.progress import Reporter

LOSSES = {"inference_net.energy": -12.3456, "inference_net.cross_entropy": 0.12345, "energy.margin": 3.4567}


def lines(width: int, losses: dict[str, float]) -> list[str]:
    """What is seen after the first batches of an epoch."""
    seen = io.StringIO()
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    stage: Any = SimpleNamespace(name="cross_entropy", phases=[], rounds=1, epochs=60)
    with Reporter(console, "f1") as reporter:
        reporter.stage(stage, 3, Epochs(np.ones(1200), 1, 1, 0, 0))
        reporter.epoch(3, 1200, 10)
        reporter.batch(30, lambda: losses)
        rows = reporter._progress.make_tasks_table(reporter._progress.tasks)
        Console(file=seen, width=width).print(rows)
    return seen.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 50, 60, 80, 100, 132, 200])
@pytest.mark.parametrize("losses", [{}, LOSSES])
def test_times_are_seen(width: int, losses: dict[str, float]) -> None:
    whole, epoch = lines(width, losses)
    assert "3/60" in whole and "30/1200" in epoch
    for line in (whole, epoch):
        assert len(line) <= width and "0:00:00 left -:--:--" in line


def test_losses_have_the_room_that_is_left() -> None:
    written = "inference_net.energy -12.35  inference_net.cross_entropy 0.1235  energy.margin 3.457"
    assert lines(200, LOSSES)[1].rstrip().endswith(written)
    assert lines(100, LOSSES)[1].rstrip().endswith("inference_net.energy …")
    assert lines(100, {})[0].startswith("cross_entropy, epochs ")


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
