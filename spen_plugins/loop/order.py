"""Order of the examples in an epoch: a pure function, so that a resumed run needs no loader state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from spen_plugins.data.disk.on_disk import OnDisk
from spen_plugins.task import Task
from spen_plugins.task_parts import SharesSentences
from spen_plugins.trainer import TrainerConfig

POOL = 64
"""Number of batches in a pool, in which examples are sorted by length."""
MIXED = 64
"""Number of blocks of examples on disk whose rows are mixed."""


@dataclass(frozen=True, eq=False)
class Epochs:
    """The batches of a stage's epochs: passes over the examples, one after the other, cut into epochs.

    Args:
        lengths: `Task.length` of every example.
        batch_size: number of examples in a batch; the last of a pass may be smaller.
        min_batches: fewest batches in an epoch; few examples are passed over several times.
        seed, stage: arguments of the random order.
        max_batches: most batches in an epoch, even if a pass has more; None: no limit.
        block: rows in a block of examples on disk: blocks come in random order, and rows and batches are mixed only
            within 64 successive blocks, so that few places of the disk are read at a time; None: all are mixed.
        groups: `SharesSentences.groups` of examples in memory: the groups are shuffled in place of the rows, so that
            rows of a group, of equal length, are in one batch, or in two if a batch is full.
    """

    lengths: np.ndarray
    batch_size: int
    min_batches: int
    seed: int
    stage: int
    max_batches: int | None = None
    block: int | None = None
    groups: np.ndarray | None = None

    @property
    def batches_of_a_pass(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    @property
    def passes(self) -> int:
        """Number of passes over the examples in an epoch that has no limit."""
        return max(1, -(-self.min_batches // max(1, self.batches_of_a_pass)))

    @property
    def batches(self) -> int:
        """Number of batches in an epoch."""
        count = self.passes * self.batches_of_a_pass
        return count if self.max_batches is None else min(count, self.max_batches)

    def order(self, epoch: int) -> list[np.ndarray]:
        """The rows of each batch of an epoch."""
        first = epoch * self.batches
        pass_numbers = range(self.find_pass(epoch, 0), self.find_pass(epoch, self.batches - 1) + 1)
        batches = [rows for pass_number in pass_numbers for rows in batches_of_pass(self, pass_number)]
        start = first - pass_numbers[0] * self.batches_of_a_pass
        return batches[start : start + self.batches]

    def find_pass(self, epoch: int, batch: int) -> int:
        """The number, in its stage, of the pass that a batch of an epoch belongs to."""
        return (epoch * self.batches + batch) // self.batches_of_a_pass


def plan_epochs(task: Task, examples: Sequence[Any], config: TrainerConfig, seed: int, stage: int) -> Epochs:
    """The epochs of a stage's examples; examples on disk are read in blocks."""
    on_disk = isinstance(examples, OnDisk)
    lengths = examples.lengths if on_disk else np.array([task.length(example) for example in examples])
    min_batches, max_batches = config.epoch_updates, config.epoch_updates_at_most
    block = examples.block if on_disk else None
    groups = task.groups(examples) if isinstance(task, SharesSentences) and not on_disk else None
    return Epochs(lengths, config.choose_batch_size(len(lengths)), min_batches, seed, stage, max_batches, block, groups)


@lru_cache(maxsize=1)  # several epochs may belong to one pass
def batches_of_pass(epochs: Epochs, number: int) -> list[np.ndarray]:
    """The rows of each batch of one pass over the examples, by its number.

    Rows are shuffled by (seed, stage, pass). If lengths differ, rows are sorted by length within pools of 64
    batches, so that a batch holds examples of similar length, and the batches are shuffled again.
    """
    lengths, size, block, groups = epochs.lengths, epochs.batch_size, epochs.block, epochs.groups
    rng = np.random.default_rng([epochs.seed, epochs.stage, number])
    window = len(lengths) if block is None else MIXED * block
    if groups is not None and len(groups):
        rows = np.argsort(rng.permutation(int(groups.max()) + 1)[groups], kind="stable")
    elif window >= len(lengths):
        rows = rng.permutation(len(lengths))
    else:
        rows = _shuffle_by_blocks(len(lengths), block or 1, rng)
    if len(lengths) and (lengths != lengths[0]).any():
        pool_size = POOL * size
        parts = [rows[i : i + pool_size] for i in range(0, len(rows), pool_size)]
        rows = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in parts])
        batches = [rows[i : i + size] for i in range(0, len(rows), size)]
        stretch_size = max(1, -(-window // size))
        stretches = [batches[i : i + stretch_size] for i in range(0, len(batches), stretch_size)]
        return [stretch[i] for stretch in stretches for i in rng.permutation(len(stretch))]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _shuffle_by_blocks(size: int, block: int, rng: np.random.Generator) -> np.ndarray:
    """All rows: blocks in random order, rows mixed within `MIXED` successive blocks."""
    starts = rng.permutation(-(-size // block)) * block
    parts = [starts[i : i + MIXED] for i in range(0, len(starts), MIXED)]
    rows = [np.concatenate([np.arange(start, min(start + block, size)) for start in part]) for part in parts]
    return np.concatenate([rng.permutation(part) for part in rows])


def evaluation_batches(lengths: Sequence[int] | np.ndarray, batch_size: int) -> list[np.ndarray]:
    """All rows once, longest first."""
    rows = np.argsort(-np.asarray(lengths), kind="stable")
    return [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
