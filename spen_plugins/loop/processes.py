"""Several processes that train together: weights, random states, rows and decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast

from spen_plugins.loop.random_state import set_random_state
from spen_plugins.model import Model


def any_process(asked: bool, accelerator: Accelerator) -> bool:
    """Whether any process says so: all stop after the same batch."""
    if accelerator.num_processes == 1:
        return asked
    flag = torch.tensor(float(asked), device=accelerator.device)
    return bool(accelerator.reduce(flag, "sum") > 0)


def same_weights(model: Model, accelerator: Accelerator) -> None:
    """Give every process the main one's weights."""
    if accelerator.num_processes > 1:
        for parameter in model.parameters():
            broadcast(parameter.data)


def restore_random_state(state: dict[str, Any], accelerator: Accelerator, *place: int) -> None:
    """Put a saved random state back, the main process's; the others go on with noise of their own.

    Args:
        state: of `random_state`.
        accelerator: which process this is.
        place: seed, stage, epoch and batch, of which the noise of the others is a function.
    """
    set_random_state(state)
    if accelerator.process_index:
        seed, *rest = place
        torch.manual_seed(hash((seed, accelerator.process_index, *rest)) % 2**63)


def shares(rows: np.ndarray, accelerator: Accelerator, parts: int) -> list[list[int]]:
    """This process's rows of a batch, in at most so many parts, none empty."""
    mine = rows[accelerator.process_index :: accelerator.num_processes]
    found = np.array_split(mine, min(parts, max(len(mine), 1)))
    return [part for part in map(np.ndarray.tolist, found) if part]
