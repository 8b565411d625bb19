"""Figures of finished runs: the plotting kit for functions of the hook `spen_figure`.

Names are imported at first use; importing this package imports no matplotlib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spen_plugins.lazy import lazy_names

__getattr__, __all__ = lazy_names(globals())

if TYPE_CHECKING:
    from spen_plugins.console import markdown_cell
    from spen_plugins.figures.kit import (
        Curve,
        Record,
        Scale,
        draw_seeds,
        mark_stages,
        points,
        save,
        selection,
        set_scale,
        styled,
    )
    from spen_plugins.figures.layout import (
        COLOURS,
        filled,
        legend_below,
        looks,
        new_figure,
        shortened,
        whole_numbers,
    )
    from spen_plugins.figures.options import Out, Run, Runs, find_groups, group_of, save_figure
    from spen_plugins.runs.many.groups import Group
    from spen_plugins.runs.predict.own_data import load_task
