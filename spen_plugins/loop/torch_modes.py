"""The process during training and prediction: random states, memory, attention, numbers too small for full precision,
and the threads of forked processes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from spen_plugins.errors import RunError
from spen_plugins.trainer import Stage

if hasattr(os, "register_at_fork"):  # a forked process lacks its parent's threads, for which torch would wait for ever
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def random_state() -> dict[str, Any]:
    """The random states of Python, NumPy, torch and CUDA."""
    name, keys, position, has_gauss, cached = np.random.get_state()
    version, internal, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [str(name), torch.from_numpy(keys.astype(np.int64)), int(position), int(has_gauss), float(cached)],
        "python": [version, list(internal), gauss],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """The inverse of `random_state`."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch; NumPy takes seeds below 2³² only."""
    from accelerate.utils import set_seed  # prediction needs no accelerate, which is slow to import

    set_seed(seed % 2**32)


SMALLER = "reduce trainer.batch_size or the number of samples, or raise trainer.accumulate"
_MESSAGES = ("can't allocate memory", "Storage size calculation overflowed")


def is_out_of_memory(error: BaseException) -> bool:
    """True for an error of Python's or torch's allocator."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(text in str(error) for text in _MESSAGES)


@contextmanager
def translate_memory_errors(doing: str, smaller: str = SMALLER) -> Iterator[None]:
    """Raises a `RunError` in place of an allocator's error inside."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise RunError(f"ran out of memory while {doing} ({reason}); {smaller}") from error


def attention_kernels(stage: Stage) -> AbstractContextManager[Any]:
    """Inside, torch's attention can be differentiated twice if a phase of the stage does that; its fused kernels can't.

    This holds for the whole stage, because a proposal is kept from one phase to the next.
    """
    needs_math = any(phase.second_derivatives for phase in stage.phases)
    return sdpa_kernel(SDPBackend.MATH) if needs_math else nullcontext()


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Inside, numbers below 1e-38 count as zero. No score depends on them, but a CPU may take 50 times as long for a
    convolution of them (SoftPlus of large β makes many). The caller's mode is restored."""
    smallest = torch.finfo(torch.float32).tiny
    was_flushing = bool(torch.tensor(smallest) / 2 == 0)  # torch sets this mode, but can't return it
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_flushing)


@contextmanager
def use_float32() -> Iterator[None]:
    """Inside, nets are built in float32, which pretrained encoders are read in, whatever torch's default type is."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(default)
