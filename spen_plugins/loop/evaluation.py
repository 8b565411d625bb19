"""Scores of a part under the current weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.errors import PluginError
from spen_plugins.loop.order import evaluation_batches
from spen_plugins.loop.torch_modes import flush_denormals
from spen_plugins.model import Model
from spen_plugins.scores.calibration import Decisions
from spen_plugins.spaces import Proposal
from spen_plugins.task import Metric, Task
from spen_plugins.task_parts import Calibrated, FitsDecoder
from spen_plugins.trainer import Stage, TrainerConfig


def each_batch(task: Task, examples: Sequence[Any], batch_size: int, device: torch.device | str) -> Iterator[Batch]:
    """All `examples` as batches, in order."""
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
        evaluates: true if all of the model is in evaluation mode; setting it takes a while of small batches' time.
    """
    if not evaluates:
        model.eval()
    for rows in evaluation_batches([task.length(example) for example in examples], batch_size):
        chosen = rows.tolist()
        batch = task.collate([examples[i] for i in chosen], chosen).to(device)
        with torch.no_grad():
            with flush_denormals():
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
            own = task.decisions(proposal, batch)
            decisions += [] if own is None else [own]
    return metric


def validate(
    model: Model, task: Task, config: TrainerConfig, stage: Stage, device: torch.device
) -> tuple[dict[str, Any], float]:
    """The task's scores on the validation part after fitting its decoder, and the score that chooses the epoch."""
    examples = task.part("validation")
    metric = evaluate(model, task, examples, config.evaluated_at_once, device)
    if isinstance(task, FitsDecoder):
        task.fit_threshold(metric)
    scores = metric.compute()
    if stage.select is None:
        return scores, float(scores[task.selection])
    parts = list(each_batch(task, examples, config.inferred_at_once, device))
    with torch.no_grad():
        return scores, float(stage.select(model, parts))


def example_ratios(metric: Metric, task: Task, examples: Sequence[Any]) -> dict[str, Tensor]:
    """The metric's `ratios` over `examples` in their own order: `numerator`, `denominator`; empty if it has none."""
    ratios = metric.ratios()
    if ratios is None:
        return {}
    [order] = evaluation_batches([task.length(example) for example in examples], len(examples))
    if any(len(values) != len(order) for values in ratios):
        raise PluginError(
            f"{type(metric).__name__}.ratios: found {[len(values) for values in ratios]} numbers; expected two for "
            f"each of {len(order)} examples, 0 and 0 without gold"
        )
    back = torch.from_numpy(np.argsort(order))
    return {name: values[back] for name, values in zip(("numerator", "denominator"), ratios, strict=True)}
