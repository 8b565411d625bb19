"""Curves of the joint training of an energy and inference nets (Tu, Pang & Gimpel 2020, Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spen_plugins import ConfigError
from spen_plugins.figures import (
    Curve,
    Out,
    Record,
    Runs,
    Scale,
    draw_seeds,
    filled,
    find_groups,
    legend_below,
    looks,
    new_figure,
    points,
    save_figure,
    set_scale,
    styled,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.figures import Group

TEST_TIME = ("inference_net.test_time", "inference_net.energy")
"""The energy's term for the net that predicts: next to a cost-augmented net, and with one net only."""


def game(runs: Runs, out: Out = None) -> None:
    """Draw losses after the nets' steps and gradient norms in joint training; needs runs of infnet.joint."""
    groups = find_groups(runs)
    save_figure(game_figure(groups), groups[0], "game", out)


@styled
def game_figure(groups: Sequence[Group]) -> Figure:
    """Panels over the epochs of joint training, those in which the energy trains; one colour per group. A panel is left
    out if none of the runs has measured it.

    (a) l1 = Δ(F(x), y) − E(x, F(x)), the cost-augmented objective, and (b) l0 = [l1 + E(x, y)]₊, the margin-rescaled
    hinge loss, both after the nets' updates and before the energy's (with trainer.first='energy' the nets' last updates
    were on the batch before); (c) the norm of the energy's gradient when it moves; (d) the norm of the gradient of the
    energy's term for the test-time net. Seeds are drawn as `draw_seeds` does. `ConfigError` if a run has no measures of
    joint training.
    """
    histories = {group.label: [keep_game(run.history()) for run in group.runs] for group in groups}
    for group in groups:
        for run, history in zip(group.runs, histories[group.label], strict=True):
            if not any("energy.l1" in record.get("measures", {}) for record in history):
                raise ConfigError(
                    f"{run.path} has no l1 and l0; expected a run of 'infnet.joint' with an energy loss of spen-infnet "
                    "and trainer.gradient_norms_every above 0"
                )
    panels = [panel for panel in PANELS if any(len(points(h, panel[2])) for runs in histories.values() for h in runs)]
    figure = new_figure(7.4, 6.0)
    axes = filled(figure, len(panels), 2)
    for axis, (title, unit, curve, scale) in zip(axes, panels, strict=True):
        for (colour, style), (label, seeds) in zip(looks(), histories.items(), strict=False):
            draw_seeds(axis, [points(history, curve) for history in seeds], label, colour, style)
        axis.set(title=title, xlabel="epoch of the game", ylabel=unit)
        whole_numbers(axis)
        set_scale(axis, scale)
    legend_below(figure, axes[0])
    return figure


def keep_game(history: Sequence[Record]) -> list[Record]:
    """The epochs in which the energy trains: those of joint training, without pretraining and fine-tuning."""
    return [record for record in history if "energy" in record["updates"]]


def read_norm_at_net(record: Record) -> float | None:
    """The norm of the gradient of the energy's term at the test-time net, None if not measured."""
    terms = [name for name in record["losses"] if name.startswith("inference_net.")]
    term = next((name for name in TEST_TIME if name in terms), None)
    # For a loss with one term only the phase's gradient is recorded.
    return record["gradient_norms"].get("inference_net" if terms == [term] else term)


def _read_measure(name: str) -> Curve:
    return lambda record: record.get("measures", {}).get(name)


PANELS: tuple[tuple[str, str, Curve, Scale], ...] = (
    ("(a) l1 after I steps", "Δ − E(x, F(x))", _read_measure("energy.l1"), "fitting"),
    ("(b) l0 after I steps", "[Δ − E(x, F(x)) + E(x, y)]₊", _read_measure("energy.l0"), "fitting"),
    ("(c) gradient of the energy, E steps", "norm", lambda record: record["gradient_norms"].get("energy"), "log"),
    ("(d) energy's gradient at the test-time net", "norm", read_norm_at_net, "log"),
)
"""Title, unit, curve and scale."""
