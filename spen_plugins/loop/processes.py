"""Training with several processes: weights, random states, rows and decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast

from spen_plugins.loop.random_state import set_random_state
from spen_plugins.model import Model


def any_process(asked: bool, accelerator: Accelerator) -> bool:
    """True if any process asks to stop, so that all stop after the same batch."""
    if accelerator.num_processes == 1:
        return asked
    flag = torch.tensor(float(asked), device=accelerator.device)
    return bool(accelerator.reduce(flag, "sum") > 0)


def same_weights(model: Model, accelerator: Accelerator) -> None:
    """Copy the main process's weights to every process."""
    if accelerator.num_processes > 1:
        for parameter in model.parameters():
            broadcast(parameter.data)


def restore_random_state(state: dict[str, Any], accelerator: Accelerator, *place: int) -> None:
    """Restore a saved random state in the main process; the others are seeded with their own.

    Args:
        state: result of `random_state`.
        accelerator: identifies this process.
        place: seed, stage, epoch and batch, which determine the seed of the others.
    """
    set_random_state(state)
    if accelerator.process_index:
        seed, *rest = place
        torch.manual_seed(hash((seed, accelerator.process_index, *rest)) % 2**63)


def shares(rows: np.ndarray, accelerator: Accelerator, parts: int) -> list[list[int]]:
    """This process's rows of a batch, in at most `parts` parts, none empty."""
    mine = rows[accelerator.process_index :: accelerator.num_processes]
    found = np.array_split(mine, min(parts, max(len(mine), 1)))
    return [part for part in map(np.ndarray.tolist, found) if part]
