"""Linear layers that multiply in int8, for prediction on a CPU."""

from __future__ import annotations

import platform
from functools import cache

import torch
from torch import Tensor, nn

NARROW = 64
"""Layers with fewer inputs or outputs stay in float32: low-rank adapters, where int8 gains nothing."""
SMALLEST = 1e-30
"""Smallest scale: rows of zeros have one."""


def has_int8() -> bool:
    """True if this build of torch has fast kernels, those of oneDNN for x86."""
    return torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")


class Int8Linear(nn.Module):
    """A linear layer that multiplies in int8: weights are rounded with a scale for each output, inputs with a scale for
    each row, so that a row's output doesn't depend on others. It keeps the layer's own weights, in float32, which are
    what is saved.

    It uses the operators of torch's compiler: torch's own quantised layers need tensor types that will be removed, and
    torchao's take twice the time.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias, self._top = linear.weight, linear.bias, find_top()
        self._rounded = _round(linear.weight.detach().float())

    def forward(self, x: Tensor) -> Tensor:
        """`(..., in)` -> `(..., out)`, both float32."""
        scale = x.abs().amax(-1, keepdim=True).clamp_(min=SMALLEST).div_(self._top)
        shifted = (x / scale).add_(self._top + 1.5).to(torch.uint8)  # to the nearest, from 1 to 2 * top + 1
        product = _multiply(shifted, self._rounded, self._top).mul_(scale)
        return product if self.bias is None else product.add_(self.bias)


@cache
def find_top() -> int:
    """The largest absolute value of rounded inputs: 127, or 63 on processors without VNNI, where sums of two products
    of 8 bits are cut off."""
    largest = torch.full((1, NARROW), 255, dtype=torch.uint8)
    found = _multiply(largest, _round(torch.full((NARROW, NARROW), 127.0)), 127)
    return 127 if found[0, 0].item() == 127 * 127 * NARROW else 63


def _round(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A weight in the kernel's own layout, and the scale and the zero of each output."""
    scale = weight.abs().amax(1).clamp(min=SMALLEST) / 127
    packed = torch.ops.onednn.qlinear_prepack((weight / scale.unsqueeze(1)).round().to(torch.int8), None)
    return packed, scale, torch.zeros(len(scale), dtype=torch.long)


def _multiply(shifted: Tensor, weight: tuple[Tensor, Tensor, Tensor], top: int) -> Tensor:
    """Integers from -top to top, `(..., in)`, stored with top + 1 added to them, by a rounded weight: `(..., out)`."""
    return torch.ops.onednn.qlinear_pointwise(
        shifted, 1.0, top + 1, *weight, None, 1.0, 0, torch.float32, "none", [], ""
    )


def multiply_in_int8(net: nn.Module) -> int:
    """Put an `Int8Linear` in place of each linear layer of a net that is not narrow; returns their number."""
    found = [
        (parent, name, part)
        for parent in net.modules()
        for name, part in parent.named_children()
        if type(part) is nn.Linear and min(part.weight.shape) >= NARROW
    ]
    for parent, name, part in found:
        setattr(parent, name, Int8Linear(part))
    return len(found)
