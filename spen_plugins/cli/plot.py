"""`spen plot`: figures of finished runs, the core's and those of plugins, as PNG and SVG, or PDF."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from spen_plugins.cli.commands import Figures
from spen_plugins.cli.common import make_app
from spen_plugins.figures.options import Out, Runs, find_groups, save_figure

app = make_app(group=Figures)

Part = Annotated[Literal["test", "validation"], typer.Option(help="Part whose decisions are shown.")]
ScoreOnly = Annotated[
    bool, typer.Option("--score-only", help="Plot only the validation score, not losses and gradient norms.")
]


@app.callback(no_args_is_help=True)
def plot() -> None:
    """Draw figures of finished runs, as PNG and SVG, or as PDF with --out NAME.pdf.

    Example: spen plot training runs/first
    """


def training(runs: Runs, score_only: ScoreOnly = False, out: Out = None) -> None:
    """Draw the validation score, losses and gradient norms over epochs.

    Example: spen plot training runs/first
    """
    from spen_plugins.report.plots import training_figure

    groups = find_groups(runs)
    save_figure(training_figure(groups, score_only), groups[0], "training", out)


def calibration(runs: Runs, part: Part = "test", out: Out = None) -> None:
    """Draw a reliability diagram: how often decisions of each probability are right.

    Example: spen plot calibration runs/first
    """
    from spen_plugins.report.plots import calibration_figure

    groups = find_groups(runs)
    save_figure(calibration_figure(groups, part), groups[0], "calibration", out)
