"""The score that predicting the same for every input would have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.loop.evaluation import each_batch
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task


class Constant:
    """The validation score of a constant predictor, computed when it is first asked for.

    Args:
        task: the loaded task.
        batch_size: examples in a batch.
    """

    def __init__(self, task: Task, batch_size: int) -> None:
        self.task, self.batch_size = task, batch_size

    @cached_property
    def score(self) -> float:
        return constant_scores(self.task, self.batch_size).get("validation", -math.inf)

    def beaten_by(self, score: float) -> bool:
        """True for a better score."""
        return score > self.score


def constant_scores(task: Task, batch_size: int, parts: Sequence[str] = ("validation",)) -> dict[str, float]:
    """The selection score of a constant predictor by part: each value has its frequency in the training part.

    It is decoded as any other prediction, with a threshold fitted on the validation part if the task fits one. Empty
    if the task's space has no such predictor.

    Args:
        task: the loaded task, which is unchanged.
        batch_size: examples in a batch.
        parts: "validation", and perhaps others after it.
    """
    frequencies = _frequencies(task, batch_size)
    if frequencies is None:
        return {}
    task, scores = copy(task), {}
    for part in parts:
        metric = task.metric()
        for proposal, batch in _proposals(task, part, frequencies, batch_size):
            metric.update(proposal, batch)
        if part == "validation":
            task.fit_threshold(metric)
        scores[part] = float(metric.compute()[task.selection])
    return scores


def _frequencies(task: Task, batch_size: int) -> Tensor | None:
    """Share of each value in the training part's gold."""
    total, count = torch.zeros(()), torch.zeros(())
    for batch in each_batch(task, task.part("train"), batch_size, "cpu"):
        if batch.gold is None:
            continue
        found = task.space.tally(batch.gold[batch.labelled])
        if found is None:
            return None
        total, count = total + found[0], count + found[1]
    return total / count if count > 0 else None


def _proposals(task: Task, part: str, frequencies: Tensor, batch_size: int) -> Iterator[tuple[Proposal, Batch]]:
    """Every batch of a part with the same distribution for all of its examples."""
    examples: Sequence[Any] = task.part(part)
    for batch in each_batch(task, examples, batch_size, "cpu"):
        if batch.gold is not None:
            logits = task.space.logits(frequencies.expand_as(batch.gold), batch.x.mask)
            yield task.space.independent(logits, batch.x.mask), batch
