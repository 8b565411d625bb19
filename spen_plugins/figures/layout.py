"""Layout shared by all figures: grids, axes of epochs, legends, long names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import cycle, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A")
"""Okabe & Ito 2008 (brown instead of yellow, which is invisible on white), for colour-blind readers."""

NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML and HTML lack."""

LEGEND_ROW = 0.19
"""Height of a row of a legend, in inches."""


def looks() -> Iterator[tuple[str, str]]:
    """Colours with line styles, in the order for groups: first all colours of solid lines, then of dashed lines, …"""
    return cycle((colour, style) for style, colour in product(("-", "--", "-.", ":"), COLOURS))


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, without a window or global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def filled(figure: Figure, count: int, columns: int) -> list[Axes]:
    """Axes in rows of `columns`, from left to right; the axes of the last row are widened to fill it."""
    rows, last = -(-count // columns), count % columns or columns
    cells = math.lcm(columns, last)
    grid = figure.add_gridspec(rows, cells)
    axes = []
    for number in range(count):
        row, column = divmod(number, columns)
        width = cells // (columns if row < rows - 1 else last)
        axes.append(figure.add_subplot(grid[row, column * width : (column + 1) * width]))
    return axes


def whole_numbers(axis: Axes) -> None:
    """Put ticks of the x-axis at whole numbers only, even if it has a single point."""
    axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def decades(axis: Axes) -> None:
    """Make the y-axis logarithmic, with plain numbers at few ticks; matplotlib labels many by default, as 6 × 10⁻¹."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    if high / low < 1000:
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 50 else (1, 3)))
    axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def legend_below(figure: Figure, axis: Axes) -> None:
    """Put an axis's legend below all axes, in as many columns as fit; further rows make the figure higher."""
    handles, labels = axis.get_legend_handles_labels()
    columns = max(1, min(3, int(14 * figure.get_figwidth() / (6 + max(map(len, labels), default=0)))))
    rows = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + LEGEND_ROW * max(0, rows - 1))
    figure.legend(handles, labels, loc="outside lower left", ncols=columns)


def visible(text: str) -> str:
    """The text with a mark for each character that XML and HTML lack."""
    return NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def shortened(name: str, length: int) -> str:
    """The name, with … in its middle if it is longer than `length`."""
    if len(name) <= length:
        return name
    end = (length - 1) // 3
    return f"{name[: length - 1 - end]}…{name[len(name) - end :]}"
