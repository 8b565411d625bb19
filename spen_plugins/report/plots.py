"""Figures of runs: training curves, and reliability diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spen_plugins.errors import ConfigError
from spen_plugins.figures.kit import Curve, Record, Scale, draw_seeds, mark_stages, points, selection, set_scale, styled
from spen_plugins.figures.layout import filled, legend_below, looks, new_figure, whole_numbers
from spen_plugins.scores.calibration import BINS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spen_plugins.runs.many.groups import Group

Histories = Mapping[str, Sequence[Sequence[Record]]]
"""Records of each group's runs, by the group's label."""
Panel = tuple[str, str, Curve, Scale]


@styled
def training_figure(groups: Sequence[Group], score_only: bool = False) -> Figure:
    """Training curves: validation score, mean loss and gradient norm of each term, over epochs.

    One colour per group (beyond eight, lines are dashed). The epochs of a run with several stages follow one another.
    Quantities that no run measured have no panel. With `score_only` there is one, larger panel: the validation score.
    """
    histories = _read_histories(groups)
    panels = _list_panels(histories)
    if not panels:
        raise ConfigError("nothing to plot: found no finished epoch in " + ", ".join(histories))
    panels = panels[:1] if score_only else panels
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(6.4, 4.2) if len(panels) == 1 else new_figure(3.6 * columns, 0.6 + 2.7 * rows)
    title = "Training: " + ", ".join(histories)
    figure.suptitle(title if len(title) < 14 * figure.get_figwidth() else "Training", x=0.01, ha="left")
    axes = filled(figure, len(panels), columns)
    for axis, panel in zip(axes, panels, strict=True):
        if axis is not axes[0]:
            axis.sharex(axes[0])  # gradients needn't be measured in each epoch
        _draw_panel(axis, panel, histories, best=axis is axes[0])
    legend_below(figure, axes[0])
    return figure


@styled
def training_panels(groups: Sequence[Group]) -> list[Figure]:
    """The panels of `training_figure` as separate figures, which a phone shows one below the other."""
    histories = _read_histories(groups)
    figures = []
    for panel in _list_panels(histories):
        figures.append(figure := new_figure(4.2, 3))
        _draw_panel(axis := figure.add_subplot(), panel, histories, best=len(figures) == 1)
        legend_below(figure, axis)
    return figures


def _read_histories(groups: Sequence[Group]) -> Histories:
    return {group.label: [run.history() for run in group.runs] for group in groups}


def _draw_panel(axis: Axes, panel: Panel, histories: Histories, best: bool) -> None:
    """Draw one quantity of all groups; with `best`, mark the kept epoch of groups with one run by a dot."""
    title, unit, curve, scale = panel
    for (colour, style), (label, seeds) in zip(looks(), histories.items(), strict=False):
        draw_seeds(axis, [points(history, curve) for history in seeds], label, colour, style)
    axis.set(title=title, xlabel="epoch", ylabel=unit)
    whole_numbers(axis)
    set_scale(axis, scale)
    mark_stages(axis, (history for seeds in histories.values() for history in seeds))
    for (colour, _), seeds in zip(looks(), histories.values(), strict=False):
        if best and len(seeds) == 1:
            _mark_best(axis, seeds[0], curve, colour)


def _list_panels(histories: Histories) -> list[Panel]:
    """Title, unit, curve and scale of every quantity in the histories."""
    records = [record for seeds in histories.values() for history in seeds for record in history]

    def make_curve(table: str, name: str) -> Curve:
        return lambda record: record.get(table, {}).get(name)

    def list_names(table: str) -> list[str]:
        return list(dict.fromkeys(name for record in records for name in record.get(table, {})))

    if not records:
        return []
    score_name = selection(records)
    score = make_curve("validation", score_name) if score_name else lambda record: record["score"]
    panels: list[Panel] = [
        (f"validation {score_name or 'score'}", score_name or "score", score, "linear"),
        *((f"loss {name}", "mean per example", make_curve("losses", name), "fitting") for name in list_names("losses")),
        *(
            (f"gradient of {name}", "norm", make_curve("gradient_norms", name), "log")
            for name in list_names("gradient_norms")
        ),
    ]
    return [panel for panel in panels if len(points(records, panel[2]))]


def _mark_best(axis: Axes, history: Sequence[Record], curve: Curve, colour: str) -> None:
    best_epochs = [epoch for epoch, record in enumerate(history, 1) if record["best"]]
    if best_epochs and (value := curve(history[best_epochs[-1] - 1])) is not None:
        axis.plot(best_epochs[-1], value, "o", color=colour, markersize=5)


@styled
def calibration_figure(groups: Sequence[Group], part: str = "test") -> Figure:
    """Reliability diagram (Guo et al. 2017, Fig. 1): the share of right decisions over their mean probability.

    Each run has its own temperature. A point is a bin of all runs of a group together; its area is the bin's share of
    their decisions. Below the dotted line a net is overconfident. The legend shows the mean of the runs' expected
    calibration errors.

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
        count, probability, accuracy = _join_bins(np.array([row for fit in fits for row in fit["bins"]]))
        error = np.mean([fit["ece"] for fit in fits])
        label = f"{group.label} (error {100 * error:.1f} %)"
        axis.plot(probability, accuracy, color=colour, linestyle=style, label=label)
        axis.scatter(probability, accuracy, 4 + 120 * count / count.sum(), color=colour, alpha=0.6, linewidth=0)
    if not axis.collections:
        raise ConfigError(
            f"no run has calibration bins of part {part}. Runs whose task reports no probabilities have none; for "
            "older runs, spen calibrate RUN writes those of the validation part"
        )
    axis.set(title=f"calibration, {part}", xlabel="mean probability", ylabel="share of right decisions", aspect="equal")
    legend_below(figure, axis)
    return figure


def _join_bins(rows: np.ndarray) -> np.ndarray:
    """Bins of several runs, `(row, 3)` -> joint bins, `(3, bin)`; rows are joined by their mean probability."""
    bin_numbers = np.ceil(rows[:, 1] * BINS).clip(1)
    bins = [rows[bin_numbers == number] for number in np.unique(bin_numbers)]
    return np.stack([[b[:, 0].sum(), *np.average(b[:, 1:], axis=0, weights=b[:, 0])] for b in bins]).T
