"""Predictions of a run for a part of its data, next to gold; needs the run's weights and its data files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch, X
from spen_plugins.figures.layout import shortened
from spen_plugins.files import to_json
from spen_plugins.loop.evaluation import proposals
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.predict.own_data import load_task
from spen_plugins.runs.predict.predictor import Predictor
from spen_plugins.spaces import LabelSet, OutputSpace, Proposal, TagSequence
from spen_plugins.task import ArcInputs, Shown, Task

LONG = 500
"""Characters of an input or a prediction before it is shortened."""


@dataclass
class Output:
    """One example: gold and prediction as names, labels or one tag per word."""

    row: int
    display: Shown
    gold: Sequence[str]
    predicted: Sequence[str]
    score: float
    wrong: float
    """Number of wrong decisions, by the space's cost."""
    gold_energy: float | None
    energy: float | None


@dataclass
class Outputs:
    """The examples of a part with gold, in the file's order."""

    space: OutputSpace | None
    """None if gold and predictions are neither labels nor tags of words."""
    score: str
    """The name of the score, the task's selection score."""
    examples: list[Output] = field(default_factory=list)
    unit: str = ""
    """The score's unit; empty for a fraction."""

    def worst(self, count: int) -> list[Output]:
        """The examples with the lowest scores, ties by the most wrong decisions."""
        return sorted(self.examples, key=lambda output: (output.score, -output.wrong, output.row))[:count]


def read_outputs(run: RunFolder, part: str, device: str = "cpu") -> Outputs:
    """Predictions of a run for a part."""
    registry = Registry()
    predictor = Predictor(run, device, registry)
    # Reload the data for each run: examples cache the output of a run's own indexers.
    examples = load_task(run, registry).part(part)
    task = predictor.task
    space = None if isinstance(task.inputs, ArcInputs) else task.space
    outputs = Outputs(space, task.selection, unit=task.metric().unit)
    for proposal, batch, rows in proposals(predictor.model, task, examples, predictor.batch_size, device):
        if batch.gold is not None:
            outputs.examples += _read_batch(predictor, proposal, batch, [(row, examples[row]) for row in rows])
    outputs.examples.sort(key=lambda output: output.row)
    return outputs


def _read_batch(
    predictor: Predictor, proposal: Proposal, batch: Batch, rows: Sequence[tuple[int, Any]]
) -> list[Output]:
    """The examples of one batch with gold."""
    task, space, mask = predictor.task, predictor.task.space, batch.x.mask
    assert batch.gold is not None
    decoded = task.decode(proposal, batch.x)
    has_arcs = isinstance(task.inputs, ArcInputs)
    predicted = None if has_arcs else _write_names(space, decoded, mask)
    if predicted is None:
        answers = task.predictions(proposal, batch, [example for _, example in rows])
        predicted = [_write_arcs(answer) if has_arcs else [shortened(to_json(answer), LONG)] for answer in answers]
    gold = _write_names(space, batch.gold, mask) or [[]] * len(rows)
    scores = _score_examples(task, proposal, batch)
    costs = space.cost(decoded, batch.gold, mask)[:, 0].tolist()
    energies, gold_energies = (_compute_energies(predictor, batch.x, y) for y in (decoded, batch.gold))
    outputs = []
    for i in batch.labelled.nonzero().squeeze(1).tolist():
        row, example = rows[i]
        display = task.show(example)
        names = gold[i] if display.gold is None else display.gold
        outputs.append(Output(row, display, names, predicted[i], scores[i], costs[i], gold_energies[i], energies[i]))
    return outputs


def _score_examples(task: Task, proposal: Proposal, batch: Batch) -> list[float]:
    """The selection score of each example alone; the space's score if the metric is no ratio of sums.

    An example with nothing to predict and no prediction scores 1.
    """
    metric = task.metric()
    metric.update(proposal, batch)
    ratios = metric.ratios()
    if ratios is None:
        return task.space.score(task.decode(proposal, batch.x), batch.gold, batch.x.mask)[:, 0].tolist()
    numerator, denominator = ratios
    return torch.where(denominator > 0, numerator / denominator, 1.0).tolist()


def _compute_energies(predictor: Predictor, x: X, y: Tensor) -> list[float | None]:
    """E(x, y) of each example; None without an energy."""
    energy = predictor.model.energy
    if energy is None:
        return [None] * len(y)
    with torch.no_grad():
        return energy.at(x)(y)[:, 0].tolist()


def _write_arcs(answer: Mapping[str, Any]) -> list[str]:
    """A prediction of arcs in the form in which gold is shown."""
    return [
        f"{predicate['word']} {argument['role']}: {argument['text']}"
        for predicate in answer["predicates"]
        for argument in predicate["arguments"]
    ]


def _write_names(space: OutputSpace, y: Tensor, mask: Tensor | None) -> list[list[str]] | None:
    """Discrete y `(batch, 1, *variables)` -> labels or tags of each example; None for spaces without names."""
    if isinstance(space, LabelSet):
        rows = (y[:, 0] > 0.5).cpu().numpy()
        names = np.array(space.labels, dtype=object)
        return [names[row].tolist() for row in rows]
    if isinstance(space, TagSequence):
        lengths = [y.shape[2]] * len(y) if mask is None else mask.sum(1).tolist()
        tags = y[:, 0].argmax(-1).tolist()
        return [[space.tags[i] for i in row[:length]] for row, length in zip(tags, lengths, strict=True)]
    return None
