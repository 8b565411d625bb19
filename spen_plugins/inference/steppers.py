"""Optimisers of a descent over outputs: plain and Adam; each `(example, start)` independently."""

from __future__ import annotations

import torch
from torch import Tensor


class Gradient:
    """Gradient steps, optionally with momentum.

    Differentiable in places, gradients and the rate `lr`, which may be a tensor and may change between steps.
    """

    def __init__(self, lr: float | Tensor, momentum: float = 0.0, simplex: bool = False) -> None:
        self.lr, self.momentum, self.velocity = lr, momentum, None

    def __call__(self, place: Tensor, gradient: Tensor) -> Tensor:
        """The next place."""
        if self.momentum:
            gradient = gradient if self.velocity is None else gradient + self.momentum * self.velocity
            self.velocity = gradient
        return place - self.lr * gradient


class Adam:
    """Adam (Kingma & Ba 2015), elementwise, so that examples are independent.

    The coordinates of a simplex share one second moment: with one each, all decreasing coordinates would decrease
    alike, and the steps would lead to a tie between them instead of the lowest.
    """

    def __init__(self, lr: float, momentum: float, simplex: bool) -> None:
        self.lr, self.simplex = lr, simplex
        self.mean = self.square = None
        self.count = 0

    def __call__(self, place: Tensor, gradient: Tensor) -> Tensor:
        mean_decay, square_decay = 0.9, 0.999
        if self.simplex:
            gradient = gradient - gradient.mean(-1, keepdim=True)
        squares = gradient.square().mean(-1, keepdim=True) if self.simplex else gradient.square()
        if self.mean is None:
            self.mean, self.square = torch.zeros_like(gradient), torch.zeros_like(squares)
        self.count += 1
        self.mean.lerp_(gradient, 1 - mean_decay)
        self.square.mul_(square_decay).add_(squares, alpha=1 - square_decay)
        scale = (self.square / (1 - square_decay**self.count)).sqrt_().add_(1e-8)
        return torch.addcdiv(place, self.mean, scale, value=-self.lr / (1 - mean_decay**self.count))


STEPPERS = {"adam": Adam, "gradient": Gradient}
