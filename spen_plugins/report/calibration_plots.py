"""Reliability diagrams of finished runs: how often decisions of a probability are right (Guo et al. 2017, Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spen_plugins.errors import ConfigError
from spen_plugins.figures.kit import styled
from spen_plugins.figures.layout import legend_below, looks, new_figure
from spen_plugins.scores.calibration import BINS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.runs.many.groups import Group


@styled
def calibration_figure(groups: Sequence[Group], part: str = "test") -> Figure:
    """The share of right decisions over their mean probability, with each run's own temperature.

    A point is a bin of all runs of a group together, its area the bin's share of their decisions; below the dotted line
    a net is overconfident. The legend has the mean of the runs' expected calibration errors.

    Raises:
        ConfigError: no run has bins of that part.
    """
    figure = new_figure(4.2, 4)
    axis = figure.add_subplot()
    axis.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1)
    for (colour, style), group in zip(looks(), groups, strict=False):
        fits = [fit for run in group.runs if (fit := (run.calibration() or {}).get(part, {})).get("bins")]
        if not fits:
            continue
        count, probability, right = _join(np.array([row for fit in fits for row in fit["bins"]]))
        error = np.mean([fit["ece"] for fit in fits])
        label = f"{group.label} (error {100 * error:.1f} %)"
        axis.plot(probability, right, color=colour, linestyle=style, label=label)
        axis.scatter(probability, right, 4 + 120 * count / count.sum(), color=colour, alpha=0.6, linewidth=0)
    if not axis.collections:
        raise ConfigError(
            f"no run has calibration bins of part {part}. Runs whose task reports no probabilities have none; for "
            "older runs, spen calibrate RUN writes those of the validation part"
        )
    axis.set(title=f"calibration, {part}", xlabel="mean probability", ylabel="share of right decisions", aspect="equal")
    legend_below(figure, axis)
    return figure


def _join(rows: np.ndarray) -> np.ndarray:
    """Bins of several runs, `(row, 3)` -> those of all together, `(3, bin)`, told apart by their mean probability."""
    places = np.ceil(rows[:, 1] * BINS).clip(1)
    joined = [rows[places == place] for place in np.unique(places)]
    return np.stack([[b[:, 0].sum(), *np.average(b[:, 1:], axis=0, weights=b[:, 0])] for b in joined]).T
