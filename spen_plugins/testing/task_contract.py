"""Check of tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task
from spen_plugins.task_parts import Augments, Calibrated, FitsDecoder, Rewards, SharesSentences, TakesExamples
from spen_plugins.testing.comparing import assert_same, assert_shape


def check_task(task: Task, unlabelled: Sequence[Any] = ()) -> None:
    """Check a loaded task: it collates, scores and shows its examples, and its facts restore the same task.

    Args:
        unlabelled: examples without gold, such as those that `parse` makes for prediction.
    """
    assert isinstance(task, Task), f"found {task!r}; expected an instance, such as Class(Class.Config())"
    name = type(task).__name__
    examples = list(task.part("train"))[:3]
    assert examples, f"{name} has no training examples"
    batch = task.collate(examples, [5, 3, 8][: len(examples)])
    assert batch.rows.tolist() == [5, 3, 8][: len(examples)], f"{name}.collate doesn't keep the rows it is given"
    assert batch.gold is not None and batch.labelled.all(), f"{name}'s training examples have no gold"
    mask = batch.x.mask
    assert mask is None or mask.dtype == torch.bool, f"{name}'s mask: found {mask.dtype}; expected torch.bool"
    variables = batch.gold.shape[2:]
    assert len(variables) == len(task.space.shape), (
        f"{name}'s gold has {len(variables)} variable axes; expected {len(task.space.shape)}, as in its output space"
    )
    assert all(expected in (None, actual) for expected, actual in zip(task.space.shape, variables, strict=True)), (
        f"{name}'s gold has variable axes of sizes {tuple(variables)}; expected {task.space.shape}, as in its output "
        "space"
    )
    assert_same(task.space.round(batch.gold, batch.x.mask), batch.gold, f"{name}'s gold is not a discrete output")

    logits = (batch.gold * 2 - 1) * 10
    proposal, metric = task.space.independent(logits, batch.x.mask), task.metric()
    decoded = task.decode(proposal, batch.x)
    assert_shape(decoded, tuple(batch.gold.shape), f"{name}.decode")
    assert_same(task.space.round(decoded, batch.x.mask), decoded, f"{name}.decode gives an output that is not discrete")
    chosen_proposal = replace(proposal, chosen=1 - decoded)
    assert_same(
        task.decode(chosen_proposal, batch.x), 1 - decoded, f"{name}.decode ignores the output that the net has chosen"
    )
    metric.update(proposal, batch)
    scores = metric.compute()
    assert task.selection in scores, f"{name}.selection is {task.selection!r}; the metric has {', '.join(scores)}"
    predictions = task.predictions(proposal, batch, examples)
    assert len(predictions) == len(examples), (
        f"{name}.predictions gives {len(predictions)} for {len(examples)} examples"
    )
    json.dumps([predictions, task.protocol(), scores, metric.details()])
    task.show(examples[0])
    _check_metric(task, examples, list(unlabelled))

    _check_parts(task, proposal, batch, examples)

    facts = json.loads(json.dumps(task.facts()))
    restored = object.__new__(type(task))
    restored.__dict__.update({key: value for key, value in task.__dict__.items() if key not in ("space", "inputs")})
    restored.restore(facts)
    assert restored.space.shape == task.space.shape, f"{name}.restore returns another output space"
    assert type(restored.inputs) is type(task.inputs), f"{name}.restore returns other inputs"
    assert json.loads(json.dumps(restored.facts())) == facts, f"{name}: the facts of a restored task differ"


def _check_metric(task: Task, examples: Sequence[Any], unlabelled: Sequence[Any]) -> None:
    """Check that the selection score counts each batch, in any order, and that rows without gold may be beside others
    and don't change it."""
    name = type(task.metric()).__name__

    def compute(*updates: tuple[Batch, Tensor]) -> list[float]:
        metric = task.metric()
        for batch, logits in updates:
            metric.update(task.space.independent(logits, batch.x.mask), batch)
        return [metric.compute()[task.selection] for _ in range(2)]

    if len(examples) > 1:
        first, others = task.collate(examples[:1], [0]), task.collate(examples[1:], list(range(1, len(examples))))
        updates = [(first, 12 * (first.gold * 2 - 1)), (others, 10 * (1 - others.gold * 2))]
        scores = [*compute(*updates), *compute(*updates[::-1])]
        assert np.allclose(scores, scores[0], equal_nan=True), (
            f"{name}: {task.selection} depends on the order of batches or changes when computed again; found {scores}"
        )
    if unlabelled:
        label = f"{type(task).__name__}.collate"
        assert task.collate(unlabelled).gold is None, f"{label}: found gold, but no example has any; expected None"
        batch = task.collate([examples[0], *unlabelled])
        expected = [True] + [False] * len(unlabelled)
        assert batch.labelled.tolist() == expected, f"{label}: found labelled={batch.labelled}; expected {expected}"
        assert not batch.gold[1:].any(), f"{label}: gold is not 0 in rows without gold"
        logits = 10 * (batch.gold * 2 - 1)
        other_logits = torch.cat([logits[:1], -logits[1:]])
        scores = [*compute((batch, logits)), *compute((batch, other_logits))]
        assert np.allclose(scores, scores[0], equal_nan=True), (
            f"{name}: {task.selection} depends on predictions for rows without gold; found {scores}"
        )


def _check_parts(task: Task, proposal: Proposal, batch: Batch, examples: Sequence[Any]) -> None:
    """Check the optional parts that a task has, on some training examples."""
    name, count = type(task).__name__, len(examples)
    if isinstance(task, TakesExamples):
        assert task.in_memory in (True, False), f"{name}.Config has no field in_memory: bool = False"
    if isinstance(task, Augments):
        task.collate([task.augment(example, np.random.default_rng(0)) for example in examples])
    if isinstance(task, Calibrated) and (decisions := task.decisions(proposal, batch)) is not None:
        sizes = len(decisions.right), decisions.confidences.at(1.0).size
        assert sizes[0] == sizes[1], (
            f"{name}.decisions: found {sizes[0]} numbers in `right` and {sizes[1]} confidences; expected equally many"
        )
    if isinstance(task, FitsDecoder):
        assert_shape(task.k_best(proposal, 1), tuple(batch.gold.shape), f"{name}.k_best")
        unknown_keys = task.decoder_settings().keys() - type(task.config).model_fields.keys()
        assert not unknown_keys, f"{name}.decoder_settings has {', '.join(unknown_keys)}, which its Config lacks"
    if isinstance(task, Rewards) and (reward := task.reward(batch.x, batch.gold)) is not None:
        assert_shape(reward, (count, 1), f"{name}.reward")
        assert ((reward >= 0) & (reward <= 1)).all(), f"{name}.reward is outside [0, 1]"
    if isinstance(task, SharesSentences) and (groups := task.groups(examples)) is not None:
        assert len(groups) == count, f"{name}.groups has {len(groups)} numbers for {count} examples"
