"""Settings of a run that don't change its result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunOptions:
    """Settings of a run, or of several, that don't change their results.

    Attributes:
        device: "cpu", "cuda", "cuda:1", "mps"; None: the best available.
        quiet: if true, no progress and no table are printed.
        checkpoint_seconds: minimum time between two checkpoints.
        jobs: number of parallel runs if there are several; each is a process with one thread.
        best: if true, a folder of several methods and seeds predicts with its best run, not with a mean of runs.
        printed_texts: notes on the data and definitions of scores that earlier runs have printed; several runs print
            each once.
    """

    device: str | None = None
    quiet: bool = False
    checkpoint_seconds: float = 60.0
    jobs: int = 1
    best: bool = False
    printed_texts: set[str] | None = None


DEFAULTS = RunOptions()
