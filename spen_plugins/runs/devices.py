"""Devices and accelerators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from spen_plugins.config.experiment import Precision
from spen_plugins.errors import ConfigError


def check_device(device: str) -> None:
    """Check that torch can compute on a device.

    Raises:
        ConfigError: it can't.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device {device!r}: {str(error).splitlines()[0]}") from error


def make_accelerator(precision: Precision, device: str | None) -> Accelerator:
    """Device, precision and processes, by accelerate (and `accelerate launch`).

    Raises:
        ConfigError: the device is missing, or does not support the precision.
    """
    if device is not None:
        check_device(device)
    AcceleratorState._reset_state(reset_partial_state=True)
    wanted = None if device is None else torch.device(device)
    if wanted is not None and wanted.type == "cuda" and wanted.index is not None:
        torch.cuda.set_device(wanted)
    try:
        cpu = wanted is not None and wanted.type == "cpu"
        accelerator = Accelerator(cpu=cpu, mixed_precision=precision)
    except ValueError as error:
        raise ConfigError(f"precision {precision!r}: {error}") from error
    if precision == "fp16" and accelerator.device.type == "cpu":
        raise ConfigError("precision 'fp16' needs a GPU; on a CPU take 'bf16' or 'no'")
    if accelerator.device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)
    return accelerator


@contextmanager
def callers_settings(device: str | None) -> Iterator[None]:
    """What `make_accelerator` and accelerate set in torch is afterwards what it was before: whether algorithms are
    deterministic, and the current GPU.

    Args:
        device: the one that is asked for inside; None: the best.
    """
    mode = torch.get_deterministic_debug_mode()
    gpu = torch.cuda.is_available() and (device or "cuda").startswith("cuda")
    current = torch.cuda.current_device() if gpu else None
    try:
        yield
    finally:
        if torch.get_deterministic_debug_mode() != mode:
            torch.set_deterministic_debug_mode(mode)
        if current is not None:
            torch.cuda.set_device(current)
