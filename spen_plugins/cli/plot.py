"""`spen plot`: figures of finished runs, as PNG and SVG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spen_plugins.cli.common import Runs, guarded
from spen_plugins.cli.common import app as make_app

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.research.groups import Group

app = make_app("Figures of finished runs, as PNG and SVG.")

Run = Annotated[
    str, typer.Argument(metavar="RUN", show_default=False, help="A run folder; of several seeds the first.")
]
Seeds = Annotated[
    str, typer.Argument(metavar="RUN", show_default=False, help="A run folder, or a folder of one run a seed.")
]
Alone = Annotated[
    list[str] | None,
    typer.Argument(metavar="ENERGY_ALONE", show_default=False, help="Runs of energies that were trained alone."),
]
Labels = Annotated[
    list[str],
    typer.Option(metavar="I,K", show_default=False, help="Two labels, by name or number; may be given several times."),
]
Others = Annotated[str, typer.Option(help="The value of all other labels, 0 to 1, or 'gold': those of the example.")]
Example = Annotated[int, typer.Option(min=0, help="Validation example, where one is needed.")]
Out = Annotated[
    Path | None,
    typer.Option(metavar="STEM", show_default=False, help="Writes STEM.png and STEM.svg; RUN/plots/NAME by default."),
]


@app.command()
@guarded
def training(runs: Runs, out: Out = None) -> None:
    """Validation score, losses and gradient norms over epochs."""
    from spen_plugins.research.plots import training_figure

    groups = _groups(runs)
    _save(training_figure(groups), groups[0], "training", out)


@app.command()
@guarded
def gradients(run: Run, labels: Labels, others: Others = "0", example: Example = 0, out: Out = None) -> None:
    """How the energy's gradient for label k changes with label i, beside cross entropy's."""
    from spen_plugins.research.label_plots import couplings, gradients_figure

    [group] = _groups([run])
    if len(group.runs) > 1:
        typer.echo(f"note: of several seeds the first is plotted: {group.runs[0].path}", err=True)
    _save(gradients_figure(couplings(group.runs[0], group.label, labels, others, example)), group, "gradients", out)


@app.command()
@guarded
def gbi(run: Seeds, alone: Alone = None, out: Out = None) -> None:
    """What gradient-based inference makes of the energy while it trains; needs runs with trainer.probe."""
    from spen_plugins.research.gbi_plots import gbi_figure

    group, *others = _groups([run, *(alone or [])])
    _save(gbi_figure(group, others), group, "gbi", out)


def _groups(words: list[str]) -> list[Group]:
    """Runs that are still training are plotted as far as they are."""
    from spen_plugins.research.groups import read_groups

    groups = read_groups(words, unfinished=True)
    for note in (note for group in groups for note in group.notes):
        typer.echo(f"note: {note}", err=True)
    return groups


def _save(figure: Figure, group: Group, name: str, out: Path | None) -> None:
    from spen_plugins.research.plots import save

    first = group.runs[0].path
    folder = first if len(group.runs) == 1 else first.parent
    for path in save(figure, out or folder / "plots" / name):
        typer.echo(str(path))
