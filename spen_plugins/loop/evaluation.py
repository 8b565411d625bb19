"""A part's score under the current weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from spen_plugins.batch import Batch, Proposal
from spen_plugins.loop.order import evaluation_batches
from spen_plugins.model import Model
from spen_plugins.task import Metric, Task


def proposals(
    model: Model, task: Task, examples: Sequence[Any], batch_size: int, device: torch.device | str
) -> Iterator[tuple[Proposal, Batch, list[int]]]:
    """Each batch of `examples` with what the model proposes for it and its rows, longest examples first.

    Under `no_grad`, never `inference_mode`: a gradient-based net switches gradients on again.
    """
    model.eval()
    for rows in evaluation_batches([task.length(example) for example in examples], batch_size):
        chosen = rows.tolist()
        batch = task.collate([examples[i] for i in chosen], chosen).to(device)
        with torch.no_grad():
            yield model.propose(batch.x), batch, chosen


def evaluate(model: Model, task: Task, examples: Sequence[Any], batch_size: int, device: torch.device | str) -> Metric:
    """The task's metric over `examples`, ready to `compute`."""
    metric = task.metric()
    for proposal, batch, _ in proposals(model, task, examples, batch_size, device):
        metric.update(proposal, batch)
    return metric
