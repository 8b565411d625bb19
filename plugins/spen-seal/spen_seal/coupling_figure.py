"""Coupling of two labels by an energy: its gradient over a grid of their values, next to cross entropy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer
from torch import Tensor

from spen_plugins import ConfigError, LabelSet, Predictor, Registry, RunFolder, did_you_mean
from spen_plugins.figures import Out, Run, group_of, load_task, looks, new_figure, save_figure, shortened, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 49
EDGE = 0.02
"""The grid runs from EDGE to 1 − EDGE, because cross entropy's gradient has a pole at 0."""

NAME = 32
"""Maximal number of characters of a label's name in the figure."""

Pair = tuple[int, int]
Labels = Annotated[
    list[str],
    typer.Option(metavar="I,K", show_default=False, help="Two labels, by name or number; repeatable."),
]
Others = Annotated[str, typer.Option(help="Value of all other labels: 0 to 1, or 'gold' for the example's own.")]
Example = Annotated[int, typer.Option(min=0, help="Number of the validation example, for plots that require one.")]


def gradients(run: Run, labels: Labels, others: Others = "0", example: Example = 0, out: Out = None) -> None:
    """Draw the energy's gradient for label k as a function of label i, next to cross entropy's."""
    group = group_of(run)
    data = couplings(group.runs[0], group.label, labels, others, example)
    save_figure(gradients_figure(data), group, "gradients", out)


@dataclass(frozen=True)
class Coupling:
    """The gradient with respect to one label as a function of another.

    Attributes:
        name: "i → k".
        gradient: ∂E/∂y_k at `grid()`, `(y_i, y_k)`.
    """

    name: str
    gradient: Tensor


@dataclass(frozen=True)
class Couplings:
    """Contents of the figure of `spen plot gradients`.

    Attributes:
        energy: description of the energy: "E_global", or E at an example.
        others: description of the values of all other labels.
    """

    run: str
    energy: str
    others: str
    pairs: Sequence[Coupling]


def grid() -> Tensor:
    """Grid of values of a label, `(POINTS,)`."""
    return torch.linspace(EDGE, 1 - EDGE, POINTS)


def gradient(energy: Callable[[Tensor], Tensor], others: Tensor, pair: Pair) -> Tensor:
    """∂E/∂y_k over a grid of (y_i, y_k), the other labels fixed (Lee et al. 2022, Fig. 2, Eq. 13).

    Args:
        energy: y `(1, sample, label)` -> `(1, sample)`.
        others: the other labels' values, `(label,)`.
        pair: i and k.

    Returns:
        `(POINTS, POINTS)`: first axis y_i, second y_k.
    """
    i, k = pair
    values = grid().to(others)
    y = others.repeat(1, POINTS * POINTS, 1)
    y[0, :, i] = values.repeat_interleave(POINTS)
    y[0, :, k] = values.repeat(POINTS)
    y.requires_grad_()
    [slope] = torch.autograd.grad(energy(y).sum(), y)
    return slope[0, :, k].reshape(POINTS, POINTS)


def cross_entropy_gradient(y_k: Tensor, gold: float = 1.0) -> Tensor:
    """∂/∂y_k of the cross entropy (Lee et al. 2022, Eq. 14), of the shape of `y_k`; it depends on y_k alone."""
    return -gold / y_k + (1 - gold) / (1 - y_k)


def couplings(run: RunFolder, label: str, words: Sequence[str], others: str = "0", example: int = 0) -> Couplings:
    """Gradients of a run's energy for pairs of labels.

    If the energy has a method `global_energy(y)`, its part without input, the gradients are those of this part;
    otherwise, those of the whole energy at an example's input.

    Args:
        run: a run of a task whose outputs are label sets.
        label: name in the figure.
        words: pairs "i,k", labels by name or by number.
        others: the value of all other labels from 0 to 1, or "gold": the example's own.
        example: number of an example of the validation part; read only if needed.
    """
    predictor = Predictor(run)
    model, space = predictor.model, predictor.task.space
    if model.energy is None:
        raise ConfigError(f"{run.path} was trained or saved without an energy, so it has no gradients to plot")
    if not isinstance(space, LabelSet):
        raise ConfigError(f"{run.path}: found {type(space).__name__} as outputs; expected label sets")
    pairs = [parse_pair(word, space.labels) for word in words]
    global_energy = getattr(model.energy, "global_energy", None)
    batch = None if global_energy is not None and others != "gold" else _load_example(run, predictor, example)
    energy = global_energy or model.energy.at(batch.x)
    other_values = batch.gold[0, 0] if others == "gold" else torch.full((len(space.labels),), _parse_value(others))
    description = f"gold of validation example {example}" if others == "gold" else f"{float(others):g}"
    return Couplings(
        label,
        "E_global" if global_energy is not None else f"E at validation example {example}",
        description,
        [Coupling(_name_pair(pair, space.labels), gradient(energy, other_values, pair)) for pair in pairs],
    )


def parse_pair(word: str, labels: Sequence[str]) -> Pair:
    """The numbers of two labels from "i,k", where names may contain commas."""
    numbers = {**{str(n): n for n in range(len(labels))}, **{name: n for n, name in enumerate(labels)}}
    parts = word.split(",")
    halves = [(",".join(parts[:n]).strip(), ",".join(parts[n:]).strip()) for n in range(1, len(parts))]
    for i, k in halves:
        if i in numbers and k in numbers:
            if numbers[i] == numbers[k]:
                raise ConfigError(f"--labels {word}: found the same label twice; expected two different ones")
            return numbers[i], numbers[k]
    unknown = next((name for half in halves for name in half if name not in numbers), word)
    shown_names = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
    raise ConfigError(
        f"--labels {word}: unknown label {unknown!r}.{did_you_mean(unknown, labels)} Expected two of {len(labels)} "
        f"labels, separated by a comma, by name ({shown_names}) or by number from 0"
    )


@styled
def gradients_figure(data: Couplings) -> Figure:
    """Heat maps of the gradients of cross entropy and of each pair; a plot of the other label's effects fills the last
    row."""
    panels = 2 + len(data.pairs)
    columns = 2 if panels == 4 else min(3, panels)
    rows = -(-panels // columns)
    figure = new_figure(4.1 * columns, 0.5 + 3.3 * rows)
    figure.get_layout_engine().set(w_pad=0.15)  # inches; labels of neighbours must not touch
    title = f"{data.run}: gradient that teaches label k while label i changes"
    figure.suptitle(f"{title}\n{data.energy}; other labels: {data.others}", x=0.01, ha="left", fontsize=10)
    cells = figure.add_gridspec(rows, columns)
    axes = [figure.add_subplot(cells[divmod(number, columns)]) for number in range(panels - 1)]
    axes.append(figure.add_subplot(cells[rows - 1, (panels - 1) % columns :]))
    cross_entropy = cross_entropy_gradient(grid()).expand(POINTS, POINTS)
    _draw_heat(axes[0], cross_entropy, "cross entropy, true label k = 1", "∂CE/∂y_k", None)
    # Each pair's colours are centred on its own mean, with one width for all, so that slopes are comparable.
    width = max(float(p.gradient.max() - p.gradient.min()) for p in data.pairs) or 1.0
    for axis, pair in zip(axes[1:-1], data.pairs, strict=True):
        _draw_heat(axis, pair.gradient, pair.name, f"∂{data.energy.split()[0]}/∂y_k", width)
    _draw_effects(axes[-1], data)
    return figure


def _draw_heat(axis: Axes, values: Tensor, title: str, unit: str, width: float | None) -> None:
    """Draws a heat map of values `(y_i, y_k)` with contour lines; without a width the colours are logarithmic."""
    from matplotlib.colors import SymLogNorm

    coordinates, table = grid().numpy(), values.T.numpy()
    middle = float(values.max() + values.min()) / 2
    scale: dict[str, Any] = {"norm": SymLogNorm(1.0)}
    if width is not None:
        scale = {"vmin": middle - width / 2, "vmax": middle + width / 2}
    # Rasterised in SVG, too; otherwise each cell would become triangles with gradients: tens of megabytes.
    image = axis.pcolormesh(
        coordinates, coordinates, table, cmap="viridis", shading="gouraud", rasterized=True, **scale
    )
    if values.max() > values.min():
        levels = values.quantile(torch.linspace(0.1, 0.9, 6)).unique().tolist()
        lines = axis.contour(
            coordinates, coordinates, table, levels=levels, colors="white", linewidths=0.7, linestyles="-"
        )
        axis.clabel(lines, fontsize=7, fmt="%.3g")
    bar = axis.figure.colorbar(image, ax=axis, label=unit)
    if width is None:
        bar.set_ticks([-50, -20, -10, -5, -2, -1], labels=["−50", "−20", "−10", "−5", "−2", "−1"])
    axis.grid(False)
    axis.set(title=title, xlabel="y_i", ylabel="y_k", aspect="equal")


def _draw_effects(axis: Axes, data: Couplings) -> None:
    """Draws the change of each gradient at y_k = 1/2 with y_i."""
    coordinates = grid().numpy()
    for (colour, style), pair in zip(looks(), data.pairs, strict=False):
        middle = pair.gradient[:, POINTS // 2]
        name = pair.name.replace("\n", ", ")
        axis.plot(coordinates, (middle - middle[0]).numpy(), color=colour, linestyle=style, label=name)
    axis.axhline(0, color="0.4", linestyle="--", linewidth=1, label="cross entropy")
    axis.set(title="what y_i changes, at y_k = 0.5", xlabel="y_i", ylabel="change of ∂/∂y_k")
    axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _load_example(run: RunFolder, predictor: Predictor, example: int) -> Any:
    """A batch of one validation example."""
    examples = load_task(run, Registry()).part("validation")
    if not 0 <= example < len(examples):
        raise ConfigError(f"--example {example}: the validation part has {len(examples)} examples, numbered from 0")
    return predictor.task.collate([examples[example]])


def _parse_value(others: str) -> float:
    try:
        value = float(others)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ConfigError(f"--others {others}: expected a number from 0 to 1, or 'gold'")
    return value


def _name_pair(pair: Pair, labels: Sequence[str]) -> str:
    return f"i = {shortened(labels[pair[0]], NAME)}\nk = {shortened(labels[pair[1]], NAME)}"
