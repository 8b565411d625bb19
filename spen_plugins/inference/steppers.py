"""Optimisers of a descent over outputs: plain, Adam, L-BFGS; each `(example, start)` independently."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Objective = Callable[[Tensor], Tensor]
"""`(batch, sample, *variables)` -> `(batch, sample)`; low is good."""


class Gradient:
    """Gradient steps, optionally with momentum.

    Differentiable in places, gradients and the rate `lr`, which may be a tensor and may change between steps.
    """

    def __init__(self, lr: float | Tensor, momentum: float = 0.0, simplex: bool = False) -> None:
        self.lr, self.momentum, self.velocity = lr, momentum, None

    def __call__(
        self, place: Tensor, gradient: Tensor, energy: Tensor | None = None, value: Objective | None = None
    ) -> Tensor:
        """The next place; `energy` and `value` are what other optimisers use."""
        if self.momentum:
            gradient = gradient if self.velocity is None else gradient + self.momentum * self.velocity
            self.velocity = gradient
        return place - self.lr * gradient


class Adam:
    """Adam (Kingma & Ba 2015), elementwise, so that examples are independent.

    The coordinates of a simplex share one second moment: with one each, all decreasing coordinates would decrease
    alike, and the steps would lead to a tie between them instead of the lowest.
    """

    def __init__(self, lr: float, momentum: float, simplex: bool, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.lr, self.simplex, self.betas, self.eps = lr, simplex, betas, 1e-8
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


class Lbfgs:
    """L-BFGS with memory of five steps, for each (example, start) independently: torch's L-BFGS shares one curvature
    and one step length between all rows of a batch (Nocedal & Wright 2006, Alg. 7.4, with Armijo backtracking)."""

    memory, halvings, slope_share = 5, 12, 1e-4
    longest = 2.0  # largest change of a logit in one step: a longer one may end in a flat region

    def __init__(self, lr: float, momentum: float, simplex: bool) -> None:
        self.lr = lr
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []
        self.last: tuple[Tensor, Tensor] | None = None

    def __call__(self, place: Tensor, gradient: Tensor, energy: Tensor, value: Objective) -> Tensor:
        flat, g = place.flatten(2), gradient.flatten(2)
        if self.last is not None:
            moved, turned = flat - self.last[0], g - self.last[1]
            curvature = (moved * turned).sum(-1, keepdim=True)
            # Rows without positive curvature keep no pair: a weight of 0 leaves the direction unchanged.
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
        # A row without progress drops its curvature pairs and continues along its gradient.
        self.pairs = [(moved, turned, weight * enough.unsqueeze(-1)) for moved, turned, weight in self.pairs]
        return (flat + length.unsqueeze(-1) * direction).view_as(place)

    def _apply(self, gradient: Tensor) -> Tensor:
        """The approximate inverse Hessian times the gradient: the two-loop recursion."""
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


STEPPERS = {"adam": Adam, "gradient": Gradient, "lbfgs": Lbfgs}
