"""Linear layers that multiply in int8, for prediction on a CPU."""

from __future__ import annotations

import platform

import torch
from torch import Tensor, nn

NARROW = 64
"""Layers with fewer inputs or outputs stay in float32: low-rank adapters, where int8 gains nothing."""
TOP = 127
"""Inputs are rounded to 0 to 127: sums of products of eight bits overflow on processors without VNNI."""


def has_int8() -> bool:
    """True if this build of torch has fast kernels, those of oneDNN for x86."""
    return torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")


class Int8Linear(nn.Module):
    """A linear layer in float32 whose products are in int8: weights are rounded with a scale for each output, inputs
    with a scale and an offset for each call. It keeps the layer's own weights, which are what is saved.

    It uses the operators of torch's compiler. torch's own quantised layers need tensor types that torch will remove,
    torchao's take twice the time.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        weight = linear.weight.detach().float()
        scale = weight.abs().amax(1).clamp(min=torch.finfo(torch.float).tiny) / 127
        packed = torch.ops.onednn.qlinear_prepack((weight / scale.unsqueeze(1)).round().to(torch.int8), None)
        bias = None if linear.bias is None else linear.bias.detach().float()
        self._weights = (packed, scale, torch.zeros(len(scale), dtype=torch.long), bias)

    def forward(self, x: Tensor) -> Tensor:
        """`(..., in)` -> `(..., out)`, both float32."""
        low, high = (end.item() for end in torch.aminmax(x))
        low, high = min(low, 0.0), max(high, 0.0)
        step = max(high - low, 1e-30) / TOP
        offset = round(-low / step) if low == low and step < torch.inf else 0  # NaN or infinite: so is the output
        rounded = torch.add(torch.tensor(offset + 0.5), x, alpha=1 / step).to(torch.uint8)
        inputs, outputs = (rounded, step, offset), (1.0, 0, torch.float32, "none", [], "")
        return torch.ops.onednn.qlinear_pointwise(*inputs, *self._weights, *outputs)


def multiply_in_int8(net: nn.Module) -> None:
    """Put an `Int8Linear` in place of each linear layer of a net that is not narrow."""
    for parent in list(net.modules()):
        for name, part in parent.named_children():
            if type(part) is nn.Linear and min(part.weight.shape) >= NARROW:
                setattr(parent, name, Int8Linear(part))
