"""Figures of `spen plot`: the game between energy and nets."""

from __future__ import annotations

from spen_plugins.figures import Out, Runs, find_groups, save_figure


def game(runs: Runs, out: Out = None) -> None:
    """Losses after the nets' steps and gradient norms in joint training; needs runs of infnet.joint."""
    from spen_infnet.game_plots import game_figure

    groups = find_groups(runs)
    save_figure(game_figure(groups), groups[0], "game", out)
