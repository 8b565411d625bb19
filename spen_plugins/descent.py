"""Gradient-based inference: outputs of low energy, found by gradient steps inside the relaxed set.

Examples and starts never meet: every step works on each `(example, start)` alone, so a batch gives what its examples
give one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from spen_plugins.errors import RunError
from spen_plugins.schema import Config
from spen_plugins.spaces import OutputSpace

Objective = Callable[[Tensor], Tensor]
"""`(batch, sample, *variables)` -> `(batch, sample)`; low is good."""

Start = Literal["zeros", "uniform", "random", "net"]


class Descent(Config):
    """How outputs of low energy are looked for (Belanger & McCallum 2016; Belanger et al. 2017; Gygli et al. 2017)."""

    steps: int = Field(30, ge=1)
    """Gradient steps."""
    method: Literal["projected", "mirror", "logits"] = "projected"
    """projected: steps in y, back to the nearest point of the box or simplex. mirror: entropic mirror descent, y's
    gradient subtracted from its logits. logits: the ordinary gradient in y's logits."""
    optimizer: Literal["adam", "gradient", "lbfgs"] = "adam"
    """What turns gradients into steps; lbfgs (with a backtracking line search) works in logits only."""
    lr: float = Field(0.1, gt=0)
    """Step size; the first one tried where optimizer is lbfgs."""
    momentum: float = Field(0.0, ge=0, lt=1)
    """Share of the last step in the next; optimizer gradient only."""
    pick: Literal["best", "last"] = "best"
    """The iterate of lowest energy, or the last one."""

    @model_validator(mode="after")
    def _fits(self) -> Descent:
        if self.optimizer == "lbfgs" and self.method != "logits":
            raise ValueError("optimizer 'lbfgs' knows no bounds; take method 'logits'")
        if self.momentum and self.optimizer != "gradient":
            raise ValueError("momentum goes with optimizer 'gradient'")
        return self


@dataclass(frozen=True)
class Found:
    """What a descent ended at.

    Attributes:
        y: `(batch, sample, *variables)`, without gradient.
        energy: the objective there, `(batch, sample)`.
        path: every iterate, the start first; empty unless asked for.
        energies: the objective along the path, `(1 + steps, batch, sample)`; None unless asked for.
    """

    y: Tensor
    energy: Tensor
    path: tuple[Tensor, ...] = ()
    energies: Tensor | None = None

    def lowest(self) -> Found:
        """Of each example the start that ended lowest, one that went nowhere left out: `sample` is 1."""
        best = torch.where(self.energy.isfinite(), self.energy, torch.inf).argmin(1)
        rows = torch.arange(len(best), device=best.device)

        def choose(values: Tensor) -> Tensor:
            return values[rows, best].unsqueeze(1)

        energies = None if self.energies is None else torch.stack([choose(e) for e in self.energies])
        return Found(choose(self.y), choose(self.energy), tuple(choose(y) for y in self.path), energies)


def minimise(
    objective: Objective,
    space: OutputSpace,
    start: Tensor,
    mask: Tensor | None,
    config: Descent,
    keep: bool = False,
) -> Found:
    """Outputs of low `objective`, from each of `start` `(batch, sample, *variables)`, vectorised over both axes.

    Parameters get no gradient: only y's is ever asked for.

    Args:
        objective: what to minimise over y.
        space: where y lives.
        start: relaxed outputs.
        mask: as `X.mask`.
        config: method, optimiser, steps.
        keep: whether to return the whole path.

    Raises:
        RunError: of some example no start came to a finite objective.
    """
    projected = config.method == "projected"
    to_y = space.project if projected else space.relax
    place = space.project(start, mask).detach() if projected else space.logits(start, mask).detach()
    step = _STEPPERS[config.optimizer](config, space.simplex)

    def value(logits: Tensor) -> Tensor:
        with torch.no_grad():
            return objective(to_y(logits, mask))

    best_y = best = None
    path, energies = [], []
    for number in range(config.steps + 1):
        y, energy, gradient = _look(objective, to_y, place, mask, config.method, number < config.steps)
        if best is None or config.pick == "last":
            best_y, best = y, energy
        else:
            better = energy < best
            better |= best.isnan()
            best = torch.where(better, energy, best)
            best_y = torch.where(better.view(*better.shape, *[1] * (y.dim() - 2)), y, best_y)
        if keep:
            path.append(y)
            energies.append(energy)
        if gradient is not None:
            place = step(place, gradient, energy, value)
            if projected:
                place = space.project(place, mask)
    if not torch.isfinite(best).any(1).all():
        raise RunError(
            f"gradient-based inference ended at no finite energy for some example; a lower lr (now {config.lr:g}), "
            "pick 'best' or an energy that is bounded below may help"
        )
    return Found(best_y, best, tuple(path), torch.stack(energies) if keep else None)


def starts(
    kinds: Sequence[Start],
    space: OutputSpace,
    like: Tensor,
    mask: Tensor | None,
    random: int = 1,
    net: Tensor | None = None,
    seed: int | None = None,
) -> Tensor:
    """Where to start from, `(batch, start, *variables)`.

    Args:
        kinds: zeros (the nearest point to them, for a simplex), uniform, random, net.
        space: where y lives.
        like: `(batch, 1, *variables)`, whose shape, type and device count.
        mask: as `X.mask`.
        random: how many starts "random" stands for.
        net: another net's output, `(batch, 1, *variables)`, for "net".
        seed: of random starts that are the same for every example and don't change with padding; None draws anew.
    """
    found = []
    for kind in kinds:
        if kind == "zeros":
            found.append(space.project(torch.zeros_like(like), mask))
        elif kind == "uniform":
            found.append(space.relax(torch.zeros_like(like), mask))
        elif kind == "random":
            found.append(space.relax(torch.logit(_noise(like, random, seed), eps=1e-6), mask))
        else:
            assert net is not None
            found.append(net.detach())
    return torch.cat(found, 1)


def _noise(like: Tensor, n: int, seed: int | None) -> Tensor:
    """Uniform numbers `(batch, n, *variables)`."""
    batch, _, *variables = like.shape
    if seed is None:
        return torch.rand(batch, n, *variables, device=like.device, dtype=like.dtype)
    # The first variable axis leads, so that a shorter sequence sees a prefix of the same numbers.
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(*variables, n, generator=generator).movedim(-1, 0)
    return drawn.to(like).unsqueeze(0).expand(batch, n, *variables)


def _look(
    objective: Objective,
    to_y: Callable[[Tensor, Tensor | None], Tensor],
    place: Tensor,
    mask: Tensor | None,
    method: str,
    slope: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """y, its energy and the gradient to step along: y's own, or its logits'."""
    if not slope:
        with torch.no_grad():
            y = to_y(place, mask)
            return y, objective(y), None
    with torch.enable_grad():
        if method == "logits":
            variable = place.detach().requires_grad_()
            y = to_y(variable, mask)
        else:
            # The place of a projected step is in the set already: `minimise` put it there.
            variable = y = (place if method == "projected" else to_y(place, mask)).detach().requires_grad_()
        energy = objective(y)
        [gradient] = torch.autograd.grad(energy.sum(), variable)
    return y.detach(), energy.detach(), gradient


class _Gradient:
    """Plain steps, with momentum where asked for."""

    def __init__(self, config: Descent, simplex: bool) -> None:
        self.lr, self.momentum, self.velocity = config.lr, config.momentum, None

    def __call__(self, place: Tensor, gradient: Tensor, energy: Tensor, value: Objective) -> Tensor:
        if self.momentum:
            gradient = gradient if self.velocity is None else gradient + self.momentum * self.velocity
            self.velocity = gradient
        return place - self.lr * gradient


class _Adam:
    """Adam (Kingma & Ba 2015), elementwise, so that examples stay apart.

    The coordinates of a simplex share one second moment: with one each, all that fall would fall alike, and the steps
    lead to a tie between them instead of the lowest.
    """

    def __init__(self, config: Descent, simplex: bool, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.lr, self.simplex, self.betas, self.eps = config.lr, simplex, betas, 1e-8
        self.mean = self.square = None
        self.count = 0

    def __call__(self, place: Tensor, gradient: Tensor, energy: Tensor, value: Objective) -> Tensor:
        first, second = self.betas
        if self.simplex:
            gradient = gradient - gradient.mean(-1, keepdim=True)
        squared = gradient.square().mean(-1, keepdim=True) if self.simplex else gradient.square()
        if self.mean is None:
            self.mean, self.square = torch.zeros_like(gradient), torch.zeros_like(squared)
        self.count += 1
        self.mean.lerp_(gradient, 1 - first)
        self.square.mul_(second).add_(squared, alpha=1 - second)
        size = (self.square / (1 - second**self.count)).sqrt_().add_(self.eps)
        return torch.addcdiv(place, self.mean, size, value=-self.lr / (1 - first**self.count))


class _Lbfgs:
    """L-BFGS with memory of five steps, for each (example, start) on its own: torch's own shares one curvature and one
    step length among all rows of a batch (Nocedal & Wright 2006, Alg. 7.4, with Armijo backtracking)."""

    memory, halvings, slope_share = 5, 12, 1e-4
    longest = 2.0  # of any logit in one step: a longer one may end where the relaxed set is flat

    def __init__(self, config: Descent, simplex: bool) -> None:
        self.lr = config.lr
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []
        self.last: tuple[Tensor, Tensor] | None = None

    def __call__(self, place: Tensor, gradient: Tensor, energy: Tensor, value: Objective) -> Tensor:
        flat, g = place.flatten(2), gradient.flatten(2)
        if self.last is not None:
            moved, turned = flat - self.last[0], g - self.last[1]
            curvature = (moved * turned).sum(-1, keepdim=True)
            # Rows without positive curvature keep no pair: a weight of 0 leaves the direction as it is.
            weight = torch.where(curvature > 1e-10, 1 / curvature.clamp(min=1e-10), torch.zeros_like(curvature))
            self.pairs = [*self.pairs, (moved, turned, weight)][-self.memory :]
        self.last = (flat, g)
        direction = -self._apply(g)
        slope = (direction * g).sum(-1)
        direction = torch.where((slope < 0).unsqueeze(-1), direction, -g)
        slope = torch.where(slope < 0, slope, -(g * g).sum(-1))
        length = torch.full_like(energy, self.lr if not self.pairs else 1.0)
        length = torch.minimum(length, self.longest / direction.abs().amax(-1).clamp(min=1e-12))
        for _ in range(self.halvings):
            reached = value((flat + length.unsqueeze(-1) * direction).view_as(place))
            enough = reached <= energy + self.slope_share * length * slope
            if enough.all():
                break
            length = torch.where(enough, length, length / 2)
        length = torch.where(enough, length, torch.zeros_like(length))
        # A row that got nowhere forgets its curvature and goes on along its gradient.
        self.pairs = [(moved, turned, weight * enough.unsqueeze(-1)) for moved, turned, weight in self.pairs]
        return (flat + length.unsqueeze(-1) * direction).view_as(place)

    def _apply(self, gradient: Tensor) -> Tensor:
        """The inverse Hessian's guess times the gradient: the two-loop recursion."""
        q, shares = gradient, []
        for moved, turned, weight in reversed(self.pairs):
            share = weight * (moved * q).sum(-1, keepdim=True)
            q = q - share * turned
            shares.append(share)
        if self.pairs:
            _, turned, weight = self.pairs[-1]
            scale = 1 / (weight * (turned * turned).sum(-1, keepdim=True)).clamp(min=1e-10)
            q = torch.where(weight > 0, scale * q, q)
        for (moved, turned, weight), share in zip(self.pairs, reversed(shares), strict=True):
            q = q + moved * (share - weight * (turned * q).sum(-1, keepdim=True))
        return q


_STEPPERS = {"adam": _Adam, "gradient": _Gradient, "lbfgs": _Lbfgs}
