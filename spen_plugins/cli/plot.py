"""The core's figures of finished runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from spen_plugins.figures.options import Out, Run, Runs, group_of, groups_of, save_figure

Labels = Annotated[
    list[str],
    typer.Option(metavar="I,K", show_default=False, help="Two labels, by name or number; may be given several times."),
]
Others = Annotated[str, typer.Option(help="The value of all other labels, 0 to 1, or 'gold': the example's.")]
Example = Annotated[int, typer.Option(min=0, help="Validation example, for plots that need one.")]
ScoreOnly = Annotated[bool, typer.Option("--score-only", help="Only the validation score, without losses and norms.")]
Shown = Annotated[
    int, typer.Option("--labels", min=2, help="Number of labels or tags, the most frequent of the training part.")
]
Examples = Annotated[int, typer.Option(min=1, help="Number of validation examples, the first ones.")]


class At(StrEnum):
    """Outputs at which an energy is differentiated."""

    output = "output"
    gold = "gold"


Where = Annotated[At, typer.Option(help="Where the energy is differentiated: at the net's relaxed output, or at gold.")]


def training(runs: Runs, score_only: ScoreOnly = False, out: Out = None) -> None:
    """Validation score, losses and gradient norms over epochs."""
    from spen_plugins.research.training_plots import training_figure

    groups = groups_of(runs)
    save_figure(training_figure(groups, score_only), groups[0], "training", out)


def gradients(run: Run, labels: Labels, others: Others = "0", example: Example = 0, out: Out = None) -> None:
    """The energy's gradient for label k as a function of label i, next to cross entropy's."""
    from spen_plugins.research.label_plots import couplings, gradients_figure

    group = group_of(run)
    save_figure(
        gradients_figure(couplings(group.runs[0], group.label, labels, others, example)), group, "gradients", out
    )


def hessian(run: Run, labels: Shown = 40, at: Where = At.output, examples: Examples = 50, out: Out = None) -> None:
    """What the energy has learned about pairs: −∂²E/∂y∂y of labels or neighbouring tags, next to counts."""
    from spen_plugins.research.hessian import learned_pairs
    from spen_plugins.research.hessian_plots import hessian_figure

    group = group_of(run)
    found = learned_pairs(group.runs[0], group.label, labels, at.value, examples)
    typer.echo(found.summary())
    save_figure(hessian_figure(found), group, "hessian", out)


def game(runs: Runs, out: Out = None) -> None:
    """Losses after the nets' steps and gradient norms in joint training; needs runs of infnet.joint."""
    from spen_plugins.research.game_plots import game_figure

    groups = groups_of(runs)
    save_figure(game_figure(groups), groups[0], "game", out)
