"""Order of the examples in an epoch: a pure function, so that a resumed run needs no loader state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

POOL = 64
"""Number of batches in a pool, in which examples are sorted by length."""


def epoch_batches(
    lengths: Sequence[int] | np.ndarray, batch_size: int, seed: int, stage: int, epoch: int
) -> list[np.ndarray]:
    """The rows of each batch of one epoch.

    Rows are shuffled by (seed, stage, epoch). If lengths differ, rows are sorted by length within pools of 64
    batches, so that a batch holds examples of similar length, and the batches are shuffled again.

    Args:
        lengths: `Task.length` of every example.
        batch_size: number of examples in a batch; the last may be smaller.
        seed, stage, epoch: arguments of the random order.
    """
    lengths = np.asarray(lengths)
    rng = np.random.default_rng([seed, stage, epoch])
    rows = rng.permutation(len(lengths))
    if len(lengths) and (lengths != lengths[0]).any():
        pool = POOL * batch_size
        parts = [rows[i : i + pool] for i in range(0, len(rows), pool)]
        rows = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in parts])
        batches = [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
        return [batches[i] for i in rng.permutation(len(batches))]
    return [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]


def evaluation_batches(lengths: Sequence[int] | np.ndarray, batch_size: int) -> list[np.ndarray]:
    """All rows once, longest first."""
    rows = np.argsort(-np.asarray(lengths), kind="stable")
    return [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
