"""The core's figures of finished runs."""

from __future__ import annotations

from typing import Annotated

import typer

from spen_plugins.figures.options import Out, Run, Runs, find_groups, group_of, save_figure

Labels = Annotated[
    list[str],
    typer.Option(metavar="I,K", show_default=False, help="Two labels, by name or number; may be given several times."),
]
Others = Annotated[str, typer.Option(help="The value of all other labels, 0 to 1, or 'gold': the example's.")]
Example = Annotated[int, typer.Option(min=0, help="Validation example, for plots that need one.")]
ScoreOnly = Annotated[bool, typer.Option("--score-only", help="Only the validation score, without losses and norms.")]


def training(runs: Runs, score_only: ScoreOnly = False, out: Out = None) -> None:
    """Validation score, losses and gradient norms over epochs."""
    from spen_plugins.report.training_plots import training_figure

    groups = find_groups(runs)
    save_figure(training_figure(groups, score_only), groups[0], "training", out)


def gradients(run: Run, labels: Labels, others: Others = "0", example: Example = 0, out: Out = None) -> None:
    """The energy's gradient for label k as a function of label i, next to cross entropy's."""
    from spen_plugins.report.label_plots import couplings, gradients_figure

    group = group_of(run)
    save_figure(
        gradients_figure(couplings(group.runs[0], group.label, labels, others, example)), group, "gradients", out
    )
