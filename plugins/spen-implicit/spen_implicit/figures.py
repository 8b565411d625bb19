"""Figures of `spen plot`: an energy's second derivatives."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from spen_plugins.figures import Out, Run, group_of, save_figure

Shown = Annotated[
    int, typer.Option("--labels", min=2, help="Number of labels or tags, the most frequent of the training part.")
]
Examples = Annotated[int, typer.Option(min=1, help="Number of validation examples, the first ones.")]


class At(StrEnum):
    """Outputs at which an energy is differentiated."""

    output = "output"
    gold = "gold"


Where = Annotated[At, typer.Option(help="Where the energy is differentiated: at the net's relaxed output, or at gold.")]


def hessian(run: Run, labels: Shown = 40, at: Where = At.output, examples: Examples = 50, out: Out = None) -> None:
    """Pairs in the energy: −∂²E/∂y∂y of labels or of neighbouring tags, next to counts in the data."""
    from spen_implicit.hessian import compare_pairs
    from spen_implicit.hessian_plots import hessian_figure

    group = group_of(run)
    pairs = compare_pairs(group.runs[0], group.label, labels, at.value, examples)
    typer.echo(pairs.summarise())
    save_figure(hessian_figure(pairs), group, "hessian", out)
