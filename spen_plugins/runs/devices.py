"""Devices, accelerators, and the processes that a launcher started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from spen_plugins.config.experiment import Precision
from spen_plugins.errors import ConfigError
from spen_plugins.loop.torch_modes import random_state, set_random_state

if TYPE_CHECKING:
    from accelerate import Accelerator


def check_device(device: str) -> None:
    """Check that torch can compute on a device."""
    try:
        torch.device(device)
    except RuntimeError:
        raise ConfigError(f"device {device!r}: no such device; expected cpu, cuda, cuda:1 or mps") from None
    try:
        torch.empty(0, device=device)
    except (NotImplementedError, ImportError):
        raise ConfigError(f"device {device!r}: torch can't use it on this machine; use cpu") from None
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device {device!r}: {str(error).splitlines()[0]}") from error


def make_accelerator(precision: Precision, device: str | None) -> Accelerator:
    """accelerate's object for device, precision and processes."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    if device is not None:
        check_device(device)
    processes = count_processes()
    AcceleratorState._reset_state(reset_partial_state=True)
    torch_device = None if device is None else torch.device(device)
    if torch_device is not None and torch_device.type == "cuda" and torch_device.index is not None:
        if processes > 1:
            raise ConfigError(
                f"device {device!r} is one GPU, but there are {processes} processes; use 'cuda' for one GPU each"
            )
        torch.cuda.set_device(torch_device)
    uses_cpu = torch_device is not None and torch_device.type == "cpu"
    if processes > 1 and not uses_cpu:
        uses_cpu = not _has_gpus(processes)
    try:
        accelerator = Accelerator(cpu=uses_cpu, mixed_precision=precision)
    except ValueError as error:
        raise ConfigError(f"precision {precision!r}: {error}") from error
    except torch.distributed.DistError as error:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"the processes of this run could not connect to each other at {address} ({reason:.200})"
        ) from error
    if precision == "fp16" and accelerator.device.type == "cpu":
        raise ConfigError("precision 'fp16' requires a GPU; on a CPU use 'bf16' or 'no'")
    if accelerator.device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)
    return accelerator


def count_processes() -> int:
    """Number of processes that torchrun started, including this one; 1 without torchrun."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    missing = [name for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if processes > 1 and missing:
        raise ConfigError(
            f"found WORLD_SIZE={processes} in the environment, without {', '.join(missing)}; expected all of them, as "
            "torchrun sets them, or none"
        )
    return processes


def is_main_process() -> bool:
    """True in exactly one of the processes that torchrun started."""
    return count_processes() == 1 or os.environ["RANK"] == "0"


def _has_gpus(processes: int) -> bool:
    """True if each of several processes has a GPU; raises a ConfigError if there are too few."""
    if not torch.cuda.is_available():
        return hasattr(torch, "xpu") and torch.xpu.is_available()
    local_processes, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", processes)), torch.cuda.device_count()
    if local_processes > gpus:
        raise ConfigError(
            f"found {local_processes} processes and {gpus} GPUs on this machine; start one process per GPU "
            "(--nproc_per_node), or give --device cpu"
        )
    return True


@contextmanager
def restore_settings(device: str | None) -> Iterator[None]:
    """Restores random states on exit, and the settings of torch that `make_accelerator` and accelerate change:
    deterministic algorithms and the current GPU.
    """
    mode, states = torch.get_deterministic_debug_mode(), random_state()
    uses_gpu = torch.cuda.is_available() and (device or "cuda").startswith("cuda")
    current_gpu = torch.cuda.current_device() if uses_gpu else None
    try:
        yield
    finally:
        set_random_state(states)
        if torch.get_deterministic_debug_mode() != mode:
            torch.set_deterministic_debug_mode(mode)
        if current_gpu is not None:
            torch.cuda.set_device(current_gpu)
