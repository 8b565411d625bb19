"""The images that figures show, with the outputs of several runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from spen_plugins import Batch, Predictor, Registry, RunFolder, Task
from spen_plugins.figures import load_task

if TYPE_CHECKING:
    from spen_plugins.figures import Group


class Decoded(NamedTuple):
    """A run's output for an image; `number` is the image's, `y` is `(1, 1, row, column)`."""

    label: str
    run: RunFolder
    number: int
    task: Task
    example: Any
    batch: Batch
    y: Tensor


def decode_first(groups: Sequence[Group], count: int, check: Callable[[Task, RunFolder], None]) -> Iterator[Decoded]:
    """The first images of the runs' test part (validation, without one), decoded by the first run of each group.

    Args:
        groups: the runs.
        count: number of images.
        check: raises an error for a run of another task.
    """
    for group in groups:
        run, registry = group.runs[0], Registry()
        task = load_task(run, registry)
        check(task, run)
        model = Predictor(run, registry=registry).model
        for number, example in enumerate((task.part("test") or task.part("validation"))[:count]):
            batch = task.collate([example])
            with torch.no_grad():
                y = task.decode(model.propose(batch.x), batch.x)
            yield Decoded(group.label, run, number, task, example, batch, y)
