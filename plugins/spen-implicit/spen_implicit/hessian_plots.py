"""Heat maps of the pairs that an energy has learned, next to the training data (Shankar & Piratla, Fig. 1 and 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spen_plugins.figures import Out, Run, group_of, new_figure, save_figure, shortened, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from spen_implicit.hessian import Pairs

NAMED = 60
"""Largest number of labels or tags with names beside the maps."""
LENGTH, MARGIN = 20, 1.6
"""Maximal number of characters of a name, and the inches that they take."""
Shown = Annotated[
    int, typer.Option("--labels", min=2, help="Number of labels or tags to draw, the most frequent in training.")
]
Examples = Annotated[int, typer.Option(min=1, help="Number of validation examples to use, from the first.")]
Where = Annotated[
    Literal["output", "gold"],
    typer.Option(help="Where to differentiate the energy: at the net's relaxed output, or at gold."),
]


def hessian(run: Run, labels: Shown = 40, at: Where = "output", examples: Examples = 50, out: Out = None) -> None:
    """Draw pairs in the energy: −∂²E/∂y∂y of labels or of neighbouring tags, next to counts in the data."""
    from spen_implicit.hessian import compare_pairs

    group = group_of(run)
    pairs = compare_pairs(group.runs[0], group.label, labels, at, examples)
    typer.echo(pairs.summarise())
    save_figure(hessian_figure(pairs), group, "hessian", out)


@styled
def hessian_figure(pairs: Pairs) -> Figure:
    """Both matrices, each on its own scale, which is centred on 0; red is positive: better together."""
    size = min(7.0, max(3.2, 0.09 * len(pairs.names) + MARGIN))
    figure = new_figure(2 * size + 1.2, size + 1.2)
    figure.set_layout_engine("compressed")  # no empty band around squares
    figure.suptitle(f"{pairs.run}: pairs in the energy and in the data\n{pairs.summarise()}", x=0.01, ha="left")
    left, right = figure.subplots(1, 2)
    learned, counted = (
        ("−∂²E/∂y_t∂y_t+1", "ln of bigrams / expected") if pairs.ordered else ("−∂²E/∂y∂y", "correlation")
    )
    _draw_heat(left, pairs, pairs.learned, f"energy: {learned}")
    _draw_heat(right, pairs, pairs.counted, f"training data: {counted}")
    return figure


def _draw_heat(axis: Axes, pairs: Pairs, values: Tensor, title: str) -> None:
    """Draws one matrix; the few values beyond the 99th percentile have the colours at the ends of the scale."""
    sizes = values[~values.isnan()].abs()
    limit = float(sizes.quantile(0.99)) if len(sizes) else 0.0
    limit = limit or float(sizes.max() if len(sizes) else 0.0) or 1.0
    axis.set_facecolor("0.8")
    image = axis.imshow(values.numpy(), cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    axis.figure.colorbar(image, ax=axis, extend="both", shrink=0.8)
    axis.grid(False)
    axis.set_title(title)
    if pairs.ordered:
        axis.set(ylabel="tag t", xlabel="tag t + 1")
    if len(pairs.names) <= NAMED:
        places = range(len(pairs.names))
        names = [shortened(name, LENGTH) for name in pairs.names]
        axis.set_xticks(places, labels=names, rotation=90, fontsize=6)
        axis.set_yticks(places, labels=names, fontsize=6)
