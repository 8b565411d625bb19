"""Scores of a part under the current weights, and of a constant predictor; batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.data.disk.on_disk import chosen
from spen_plugins.energy_loss import Terms
from spen_plugins.errors import PluginError
from spen_plugins.inference.gbi import Gbi, gbi_score
from spen_plugins.loop.order import evaluation_batches
from spen_plugins.loop.torch_modes import flush_denormals
from spen_plugins.model import Model
from spen_plugins.scores.calibration import Decisions
from spen_plugins.spaces import LabelSet, Proposal, TagSequence
from spen_plugins.task import Metric, Task, read_gold
from spen_plugins.task_parts import Augments, Calibrated, FitsDecoder, Rewards
from spen_plugins.trainer import Stage, TrainerConfig

counted: ContextVar[Callable[[Sequence[np.ndarray]], Iterable[np.ndarray]]] = ContextVar("counted", default=iter)
"""Passes on batches of rows, and shows their progress; `loop.progress` sets it, so that prediction need not import that
module."""


def each_batch(task: Task, examples: Sequence[Any], batch_size: int, device: torch.device | str) -> Iterator[Batch]:
    """All `examples` as batches, in order."""
    for start in range(0, len(examples), batch_size):
        yield task.collate(examples[start : start + batch_size]).to(device)


def collate_rows(
    task: Task, stage: Stage, examples: Sequence[Any], rows: Sequence[int], place: tuple[int, int, int]
) -> Batch:
    """The batch of some rows of a stage's examples, augmented for one pass; without gold if the stage hides it.

    The random numbers of `Augments.augment` depend only on `place` (seed, stage, pass) and the row: neither on the
    batch nor on the number of parts or processes, so that a resumed run sees the same.
    """
    batch_examples = chosen(examples, rows)
    if isinstance(task, Augments):
        batch_examples = [
            task.augment(example, np.random.default_rng((*place, row)))
            for example, row in zip(batch_examples, rows, strict=True)
        ]
    batch = task.collate(batch_examples, rows)
    return batch if stage.gold else replace(batch, gold=None, labelled=torch.zeros_like(batch.labelled))


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
        evaluates: true if the whole model is in evaluation mode already; setting it slows down small batches.
    """
    if not evaluates:
        model.eval()
    for rows in counted.get()(evaluation_batches([task.length(example) for example in examples], batch_size)):
        indices = rows.tolist()
        batch = task.collate([examples[i] for i in indices], indices).to(device)
        with torch.no_grad():
            with flush_denormals():
                proposal = model.propose(batch.x)
            yield proposal, batch, indices


def evaluate(
    model: Model,
    task: Task,
    examples: Sequence[Any],
    batch_size: int,
    device: torch.device | str,
    decisions: list[Decisions] | None = None,
    rewards: list[tuple[Tensor, Tensor]] | None = None,
    likelihoods: list[Terms] | None = None,
) -> Metric:
    """The task's metric over `examples`, ready to `compute`. The batches' decisions, the rewards of decoded outputs and
    of gold by the task's rules, and negative log-likelihoods of gold are appended to lists that are not None."""
    metric = task.metric()
    for proposal, batch, _ in proposals(model, task, examples, batch_size, device):
        metric.update(proposal, batch)
        if decisions is not None and isinstance(task, Calibrated):
            batch_decisions = task.decisions(proposal, batch)
            decisions += [] if batch_decisions is None else [batch_decisions]
        if rewards is not None and isinstance(task, Rewards):
            rewards += _compare_rewards(task, proposal, batch)
        if likelihoods is not None and batch.gold is not None and isinstance(task.space, LabelSet | TagSequence):
            likelihoods.append(_find_likelihoods(model, proposal, batch))
    return metric


def _compare_rewards(task: Rewards, proposal: Proposal, batch: Batch) -> list[tuple[Tensor, Tensor]]:
    """Rewards of the decoded outputs and of gold, `(example,)` each, of the examples with gold; empty without rules."""
    if batch.gold is None:
        return []
    decoded_rewards = task.reward(batch.x, task.decode(proposal, batch.x).to(batch.gold))
    gold_rewards = task.reward(batch.x, batch.gold)
    return (
        []
        if decoded_rewards is None
        else [(decoded_rewards[batch.labelled, 0].cpu(), gold_rewards[batch.labelled, 0].cpu())]
    )


def _find_likelihoods(model: Model, proposal: Proposal, batch: Batch) -> dict[str, Tensor]:
    """Negative log-likelihood of the gold outputs under the net, and under the energy if its loss learns a density, in
    nats, `(labelled example,)` each."""
    values: dict[str, Tensor] = {}
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        if not model.inference_net.iterative and proposal.exact:
            values["net"] = -proposal.log_prob(batch.gold)[:, 0]
        if model.energy is not None and model.energy_loss is not None:
            values |= model.energy_loss.likelihoods(model.energy.at(batch.x), batch, proposal)
    return {name: value[batch.labelled].cpu() for name, value in values.items()}


def average_likelihoods(batches: Sequence[Terms]) -> dict[str, float]:
    """Mean of each value over examples, without outputs of probability 0, and the share of these outputs."""
    averages: dict[str, float] = {}
    for name in batches[0] if batches else ():
        values = torch.cat([batch[name] for batch in batches])
        is_possible = ~values.isposinf() if name == "net" else torch.ones_like(values, dtype=torch.bool)
        if is_possible.any():
            averages[name] = float(values[is_possible].mean())
        if not is_possible.all():
            averages[f"{name}_impossible"] = float((~is_possible).double().mean())
    return averages


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
    batches = list(each_batch(task, examples, config.inferred_at_once, device))
    with torch.no_grad():
        return scores, float(stage.select(model, batches))


def probe(
    model: Model, task: Task, config: TrainerConfig, device: torch.device, epoch: int, scores: dict[str, Any]
) -> dict[str, Any]:
    """A history record's `probe`, in epochs that have one: the scores of the net and of gradient-based inference from
    its output and from random starts.
    """
    if config.probe is None or model.energy is None or epoch % config.probe.every:
        return {}
    batches = list(each_batch(task, task.part("validation"), config.inferred_at_once, device))
    fields = config.probe.model_dump(exclude={"every"})
    descents = {f"{start}_gbi": Gbi.Config(**fields, starts=[start]) for start in ("net", "random")}
    gbi_scores = {name: gbi_score(model, task, batches, descent) for name, descent in descents.items()}
    return {"probe": {"net": float(scores[task.selection]), **gbi_scores}}


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
    positions = torch.from_numpy(np.argsort(order))
    return {name: values[positions] for name, values in zip(("numerator", "denominator"), ratios, strict=True)}


class Constant:
    """A constant predictor, which gives every input the same output: each value has its frequency in the training part.

    Computed at first use. It is decoded like any other prediction, with a threshold fitted on the validation part if
    the task fits one.
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
            for proposal, batch in self._make_proposals(part, self._frequencies):
                metric.update(proposal, batch)
            if part == "validation" and isinstance(task, FitsDecoder):
                task.fit_threshold(metric)
            scores[part] = float(metric.compute()[task.selection])
        return scores

    @cached_property
    def validation(self) -> float:
        """Its score on the validation part; minus infinity if there is none."""
        return self.scores(["validation"]).get("validation", -math.inf)

    @cached_property
    def _frequencies(self) -> Tensor | None:
        """Share of each value in the training part's gold; None if the task's space does not count values."""
        total, count = torch.zeros(()), torch.zeros(())
        for gold in read_gold(self.task, self.batch_size):
            if (tally := self.task.space.tally(gold)) is None:
                return None
            total, count = total + tally[0], count + tally[1]
        return total / count if count > 0 else None

    def _make_proposals(self, part: str, frequencies: Tensor) -> Iterator[tuple[Proposal, Batch]]:
        """Every batch of a part with the same distribution for all of its examples."""
        space = self.task.space
        for batch in each_batch(self.task, self.task.part(part), self.batch_size, "cpu"):
            if batch.gold is not None:
                logits = space.logits(frequencies.expand_as(batch.gold), batch.x.mask)
                yield space.independent(logits, batch.x.mask), batch
