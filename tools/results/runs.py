"""Runs behind tables of results, trained or resumed where they are missing, and their scores."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spen_plugins.config.evaluation import evaluate
from spen_plugins.runs.options import RunOptions
from spen_plugins.runs.train import runner
from spen_plugins.scores.bootstrap import estimate

QUIET = RunOptions("cpu", quiet=True)


def finish(run: Path, words: Sequence[str]) -> Path:
    """Trains or resumes a run by `spen-run` with these words, in a process of its own."""
    if not (run / "metrics.json").exists():
        command = ["--resume", str(run)] if (run / "config.json").exists() else [*words, "--out", str(run)]
        subprocess.run([sys.executable, "-m", "spen_plugins.cli.run", *command, "--quiet"], check=True)
    return run


def finish_here(run: Path, config: str, arguments: Mapping[str, str]) -> Path:
    """Trains or resumes a run of a config in this process: starting another takes longer than small data sets."""
    if (run / "metrics.json").exists():
        return run
    if (run / "config.json").exists():
        return runner.resume(run, QUIET)
    return runner.run(evaluate(config, arguments), config, run, QUIET)


def read_scores(run: Path, part: str) -> dict[str, Any]:
    """The scores of a finished run on a part."""
    return json.loads((run / "metrics.json").read_text(encoding="utf-8"))[part]


def write_mean(runs: Sequence[Path], part: str, score: str, digits: int) -> str:
    """The mean of a score over runs, in per cent, with its standard error."""
    return estimate([100 * read_scores(run, part)[score] for run in runs]).text(1, digits)
