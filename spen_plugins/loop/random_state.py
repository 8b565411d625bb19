"""The random states of Python, NumPy, torch and CUDA: seeded, saved and restored."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from accelerate.utils import set_seed


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
    set_seed(seed % 2**32)
