"""Gradient-based inference: minimises an energy by gradient steps inside the relaxed set.

Examples and starts are independent: every step works on each `(example, start)` alone, so results don't depend on the
rest of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from spen_plugins.errors import RunError
from spen_plugins.inference.steppers import STEPPERS
from spen_plugins.settings.config import Config
from spen_plugins.spaces import OutputSpace

Objective = Callable[[Tensor], Tensor]
"""`(batch, sample, *variables)` -> `(batch, sample)`; low is good."""
Start = Literal["zeros", "uniform", "random", "net"]
Method = Literal["projected", "mirror", "logits"]


class Descent(Config):
    """Settings of gradient-based inference (Belanger & McCallum 2016; Belanger et al. 2017; Gygli et al. 2017)."""

    steps: int = Field(30, ge=1, le=10_000)
    """Gradient steps."""
    method: Method = "projected"
    """Steps in y and projection to the box or simplex (projected), entropic mirror descent with y's gradient subtracted
    from its logits (mirror), or the ordinary gradient in y's logits (logits)."""
    optimizer: Literal["adam", "gradient"] = "adam"
    """Optimiser of the steps."""
    lr: float = Field(0.1, gt=0)
    """Step size."""
    momentum: float = Field(0.0, ge=0, lt=1)
    """Share of the last step in the next; optimizer gradient only."""
    pick: Literal["best", "last"] = "best"
    """The result: the iterate of lowest energy, or the last one."""

    @model_validator(mode="after")
    def _check_optimizer(self) -> Descent:
        if self.momentum and self.optimizer != "gradient":
            raise ValueError("momentum requires optimizer 'gradient'")
        return self


@dataclass(frozen=True)
class Found:
    """The result of a descent.

    Attributes:
        y: `(batch, sample, *variables)`, without gradient.
        energy: the objective there, `(batch, sample)`.
        path: every iterate, the start first; empty unless `keep`.
    """

    y: Tensor
    energy: Tensor
    path: tuple[Tensor, ...] = ()

    def lowest(self) -> Found:
        """Each example's result of lowest finite energy; `sample` is 1."""
        best = torch.where(self.energy.isfinite(), self.energy, torch.inf).argmin(1)
        rows = torch.arange(len(best), device=best.device)

        def choose(values: Tensor) -> Tensor:
            return values[rows, best].unsqueeze(1)

        return Found(choose(self.y), choose(self.energy), tuple(choose(y) for y in self.path))


def minimise(
    objective: Objective,
    space: OutputSpace,
    start: Tensor,
    mask: Tensor | None,
    config: Descent,
    keep: bool = False,
) -> Found:
    """Outputs of low `objective`, from each of `start` `(batch, sample, *variables)`, vectorised over both axes.

    Only the gradient in y is computed: parameters get none.

    Args:
        objective: function of y to minimise.
        space: the output space of y.
        start: relaxed outputs.
        mask: as `X.mask`.
        config: method, optimiser, steps.
        keep: if true, returns the whole path.

    Raises:
        RunError: for some example no start reached a finite objective.
    """
    is_projected = config.method == "projected"
    to_y = space.project if is_projected else space.relax
    place = space.project(start, mask).detach() if is_projected else space.logits(start, mask).detach()
    step = STEPPERS[config.optimizer](config.lr, config.momentum, space.simplex)

    best_y = best_energy = None
    path = []
    for number in range(config.steps + 1):
        if number < config.steps:
            y, energy, gradient = gradient_at(objective, space, place, mask, config.method)
        else:
            with torch.no_grad():
                y = to_y(place, mask)
                energy, gradient = objective(y), None
        if best_energy is None or config.pick == "last":
            best_y, best_energy = y, energy
        else:
            is_better = energy < best_energy
            is_better |= best_energy.isnan()
            best_energy = torch.where(is_better, energy, best_energy)
            best_y = torch.where(is_better.view(*is_better.shape, *[1] * (y.dim() - 2)), y, best_y)
        if keep:
            path.append(y)
        if gradient is not None:
            place = step(place, gradient)
            if is_projected:
                place = space.project(place, mask)
    if not torch.isfinite(best_energy).any(1).all():
        raise RunError(
            f"gradient-based inference found no finite energy for some example; try a lower lr (now {config.lr:g}), "
            "pick 'best', or an energy that is bounded below"
        )
    return Found(best_y, best_energy, tuple(path))


def starts(
    kinds: Sequence[Start],
    space: OutputSpace,
    like: Tensor,
    mask: Tensor | None,
    random: int = 1,
    net: Tensor | None = None,
    seed: int | None = None,
) -> Tensor:
    """Starting points, `(batch, start, *variables)`.

    Args:
        kinds: zeros (for a simplex the nearest point), uniform, random (of real numbers: from 0 to 1), net.
        space: the output space of y.
        like: `(batch, 1, *variables)` with the shape, type and device.
        mask: as `X.mask`.
        random: number of starts for "random".
        net: another net's output, `(batch, 1, *variables)`, for "net".
        seed: seed of random starts that are the same for every example and independent of padding; None: new ones in
            each call.
    """
    points = []
    for kind in kinds:
        if kind == "zeros":
            points.append(space.project(torch.zeros_like(like), mask))
        elif kind == "uniform":
            points.append(space.relax(torch.zeros_like(like), mask))
        elif kind == "random":
            noise = _draw_noise(space, like, random, seed)
            points.append(space.relax(torch.logit(noise, eps=1e-6) if space.discrete else noise, mask))
        else:
            assert net is not None
            points.append(net.detach())
    return torch.cat(points, 1)


def _draw_noise(space: OutputSpace, like: Tensor, n: int, seed: int | None) -> Tensor:
    """Uniform numbers `(batch, n, *variables)`."""
    batch, _, *variables = like.shape
    if seed is None:
        return torch.rand(batch, n, *variables, device=like.device, dtype=like.dtype)
    # The first variable axis is first, so that a shorter sequence gets a prefix of the same numbers.
    generator = torch.Generator().manual_seed(seed)
    if space.shape[:2] == (None, None):
        rows, columns, *others = variables
        numbers = torch.rand(max(rows, columns) ** 2, *others, n, generator=generator)[_number_shells(rows, columns)]
    else:
        numbers = torch.rand(*variables, n, generator=generator)
    return numbers.movedim(-1, 0).to(like).unsqueeze(0).expand(batch, n, *variables)


def _number_shells(rows: int, columns: int) -> Tensor:
    """A number for each place of a grid, `(row, column)`, that doesn't depend on the grid's size: the numbers of the
    square with corner (k, k) come before all others (Rosenberg & Strong 1972)."""
    row, column = torch.arange(rows).unsqueeze(1), torch.arange(columns)
    shell = torch.maximum(row, column)
    return shell**2 + torch.where(column == shell, row, shell + 1 + column)


def gradient_at(
    objective: Objective,
    space: OutputSpace,
    place: Tensor,
    mask: Tensor | None,
    method: Method,
    create_graph: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """y at a place of a descent, the objective there, `(batch, sample)`, and the gradient for a step.

    Args:
        objective: function of y to minimise.
        space: the output space of y.
        place: y itself, inside the relaxed set, for "projected"; else its logits.
        mask: as `X.mask`.
        method: the gradient is in the logits for "logits", else in y.
        create_graph: if true, all three are differentiable, also in the place; if false, none is.
    """
    to_y = space.project if method == "projected" else space.relax
    with torch.enable_grad():
        if method == "logits":
            variable = _make_variable(place, create_graph)
            y = to_y(variable, mask)
        else:
            # A projected step's point is in the set already: `minimise` projects it.
            variable = y = _make_variable(place if method == "projected" else to_y(place, mask), create_graph)
        energy = objective(y)
        [gradient] = torch.autograd.grad(energy.sum(), variable, create_graph=create_graph)
    return (y, energy, gradient) if create_graph else (y.detach(), energy.detach(), gradient)


def _make_variable(values: Tensor, create_graph: bool) -> Tensor:
    """The values as a variable in which a gradient can be taken; `create_graph` keeps the graph behind them."""
    return values if create_graph and values.requires_grad else values.detach().requires_grad_()


class ProbeConfig(Descent):
    """Validation scores of gradient-based inference from the net's output and from random starts."""

    every: int = Field(1, ge=1)
    """Epochs between two probes."""
    random: int = Field(3, ge=1)
    """Number of random starts."""
