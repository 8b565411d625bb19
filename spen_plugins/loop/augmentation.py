"""Training examples in the form that they have in one pass over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from spen_plugins.batch import Batch
from spen_plugins.data.disk.on_disk import chosen
from spen_plugins.task import Task
from spen_plugins.task_parts import Augments
from spen_plugins.trainer import Stage


def collate_rows(
    task: Task, stage: Stage, examples: Sequence[Any], rows: Sequence[int], place: tuple[int, int, int]
) -> Batch:
    """The batch of some rows of a stage's examples, without gold if the stage hides it; `place`: seed, stage, pass."""
    batch = task.collate(augment_rows(task, chosen(examples, rows), rows, *place), rows)
    return batch if stage.gold else replace(batch, gold=None, labelled=torch.zeros_like(batch.labelled))


def augment_rows(
    task: Task, examples: Sequence[Any], rows: Sequence[int], seed: int, stage: int, number: int
) -> Sequence[Any]:
    """`Augments.augment` of each example; `examples` themselves if the task has no such part.

    The random numbers of an example depend only on (seed, stage, pass, row): neither on its batch nor on the number of
    parts or processes, so that a resumed run sees the same.
    """
    if not isinstance(task, Augments):
        return examples
    rngs = (np.random.default_rng((seed, stage, number, row)) for row in rows)
    return [task.augment(example, rng) for example, rng in zip(examples, rngs, strict=True)]
