"""The core's figures of finished runs."""

from __future__ import annotations

from typing import Annotated

import typer

from spen_plugins.figures.options import Out, Runs, find_groups, save_figure

ScoreOnly = Annotated[bool, typer.Option("--score-only", help="Only the validation score, without losses and norms.")]


def training(runs: Runs, score_only: ScoreOnly = False, out: Out = None) -> None:
    """Validation score, losses and gradient norms over epochs."""
    from spen_plugins.report.training_plots import training_figure

    groups = find_groups(runs)
    save_figure(training_figure(groups, score_only), groups[0], "training", out)
