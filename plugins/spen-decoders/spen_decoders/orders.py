"""The order in which labels are written: the frequent ones of the training part first."""

from __future__ import annotations

import torch
from torch import Tensor

from spen_plugins import Task

COUNTED = 100_000
"""About the most training examples that are counted; of more, some batches, evenly apart."""
AT_ONCE = 1024


def order_by_frequency(task: Task) -> Tensor:
    """Labels from the most to the least frequent in the training part, `(label,)`; of equal ones the first comes first.

    Labels as they are without a training part, as of a restored task.
    """
    examples = task.part("train")
    counts = torch.zeros(len(task.space.labels), dtype=torch.double)
    every = max(1, -(-len(examples) // COUNTED))
    for start in range(0, len(examples), every * AT_ONCE):
        batch = task.collate(examples[start : start + AT_ONCE])
        if batch.gold is not None:
            counts += batch.gold[batch.labelled, 0].double().sum(0).cpu()
    return counts.argsort(descending=True, stable=True)
