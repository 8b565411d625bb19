"""The figures of `spen plot gbi` and `spen plot trajectory`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spen_plugins import ConfigError
from spen_plugins.figures import Out, find_groups, save, save_figure

Seeds = Annotated[
    str, typer.Argument(metavar="RUN", show_default=False, help="A run folder, or a folder with one run per seed.")
]
Alone = Annotated[
    list[str] | None,
    typer.Argument(metavar="ENERGY_ALONE", show_default=False, help="Runs of energies trained alone."),
]
Score = Annotated[str | None, typer.Option(help="Score to plot (default: the selection score).")]
Trajectories = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="Output of `spen evaluate --trajectory --out FILE`; label=file names one.",
    ),
]


def gbi(run: Seeds, alone: Alone = None, out: Out = None) -> None:
    """Scores of gradient-based inference while the energy trains; needs runs with trainer.probe."""
    from spen_e2e.gbi_figures import gbi_figure

    group, *others = find_groups([run, *(alone or [])])
    save_figure(gbi_figure(group, others), group, "gbi", out)


def trajectory(files: Trajectories, score: Score = None, out: Out = None) -> None:
    """Energy and score after each step of gradient-based inference."""
    from spen_e2e.gbi_figures import read_trajectory, trajectory_figure

    named = dict(map(_split_label, files))
    if len(named) < len(files):
        raise ConfigError("two files have the same label; give each its own: label=file")
    figure = trajectory_figure({label: read_trajectory(path) for label, path in named.items()}, score)
    for path in save(figure, out or next(iter(named.values())).with_suffix("")):
        typer.echo(str(path))


def _split_label(word: str) -> tuple[str, Path]:
    """Label and file of an argument; the label defaults to the file's name."""
    label, _, rest = ("", "", word) if Path(word).is_file() else word.rpartition("=")
    path = Path(rest)
    if not path.is_file():
        raise ConfigError(
            f"there is no file {path}; expected what spen evaluate RUN FILE --trajectory --out FILE wrote"
        )
    return label or path.stem, path
