"""Order of the examples in an epoch: a pure function, so that a resumed run needs no loader state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

POOL = 64
"""Number of batches in a pool, in which examples are sorted by length."""


@dataclass(frozen=True)
class Epochs:
    """The batches of a stage's epochs.

    Args:
        lengths: `Task.length` of every example.
        batch_size: number of examples in a batch; the last of a pass may be smaller.
        least: fewest batches in an epoch; few examples are passed over several times.
        seed, stage: arguments of the random order.
    """

    lengths: np.ndarray
    batch_size: int
    least: int
    seed: int
    stage: int

    @property
    def batches_of_a_pass(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    @property
    def passes(self) -> int:
        """Number of passes over the examples in an epoch."""
        return max(1, -(-self.least // max(1, self.batches_of_a_pass)))

    @property
    def batches(self) -> int:
        """Number of batches in an epoch."""
        return self.passes * self.batches_of_a_pass

    def order(self, epoch: int) -> list[np.ndarray]:
        """The rows of each batch of an epoch."""
        numbers = range(epoch * self.passes, (epoch + 1) * self.passes)
        return [
            rows for n in numbers for rows in epoch_batches(self.lengths, self.batch_size, self.seed, self.stage, n)
        ]

    def number_of_pass(self, epoch: int, batch: int) -> int:
        """The number, in its stage, of the pass that a batch of an epoch belongs to."""
        return epoch * self.passes + batch // self.batches_of_a_pass


def epoch_batches(
    lengths: Sequence[int] | np.ndarray, batch_size: int, seed: int, stage: int, number: int
) -> list[np.ndarray]:
    """The rows of each batch of one pass over the examples.

    Rows are shuffled by (seed, stage, pass). If lengths differ, rows are sorted by length within pools of 64
    batches, so that a batch holds examples of similar length, and the batches are shuffled again.

    Args:
        lengths: `Task.length` of every example.
        batch_size: number of examples in a batch; the last may be smaller.
        seed, stage, number: arguments of the random order; the number of the pass.
    """
    lengths = np.asarray(lengths)
    rng = np.random.default_rng([seed, stage, number])
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
