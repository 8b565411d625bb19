"""The label sets of the training part, for what a structure learns from them before training."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from spen_plugins import Task

COUNTED = 100_000
"""About the most training examples that are read; of more, some batches, evenly apart."""
AT_ONCE = 1024


def training_labels(task: Task) -> Iterator[Tensor]:
    """Gold of the training examples that have it, boolean `(example, label)` each; none of a restored task."""
    examples = task.part("train")
    every = max(1, -(-len(examples) // COUNTED))
    for start in range(0, len(examples), every * AT_ONCE):
        batch = task.collate(examples[start : start + AT_ONCE])
        if batch.gold is not None:
            yield batch.gold[batch.labelled, 0] > 0.5
