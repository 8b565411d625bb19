"""Training curves of finished and unfinished runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spen_plugins.errors import ConfigError
from spen_plugins.figures.kit import Curve, Record, Scale, draw_seeds, mark_stages, points, selection, set_scale, styled
from spen_plugins.figures.layout import filled, legend_below, looks, new_figure, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from spen_plugins.runs.many.groups import Group


@styled
def training_figure(groups: Sequence[Group], score_only: bool = False) -> Figure:
    """Training curves: validation score, mean loss and gradient norm of each term, over epochs.

    One colour per group (beyond eight, lines are dashed). The epochs of a run with several stages follow one another.
    What no run has measured has no panel. With `score_only` the validation score alone has one, which is larger.
    """
    histories = {group.label: [run.history() for run in group.runs] for group in groups}
    panels = _panels([record for seeds in histories.values() for history in seeds for record in history])
    if not panels:
        raise ConfigError("nothing to plot: found no finished epoch in " + ", ".join(histories))
    panels = panels[:1] if score_only else panels
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(6.4, 4.2) if len(panels) == 1 else new_figure(3.6 * columns, 0.6 + 2.7 * rows)
    title = "Training: " + ", ".join(histories)
    figure.suptitle(title if len(title) < 14 * figure.get_figwidth() else "Training", x=0.01, ha="left")
    axes = filled(figure, len(panels), columns)
    for axis, (title, unit, curve, scale) in zip(axes, panels, strict=True):
        for (colour, style), (label, seeds) in zip(looks(), histories.items(), strict=False):
            draw_seeds(axis, [points(history, curve) for history in seeds], label, colour, style)
        axis.set(title=title, xlabel="epoch", ylabel=unit)
        whole_numbers(axis)
        set_scale(axis, scale)
        mark_stages(axis, (history for seeds in histories.values() for history in seeds))
    for (colour, _), seeds in zip(looks(), histories.values(), strict=False):
        if len(seeds) == 1:
            _mark_best(axes[0], seeds[0], panels[0][2], colour)
    legend_below(figure, axes[0])
    return figure


def _panels(records: list[Record]) -> list[tuple[str, str, Curve, Scale]]:
    """Title, unit, curve and scale of every quantity in the records."""

    def within(table: str, name: str) -> Curve:
        return lambda record: record.get(table, {}).get(name)

    def names(table: str) -> list[str]:
        return list(dict.fromkeys(name for record in records for name in record.get(table, {})))

    if not records:
        return []
    chosen = selection(records)
    score = within("validation", chosen) if chosen else lambda record: record["score"]
    panels: list[tuple[str, str, Curve, Scale]] = [
        (f"validation {chosen or 'score'}", chosen or "score", score, "linear"),
        *((f"loss {name}", "mean per example", within("losses", name), "fitting") for name in names("losses")),
        *((f"gradient of {name}", "norm", within("gradient_norms", name), "log") for name in names("gradient_norms")),
    ]
    return [panel for panel in panels if len(points(records, panel[2]))]


def _mark_best(axis: Axes, history: Sequence[Record], curve: Curve, colour: str) -> None:
    kept = [epoch for epoch, record in enumerate(history, 1) if record["best"]]
    if kept and (value := curve(history[kept[-1] - 1])) is not None:
        axis.plot(kept[-1], value, "o", color=colour, markersize=5)
