"""Linear layers that multiply in int8, for prediction on a CPU, and checks of the products that a CPU supports."""

from __future__ import annotations

import platform
from functools import cache

import torch
from torch import Tensor, nn

NARROW = 64
"""Layers with fewer inputs or outputs stay in float32: low-rank adapters, where int8 gains nothing."""
SMALLEST = 1e-30
"""Smallest scale, which rows of zeros have."""


def has_int8() -> bool:
    """True if this build of torch has fast kernels, which oneDNN has for x86."""
    return torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")


def has_bfloat16() -> bool:
    """True if the processor and this build of torch multiply in bfloat16."""
    is_supported = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)  # torch 2.4 has no such function
    return is_supported() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


@cache
def largest_input() -> int:
    """The largest absolute value of rounded inputs: 127, or 63 if oneDNN adds products in 16 bits and cuts them off, as
    it does without VNNI. Found by trial, because `ONEDNN_MAX_CPU_ISA` may hide the processor's abilities."""
    with torch.device("cpu"):
        weight = torch.ones(NARROW, NARROW, dtype=torch.float32)
        sums = _multiply(torch.full((1, NARROW), 255, dtype=torch.uint8), 0, _round(weight))
    return 127 if bool((sums.round() == 255 * NARROW).all()) else 63


class Int8Linear(nn.Module):
    """A linear layer that multiplies in int8: weights are rounded with a scale for each output, inputs to 8 bits (7
    where `largest_input` is less) with a scale for each row, so that a row's output doesn't depend on others. It keeps
    and saves the layer's own weights, in float32.

    It uses the operators of torch's compiler: torch's own quantised layers need tensor types that will be removed, and
    torchao's take twice the time.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self._rounded = _round(linear.weight.detach().float())

    def forward(self, x: Tensor) -> Tensor:
        """`(..., in)` -> `(..., out)`, both float32."""
        largest = largest_input()
        scale = x.abs().amax(-1, keepdim=True).clamp_(min=SMALLEST).div_(largest)
        # From 1 to 2 * largest + 1; through int8, since torch casts to uint8 five times as slowly.
        inputs = (x / scale).round_().to(torch.int8).view(torch.uint8).add_(largest + 1)
        product = _multiply(inputs, largest + 1, self._rounded)
        return product.mul_(scale) if self.bias is None else torch.addcmul(self.bias, product, scale)


def _round(weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A weight `(out, in)` in int8 as oneDNN packs it, the outputs' scales, and their zeros."""
    scale = weight.abs().amax(1).clamp(min=SMALLEST) / 127
    packed_weight = torch.ops.onednn.qlinear_prepack((weight / scale.unsqueeze(1)).round().to(torch.int8), None)
    return packed_weight, scale, torch.zeros(len(scale), dtype=torch.long)


def _multiply(inputs: Tensor, zero: int, weight: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """The product of unsigned inputs, in which the number `zero` stands for 0, and rounded weights."""
    return torch.ops.onednn.qlinear_pointwise(inputs, 1.0, zero, *weight, None, 1.0, 0, torch.float32, "none", [], "")


def multiply_in_int8(net: nn.Module) -> int:
    """Put an `Int8Linear` in place of each linear layer of a net that is not narrow; returns their number."""
    layers = [
        (parent, name, layer)
        for parent in net.modules()
        for name, layer in parent.named_children()
        if type(layer) is nn.Linear and min(layer.weight.shape) >= NARROW
    ]
    for parent, name, layer in layers:
        setattr(parent, name, Int8Linear(layer))
    return len(layers)
