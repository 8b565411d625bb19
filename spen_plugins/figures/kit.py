"""The plotting kit: style, panels of curves, and saving."""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from spen_plugins.errors import ConfigError, explain_missing
from spen_plugins.figures.layout import decades, visible
from spen_plugins.files import save_text, writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "savefig.dpi": 160,
    "svg.hashsalt": "spen",  # equal figures give equal bytes
    "svg.fonttype": "path",
    "pdf.fonttype": 42,  # TrueType; publishers reject the default, Type 3
    "text.parse_math": False,  # labels may have dollars
}
OTHER_IMAGES = (".bmp", ".eps", ".gif", ".jpeg", ".jpg", ".pgf", ".ps", ".svgz", ".tif", ".tiff", ".webp")
"""Suffixes of image files that are not written."""

Record = dict[str, Any]
"""One epoch of a run: a line of its history.jsonl."""
Curve = Callable[[Record], float | None]
"""An epoch's record -> the number to plot; None if the epoch has none."""
Scale = Literal["linear", "log", "fitting"]
"""Scale of the vertical axis; see `set_scale`."""
Made = TypeVar("Made")


def styled(make: Callable[..., Made]) -> Callable[..., Made]:
    """Decorate a function that makes figures: it runs under `STYLE`.

    Raises:
        ConfigError: matplotlib isn't installed.
    """

    @functools.wraps(make)
    def run(*args: Any, **kwargs: Any) -> Made:
        with explain_missing("plots need matplotlib: pip install 'spen-plugins[research]'"):
            import matplotlib
        with matplotlib.rc_context(STYLE):
            return make(*args, **kwargs)

    return run


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write `stem`.png and `stem`.svg, or a PDF if `stem` ends in .pdf; the folder is created. The suffix .png or .svg
    of a stem is dropped.

    Raises:
        ConfigError: the stem has the suffix of another image format.
        RunError: the files can't be written.
    """
    if stem.suffix.lower() in OTHER_IMAGES:
        raise ConfigError(f"{stem}: found suffix {stem.suffix}; expected .png, .svg, .pdf, or a name without suffix")
    if stem.suffix.lower() == ".pdf":
        with _use_style(), writing(stem, parents=True) as temporary:
            figure.savefig(temporary, format="pdf", metadata={"CreationDate": None})
        return [stem]
    stem = stem.with_suffix("") if stem.suffix.lower() in (".png", ".svg") else stem
    png, vectors = (stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg"))
    with _use_style(), writing(png, parents=True) as temporary:
        figure.savefig(temporary, format="png")
    save_text(svg(figure, ["Date"]), vectors)
    return [png, vectors]


@contextmanager
def _use_style() -> Iterator[None]:
    """Inside, figures have `STYLE`, and a character that the font lacks is drawn as a box, without a warning."""
    import matplotlib

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
        yield


def svg(figure: Figure, without: Iterable[str]) -> str:
    """A figure as SVG without some metadata, with a mark for each character of a label that XML lacks."""
    file = io.StringIO()
    with _use_style():
        figure.savefig(file, format="svg", metadata=dict.fromkeys(without))
    return visible(file.getvalue())


def draw_seeds(axis: Axes, seeds: Sequence[np.ndarray], label: str, colour: str, style: str = "-") -> None:
    """Draw one group's curve.

    Args:
        seeds: `(points, 2)` each, x and y.
    """
    seeds = [points for points in seeds if len(points)]
    if not seeds:
        return
    marker = "." if max(map(len, seeds)) == 1 else ""  # a line through one point is invisible
    if len(seeds) == 1:
        axis.plot(*seeds[0].T, color=colour, label=label, linestyle=style, marker=marker)
        return
    for points in seeds:
        axis.plot(*points.T, color=colour, alpha=0.3, linewidth=0.7, linestyle=style, marker=marker)
    x_values = functools.reduce(np.intersect1d, [points[:, 0] for points in seeds])
    values = np.stack([points[np.isin(points[:, 0], x_values), 1] for points in seeds])
    # The range, not a deviation: a band that reaches below 0 is meaningless on a logarithmic scale.
    axis.plot(
        x_values, values.mean(0), color=colour, label=f"{label} ({len(seeds)} seeds)", linestyle=style, marker=marker
    )
    axis.fill_between(x_values, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)


def selection(history: Iterable[Record]) -> str | None:
    """The name of the validation score that chose the epochs; None if no score did."""
    names = [k for r in history for k, value in r["validation"].items() if value == r["score"]]
    return max(names, key=names.count) if names else None


def points(history: Sequence[Record], curve: Curve) -> np.ndarray:
    """x = epochs done and y, `(points, 2)`, without epochs that lack the value."""
    xy = np.array([(epoch, curve(record)) for epoch, record in enumerate(history, 1)], dtype=float).reshape(-1, 2)
    return xy[np.isfinite(xy[:, 1])]


def mark_stages(axis: Axes, histories: Iterable[Sequence[Record]]) -> None:
    """Draw a dotted line between two epochs of different stages."""
    boundaries = {
        epoch + 0.5
        for history in histories
        for epoch in range(1, len(history))
        if history[epoch]["stage"] != history[epoch - 1]["stage"]
    }
    for boundary in boundaries:
        axis.axvline(boundary, color="0.6", linestyle=":", linewidth=1)


def set_scale(axis: Axes, scale: Scale) -> None:
    """Set a scale that fits losses that fall by orders of magnitude in the first epoch, perhaps below 0: then it is
    logarithmic away from 0. Values within one order of magnitude are shown on a linear scale."""
    values = np.concatenate([line.get_ydata() for line in axis.lines] or [np.zeros(0)])
    sizes = np.abs(values[values != 0])
    if scale == "linear" or not len(sizes):
        return
    median = float(np.median(sizes))
    if (values > 0).all() and sizes.max() > 10 * sizes.min() and (scale == "log" or sizes.max() > 3 * median):
        decades(axis)
    elif sizes.max() > 30 * median:
        axis.set_yscale("symlog", linthresh=10 ** np.ceil(np.log10(median)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.set_ylabel(f"{axis.get_ylabel()} (symlog)")
