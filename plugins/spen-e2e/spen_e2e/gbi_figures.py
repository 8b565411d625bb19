"""Gradient-based inference during training of an energy (Lee et al. 2021, Figs 3-5), and step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spen_plugins import ConfigError, DataError, did_you_mean, read_json_lines
from spen_plugins.figures import (
    COLOURS,
    Record,
    draw_seeds,
    legend_below,
    looks,
    mark_stages,
    new_figure,
    points,
    selection,
    styled,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.figures import Group

CURVES = {"net": ("net", "-"), "net_gbi": ("net + GBI", "--"), "random_gbi": ("random + GBI", ":")}
"""Entries of a history record's `probe`: name in the legend and line style."""


@styled
def gbi_figure(group: Group, alone: Sequence[Group] = ()) -> Figure:
    """The validation score over epochs of the net, of GBI from its outputs, of GBI from random outputs, and of energies
    trained alone.

    Args:
        group: a run, or one experiment's seeds, with `trainer.probe` set.
        alone: runs that predict by GBI; their validation scores over the epochs of their energies are drawn.

    Raises:
        ConfigError: a run has no probes.
    """
    histories = [run.history() for run in group.runs]
    for run, history in zip(group.runs, histories, strict=True):
        if not any("probe" in record for record in history):
            raise ConfigError(
                f"{run.path} has no scores of gradient-based inference: they are taken while it trains, where the "
                "config asks for them. Train again with trainer.probe='{}' (of a run with an energy)"
            )
    score = selection([record for history in histories for record in history]) or "score"
    figure = new_figure(6.4, 4.2)
    axis = figure.subplots()
    for colour, (name, (label, style)) in zip(COLOURS, CURVES.items(), strict=False):
        draw_seeds(
            axis, [points(h, lambda r, n=name: r.get("probe", {}).get(n)) for h in histories], label, colour, style
        )
    for colour, other in zip(COLOURS[len(CURVES) :] * len(alone), alone, strict=False):
        curves = [
            points(_select_energy_epochs(run.history()), lambda r: r["validation"].get(score)) for run in other.runs
        ]
        draw_seeds(axis, curves, f"{other.label} (energy alone)", colour, "-.")
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
    inference net: Tu & Gimpel 2019).

    Args:
        trajectories: label -> the lines of `spen evaluate --trajectory`.
        score: name of the score; by default the task's selection score.

    Raises:
        ConfigError: an unknown score.
    """
    first = next(iter(trajectories.values()))
    known = [name for name, value in first[0]["scores"].items() if isinstance(value, (int, float))]
    score = score or selection([{"validation": line["scores"], "score": line["score"]} for line in first])
    if score not in known:
        raise ConfigError(f"--score {score}: no such score.{did_you_mean(score, known)} Scores: {', '.join(known)}")
    figure = new_figure(7.4, 3.4)
    energies, right = figure.subplots(1, 2)
    for (colour, style), (label, lines) in zip(looks(), trajectories.items(), strict=False):
        for axis, values in (
            (energies, [line["energy"] for line in lines]),
            (right, _read_scores(label, lines, score)),
        ):
            draw_seeds(axis, [np.column_stack([[line["step"] for line in lines], values])], label, colour, style)
    energies.set(title="energy", xlabel="step", ylabel="mean per example")
    right.set(title=score, xlabel="step", ylabel=score)
    for axis in (energies, right):
        whole_numbers(axis)
    legend_below(figure, energies)
    return figure


def read_trajectory(path: Path) -> list[Record]:
    """The lines of `spen evaluate --trajectory`, one per step.

    Raises:
        DataError: the file holds something else, or nothing.
    """
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
