"""What gradient-based inference makes of an energy while it trains (Lee et al. 2021, Figs 3-5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spen_plugins.errors import ConfigError
from spen_plugins.research.plots import COLOURS, Record, draw_seeds, mark_stages, new_figure, points, selection, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.research.groups import Group

CURVES = {"net": ("net", "-"), "net_gbi": ("net + GBI", "--"), "random_gbi": ("random + GBI", ":")}
"""Of a history record's `probe`: name in the legend and style of the line."""


@styled
def gbi_figure(group: Group, alone: Sequence[Group] = ()) -> Figure:
    """The validation score over epochs of the net, of GBI from its outputs, of GBI from random ones, and of energies
    that were trained alone.

    Args:
        group: a run, or one experiment's seeds, with `trainer.probe` set.
        alone: runs that predict by GBI; their own validation scores are drawn, over the epochs of their energies.

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
        curves = [points(_energy_moves(run.history()), lambda r: r["validation"].get(score)) for run in other.runs]
        draw_seeds(axis, curves, f"{other.label} (energy alone)", colour, "-.")
    mark_stages(axis, histories)
    axis.set(xlabel="epoch", ylabel=f"validation {score}")
    axis.set_title(f"{group.label}: the energy under gradient-based inference", loc="left")
    axis.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(loc="outside lower left", ncols=3)
    return figure


def _energy_moves(history: Sequence[Record]) -> list[Record]:
    """The epochs in which the energy trains; a stage before them may train the net it starts from."""
    return [record for record in history if "energy" in record["updates"]]
