"""Modes of torch during training: kernels of attention, and numbers too small for full precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from spen_plugins.trainer import Stage


def attention_kernels(stage: Stage) -> AbstractContextManager[Any]:
    """Inside, torch's attention can be differentiated twice if a phase of the stage does that; its fused kernels can't.

    All of the stage, because a proposal is kept from one phase to the next.
    """
    twice = any(phase.second_derivatives for phase in stage.phases)
    return sdpa_kernel(SDPBackend.MATH) if twice else nullcontext()


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Inside, numbers below 1e-38 count as zero. No score depends on them, but a CPU may take 50 times as long for a
    convolution of them (SoftPlus of large β makes many). The caller's mode is restored."""
    smallest = torch.finfo(torch.float32).tiny
    before = bool(torch.tensor(smallest) / 2 == 0)  # torch sets this mode, but doesn't tell it
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
