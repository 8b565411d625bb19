"""Linear layers that multiply in int8, for prediction on a CPU, and what a processor can multiply."""

from __future__ import annotations

import platform

import torch
from torch import Tensor, nn

NARROW = 64
"""Layers with fewer inputs or outputs stay in float32: low-rank adapters, where int8 gains nothing."""
TOP = 63
"""Largest absolute value of rounded inputs: sums of products of 8 bits are cut off on processors without VNNI."""
SMALLEST = 1e-30
"""Smallest scale: rows of zeros have one."""


def has_int8() -> bool:
    """True if this build of torch has fast kernels, those of oneDNN for x86."""
    return torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")


def has_bfloat16() -> bool:
    """True if the processor and this build of torch multiply in bfloat16."""
    supports = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)  # torch 2.4 has no such function
    return supports() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


class Int8Linear(nn.Module):
    """A linear layer that multiplies in int8: weights are rounded with a scale for each output, inputs to 7 bits with a
    scale for each row, so that a row's output doesn't depend on others. It keeps the layer's own weights, in float32,
    which are what is saved.

    It uses the operators of torch's compiler: torch's own quantised layers need tensor types that will be removed, and
    torchao's take twice the time.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        weight = linear.weight.detach().float()
        scale = weight.abs().amax(1).clamp(min=SMALLEST) / 127
        packed = torch.ops.onednn.qlinear_prepack((weight / scale.unsqueeze(1)).round().to(torch.int8), None)
        self._rounded = packed, scale, torch.zeros(len(scale), dtype=torch.long)

    def forward(self, x: Tensor) -> Tensor:
        """`(..., in)` -> `(..., out)`, both float32."""
        scale = x.abs().amax(-1, keepdim=True).clamp_(min=SMALLEST).div_(TOP)
        # To the nearest, from 1 to 2 * TOP + 1; through int8, since torch casts to uint8 five times as slowly.
        shifted = (x / scale).add_(TOP + 1.5).to(torch.int8).view(torch.uint8)
        inputs, outputs = (shifted, 1.0, TOP + 1), (1.0, 0, torch.float32, "none", [], "")
        product = torch.ops.onednn.qlinear_pointwise(*inputs, *self._rounded, None, *outputs)
        return product.mul_(scale) if self.bias is None else torch.addcmul(self.bias, product, scale)


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
