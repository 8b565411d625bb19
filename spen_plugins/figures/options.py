"""Arguments of functions of the hook `spen_figure`, the runs that they name, and saving."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spen_plugins.errors import ConfigError, say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.runs.many.groups import Group

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        show_default=False,
        help="Run folders, folders with one run per seed, or folders of several methods; label=folder names one.",
    ),
]
"""Argument of a figure of several runs."""
Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN", show_default=False, help="A run folder, or a folder of seeds, of which the first is used."
    ),
]
"""Argument of a figure of one run; see `group_of`."""
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="STEM",
        show_default=False,
        help="Write STEM.png and STEM.svg, or a PDF to NAME.pdf (default: RUN/plots/NAME, or FILE without its suffix).",
    ),
]
"""Option for the place of a figure's files; see `save_figure`."""


def find_groups(words: list[str]) -> list[Group]:
    """Groups of runs, with unfinished runs as far as they are trained."""
    from spen_plugins.runs.many.groups import read_groups

    groups = read_groups(words, unfinished=True)
    for note in (note for group in groups for note in group.notes):
        say(f"note: {note}")
    return groups


def group_of(word: str) -> Group:
    """The group for a figure of one run; if it has several seeds, the first is plotted.

    Raises:
        ConfigError: the folder holds runs of several methods.
    """
    group, *other_groups = find_groups([word])
    if other_groups:
        paths = ", ".join(str(member.runs[0].path.parent) for member in (group, *other_groups))
        raise ConfigError(f"{word} holds runs of several methods; name one of {paths}")
    if len(group.runs) > 1:
        say(f"note: found several seeds; plotting the first: {group.runs[0].path}")
    return group


def save_figure(figure: Figure, group: Group, name: str, out: Path | None) -> None:
    """Write a figure as PNG and SVG, or as PDF, by default below the group's folder, and print the files' names."""
    from spen_plugins.figures.kit import save

    first = group.runs[0].path
    folder = first if len(group.runs) == 1 else first.parent
    for path in save(figure, out or folder / "plots" / name):
        typer.echo(str(path))
