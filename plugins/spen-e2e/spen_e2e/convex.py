"""Layers of energies that are convex in y: input-convex networks (Amos et al. 2017; Belanger et al. 2017, Sec. 2.3)."""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor, nn
from torch.nn.utils import parametrize

Layer = TypeVar("Layer", bound=nn.Module)


class _Magnitude(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight.abs()


def non_negative(layer: Layer) -> Layer:
    """The layer with |weight| in place of its weight, which stays the parameter that is trained; the bias is free.

    A net is convex in y if its first layer is any linear one, all later ones are such layers, and what is between them
    is convex and non-decreasing, as SoftPlus is.
    """
    parametrize.register_parametrization(layer, "weight", _Magnitude())
    return layer
