"""Numbers too small for full precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def without_denormals() -> Iterator[None]:
    """Inside, numbers below 1e-38 count as zero. No score depends on them, but a CPU may take 50 times as long for a
    convolution of them (SoftPlus of large β makes many). The caller's mode is restored."""
    smallest = torch.finfo(torch.float32).tiny
    before = bool(torch.tensor(smallest) / 2 == 0)  # torch sets this mode, but doesn't tell it
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
