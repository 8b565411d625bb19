"""Scores of a part under the current weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.errors import PluginError
from spen_plugins.loop.denormals import without_denormals
from spen_plugins.loop.order import evaluation_batches
from spen_plugins.model import Model
from spen_plugins.scores.calibration import Decisions
from spen_plugins.spaces import Proposal
from spen_plugins.task import Metric, Task
from spen_plugins.task_parts import Calibrated


def batches(task: Task, examples: Sequence[Any], batch_size: int, device: torch.device | str) -> list[Batch]:
    """All `examples` as batches, in order."""
    return list(each_batch(task, examples, batch_size, device))


def each_batch(task: Task, examples: Sequence[Any], batch_size: int, device: torch.device | str) -> Iterator[Batch]:
    """The same batches one by one."""
    for start in range(0, len(examples), batch_size):
        yield task.collate(examples[start : start + batch_size]).to(device)


def proposals(
    model: Model,
    task: Task,
    examples: Sequence[Any],
    batch_size: int,
    device: torch.device | str,
    evaluates: bool = False,
) -> Iterator[tuple[Proposal, Batch, list[int]]]:
    """Each batch of `examples` with the model's proposal and the rows, longest examples first.

    Under `no_grad`, never `inference_mode`: a gradient-based net enables gradients again.

    Args:
        evaluates: whether all of the model is in evaluation mode; to set it takes a while of small batches' time.
    """
    if not evaluates:
        model.eval()
    for rows in evaluation_batches([task.length(example) for example in examples], batch_size):
        chosen = rows.tolist()
        batch = task.collate([examples[i] for i in chosen], chosen).to(device)
        with torch.no_grad():
            with without_denormals():
                proposal = model.propose(batch.x)
            yield proposal, batch, chosen


def evaluate(
    model: Model,
    task: Task,
    examples: Sequence[Any],
    batch_size: int,
    device: torch.device | str,
    decisions: list[Decisions] | None = None,
) -> Metric:
    """The task's metric over `examples`, ready to `compute`; batches' decisions are appended to a list, if given."""
    metric = task.metric()
    for proposal, batch, _ in proposals(model, task, examples, batch_size, device):
        metric.update(proposal, batch)
        if decisions is not None and isinstance(task, Calibrated):
            found = task.decisions(proposal, batch)
            decisions += [] if found is None else [found]
    return metric


def example_ratios(metric: Metric, task: Task, examples: Sequence[Any]) -> dict[str, Tensor]:
    """The metric's `ratios` over `examples` in their own order: `numerator`, `denominator`; empty if it has none.

    Args:
        metric: the metric of `evaluate` over the same examples.
        task, examples: as for `evaluate`.
    """
    ratios = metric.ratios()
    if ratios is None:
        return {}
    [order] = evaluation_batches([task.length(example) for example in examples], len(examples))
    if any(len(values) != len(order) for values in ratios):
        raise PluginError(
            f"{type(metric).__name__}.ratios gave {len(ratios[0])} numerators and {len(ratios[1])} denominators for "
            f"{len(order)} examples; expected one of each an example, 0 and 0 where it has no gold"
        )
    back = torch.from_numpy(np.argsort(order))
    return {name: values[back] for name, values in zip(("numerator", "denominator"), ratios, strict=True)}
