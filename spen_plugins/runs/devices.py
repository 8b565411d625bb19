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
    """Device, precision and processes, by accelerate."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    if device is not None:
        check_device(device)
    processes = count_processes()
    AcceleratorState._reset_state(reset_partial_state=True)
    wanted = None if device is None else torch.device(device)
    if wanted is not None and wanted.type == "cuda" and wanted.index is not None:
        if processes > 1:
            raise ConfigError(
                f"device {device!r} is one GPU, but there are {processes} processes; use 'cuda' for one GPU each"
            )
        torch.cuda.set_device(wanted)
    cpu = wanted is not None and wanted.type == "cpu"
    if processes > 1 and not cpu:
        cpu = not _has_gpus(processes)
    try:
        accelerator = Accelerator(cpu=cpu, mixed_precision=precision)
    except ValueError as error:
        raise ConfigError(f"precision {precision!r}: {error}") from error
    except torch.distributed.DistError as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"the processes of this run could not connect to each other at {where} ({reason:.200})"
        ) from error
    if precision == "fp16" and accelerator.device.type == "cpu":
        raise ConfigError("precision 'fp16' requires a GPU; on a CPU use 'bf16' or 'no'")
    if accelerator.device.type == "cuda":
        torch.use_deterministic_algorithms(True, warn_only=True)
    return accelerator


def count_processes() -> int:
    """Number of processes that torchrun started, of which this is one; 1 without it."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    missing = [name for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if processes > 1 and missing:
        raise ConfigError(
            f"found WORLD_SIZE={processes} in the environment, without {', '.join(missing)}; expected all of them, as "
            "torchrun sets them, or none"
        )
    return processes


def is_main_process() -> bool:
    """False in all but one of the processes that torchrun started."""
    return count_processes() == 1 or os.environ["RANK"] == "0"


def _has_gpus(processes: int) -> bool:
    """True if each of several processes has a GPU; a ConfigError if there are too few."""
    if not torch.cuda.is_available():
        return hasattr(torch, "xpu") and torch.xpu.is_available()
    here, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", processes)), torch.cuda.device_count()
    if here > gpus:
        raise ConfigError(
            f"found {here} processes and {gpus} GPUs on this machine; start one process per GPU "
            "(--nproc_per_node), or give --device cpu"
        )
    return True


@contextmanager
def restore_settings(device: str | None) -> Iterator[None]:
    """Restores afterwards random states, and torch's settings that `make_accelerator` and accelerate change:
    deterministic algorithms, and the current GPU.
    """
    mode, states = torch.get_deterministic_debug_mode(), random_state()
    gpu = torch.cuda.is_available() and (device or "cuda").startswith("cuda")
    current = torch.cuda.current_device() if gpu else None
    try:
        yield
    finally:
        set_random_state(states)
        if torch.get_deterministic_debug_mode() != mode:
            torch.set_deterministic_debug_mode(mode)
        if current is not None:
            torch.cuda.set_device(current)
