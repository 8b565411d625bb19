"""Scores of always predicting the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property

import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.loop.evaluation import each_batch
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task
from spen_plugins.task_parts import FitsDecoder

COUNTED = 100_000
"""About the most training examples in which values are counted; of more, some batches, evenly apart."""


class Constant:
    """A constant predictor, which gives every input the same output: each value has its frequency in the training part.

    Computed when it is first asked for. It is decoded as any other prediction, with a threshold fitted on the
    validation part if the task fits one.
    """

    def __init__(self, task: Task, batch_size: int) -> None:
        self.task, self.batch_size = task, batch_size

    def scores(self, parts: Sequence[str]) -> dict[str, float]:
        """Its selection score by part, "validation" first; empty if the task's space has no such predictor."""
        if self._frequencies is None:
            return {}
        task, scores = copy(self.task), {}
        for part in parts:
            metric = task.metric()
            for proposal, batch in self._proposals(part, self._frequencies):
                metric.update(proposal, batch)
            if part == "validation" and isinstance(task, FitsDecoder):
                task.fit_threshold(metric)
            scores[part] = float(metric.compute()[task.selection])
        return scores

    @cached_property
    def validation(self) -> float:
        """Its score on the validation part; lower than any other if there is none."""
        return self.scores(["validation"]).get("validation", -math.inf)

    @cached_property
    def _frequencies(self) -> Tensor | None:
        """Share of each value in the training part's gold; of a large part, in about `COUNTED` examples of it."""
        total, count = torch.zeros(()), torch.zeros(())
        examples = self.task.part("train")
        every = max(1, -(-len(examples) // COUNTED))
        for start in range(0, len(examples), every * self.batch_size):  # rows side by side are read at once from disk
            batch = self.task.collate(examples[start : start + self.batch_size])
            if batch.gold is None:
                continue
            tally = self.task.space.tally(batch.gold[batch.labelled])
            if tally is None:
                return None
            total, count = total + tally[0], count + tally[1]
        return total / count if count > 0 else None

    def _proposals(self, part: str, frequencies: Tensor) -> Iterator[tuple[Proposal, Batch]]:
        """Every batch of a part with the same distribution for all of its examples."""
        space = self.task.space
        for batch in each_batch(self.task, self.task.part(part), self.batch_size, "cpu"):
            if batch.gold is not None:
                logits = space.logits(frequencies.expand_as(batch.gold), batch.x.mask)
                yield space.independent(logits, batch.x.mask), batch
