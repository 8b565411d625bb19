"""Small networks that are convex in their input."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class NonNegative(nn.Linear):
    """A linear layer whose weights are SoftPlus of its parameters, so that they are above 0: all layers but the first of
    an input convex network (Amos et al. 2017). Its output is at first about the mean of its inputs."""

    def reset_parameters(self) -> None:
        super().reset_parameters()
        with torch.no_grad():
            self.weight.add_(math.log(math.expm1(1 / self.in_features)))

    def forward(self, values: Tensor) -> Tensor:
        return F.linear(values, F.softplus(self.weight), self.bias)


class SmoothTail(nn.Module):
    """The layers after the first: h -> a number, SoftPlus after each layer but the last, twice differentiable.

    Args:
        width: of h, and of the hidden layer.
        convex: if true, the output is convex in h and rises with it, and so is convex in what h is affine in.
    """

    def __init__(self, width: int, convex: bool) -> None:
        super().__init__()
        layer = NonNegative if convex else nn.Linear
        self.hidden = layer(width, width)
        self.last = layer(width, 1, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        """`(…, width)` -> `(…)`."""
        return self.last(F.softplus(self.hidden(F.softplus(h)))).squeeze(-1)
