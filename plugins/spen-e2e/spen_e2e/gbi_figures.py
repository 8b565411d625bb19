"""Gradient-based inference during training of an energy (Lee et al. 2021, Figs 3-5), and step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from spen_plugins import ConfigError, DataError, did_you_mean, read_json_lines
from spen_plugins.figures import (
    COLOURS,
    Out,
    Record,
    draw_seeds,
    find_groups,
    legend_below,
    looks,
    mark_stages,
    new_figure,
    points,
    save,
    save_figure,
    selection,
    styled,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.figures import Group

CURVES = {"net": ("net", "-"), "net_gbi": ("net + GBI", "--"), "random_gbi": ("random + GBI", ":")}
"""Entries of a history record's `probe`: name in the legend and line style."""
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
        help="Output of `spen evaluate --trajectory --out FILE`; label=file sets its label.",
    ),
]


def gbi(run: Seeds, alone: Alone = None, out: Out = None) -> None:
    """Draw scores of gradient-based inference while the energy trains; needs runs with trainer.probe."""
    group, *others = find_groups([run, *(alone or [])])
    save_figure(gbi_figure(group, others), group, "gbi", out)


def trajectory(files: Trajectories, score: Score = None, out: Out = None) -> None:
    """Draw energy and score after each step of gradient-based inference."""
    files_by_label = dict(map(_split_label, files))
    if len(files_by_label) < len(files):
        raise ConfigError("two files have the same label; give each its own: label=file")
    figure = trajectory_figure({label: read_trajectory(path) for label, path in files_by_label.items()}, score)
    for path in save(figure, out or next(iter(files_by_label.values())).with_suffix("")):
        typer.echo(str(path))


def _split_label(word: str) -> tuple[str, Path]:
    """Label and file of an argument; the label defaults to the file's name."""
    label, _, rest = ("", "", word) if Path(word).is_file() else word.rpartition("=")
    path = Path(rest)
    if not path.is_file():
        raise ConfigError(
            f"found no file {path}; expected the output of spen evaluate RUN FILE --trajectory --out FILE"
        )
    return label or path.stem, path


@styled
def gbi_figure(group: Group, other_groups: Sequence[Group] = ()) -> Figure:
    """The validation score over epochs of the net, of GBI from its outputs, of GBI from random outputs, and of energies
    trained alone, which predict by GBI. `ConfigError` if a run of the group has no probes (`trainer.probe`)."""
    histories = [run.history() for run in group.runs]
    for run, history in zip(group.runs, histories, strict=True):
        if not any("probe" in record for record in history):
            raise ConfigError(
                f"{run.path} has no scores of gradient-based inference, which training measures only with "
                "trainer.probe. Train again with an energy and trainer.probe='{}'"
            )
    score = selection([record for history in histories for record in history]) or "score"
    figure = new_figure(6.4, 4.2)
    axis = figure.subplots()
    for colour, (name, (label, style)) in zip(COLOURS, CURVES.items(), strict=False):
        draw_seeds(
            axis, [points(h, lambda r, n=name: r.get("probe", {}).get(n)) for h in histories], label, colour, style
        )
    for colour, other_group in zip(COLOURS[len(CURVES) :] * len(other_groups), other_groups, strict=False):
        curves = [
            points(_select_energy_epochs(run.history()), lambda r: r["validation"].get(score))
            for run in other_group.runs
        ]
        draw_seeds(axis, curves, f"{other_group.label} (energy alone)", colour, "-.")
    mark_stages(axis, histories)
    axis.set(xlabel="epoch", ylabel=f"validation {score}")
    axis.set_title(f"{group.label}: the energy under gradient-based inference", loc="left")
    whole_numbers(axis)
    legend_below(figure, axis)
    return figure


def _select_energy_epochs(history: Sequence[Record]) -> list[Record]:
    """The epochs in which the energy trains; an earlier stage may train the net from which GBI starts."""
    return [record for record in history if "energy" in record["updates"]]


@styled
def trajectory_figure(trajectories: Mapping[str, Sequence[Record]], score: str | None = None) -> Figure:
    """The mean energy and a score after each step of gradient-based inference, the start included (warm-started from an
    inference net: Tu & Gimpel 2019), by label. The score defaults to the task's selection score; `ConfigError` if it is
    unknown."""
    first = next(iter(trajectories.values()))
    names = [name for name, value in first[0]["scores"].items() if isinstance(value, (int, float))]
    score = score or selection([{"validation": line["scores"], "score": line["score"]} for line in first])
    if score not in names:
        raise ConfigError(f"--score {score}: unknown score.{did_you_mean(score, names)} Scores: {', '.join(names)}")
    figure = new_figure(7.4, 3.4)
    energy_axis, score_axis = figure.subplots(1, 2)
    for (colour, style), (label, lines) in zip(looks(), trajectories.items(), strict=False):
        for axis, values in (
            (energy_axis, [line["energy"] for line in lines]),
            (score_axis, _read_scores(label, lines, score)),
        ):
            draw_seeds(axis, [np.column_stack([[line["step"] for line in lines], values])], label, colour, style)
    energy_axis.set(title="energy", xlabel="step", ylabel="mean per example")
    score_axis.set(title=score, xlabel="step", ylabel=score)
    for axis in (energy_axis, score_axis):
        whole_numbers(axis)
    legend_below(figure, energy_axis)
    return figure


def read_trajectory(path: Path) -> list[Record]:
    """The lines of `spen evaluate --trajectory`, one per step; `DataError` if the file holds something else, or
    nothing."""
    form = "a line of spen evaluate --trajectory: step, energy, score and scores"

    def check(line: Any) -> Record:
        if not isinstance(line, dict) or not {"step", "energy", "score", "scores"} <= line.keys():
            raise DataError(path, None, f"{line!r:.60}", form)
        return line

    return [line for _, line in read_json_lines(path, form, check)]


def _read_scores(label: str, lines: Sequence[Record], score: str) -> list[float]:
    if any(score not in line["scores"] for line in lines):
        raise ConfigError(f"{label} has no score {score!r}; it has: {', '.join(lines[0]['scores'])}")
    return [line["scores"][score] for line in lines]
