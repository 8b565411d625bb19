"""Attention in float32 where training in bfloat16 on a CPU would be slower for it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

MOST = 10_000
"""Pieces times a head's numbers up to which float32 is faster: measured with 12 heads of 32 and of 64 numbers."""


class Float32Attention(TorchFunctionMode):
    """Computes `scaled_dot_product_attention` of short inputs in float32 where a CPU's autocast trains.

    In bfloat16 torch's fused kernel for CPUs takes up to four times as long for the gradient. Attention without a
    gradient stays as it is. So does attention with dropout, which that kernel lacks, and attention in float64.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention and _is_slow(*args, **kwargs):
            return _attend_in_float32(*args, **kwargs)
        return func(*args, **kwargs)


def is_casting() -> bool:
    """True if a CPU's autocast is on and gradients are recorded."""
    return torch.is_grad_enabled() and torch.is_autocast_enabled("cpu")


def _is_slow(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, **_: Any
) -> bool:
    is_short = key.shape[-2] * key.shape[-1] <= MOST
    is_learned = any(part.requires_grad for part in (query, key, value))
    is_cast = query.device.type == "cpu" and query.dtype != torch.float64 and is_casting()
    return is_cast and is_short and is_learned and not dropout_p


def _attend_in_float32(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *args: Any, **kwargs: Any
) -> Tensor:
    if attn_mask is not None and attn_mask.is_floating_point():
        attn_mask = attn_mask.float()
    with torch.autocast("cpu", enabled=False):
        attended = F.scaled_dot_product_attention(query.float(), key.float(), value.float(), attn_mask, *args, **kwargs)
    return attended.to(query.dtype)
