"""Kernels of attention during a stage."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch.nn.attention import SDPBackend, sdpa_kernel

from spen_plugins.trainer import Stage


def attention_of(stage: Stage) -> AbstractContextManager[Any]:
    """Inside, torch's attention can be differentiated twice if a phase of the stage does that; its fused kernels can't.

    All of the stage, because a proposal is kept from one phase to the next.
    """
    twice = any(phase.second_derivatives for phase in stage.phases)
    return sdpa_kernel(SDPBackend.MATH) if twice else nullcontext()
