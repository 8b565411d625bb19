"""A run's cost-augmented net F compared with its test-time net A (Tu, Pang & Gimpel 2020, Table 3).

A single net fine-tuned after joint training is A; before fine-tuning it is F, whose weights are not kept. For such a
run there are the best validation scores of both stages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spen_plugins import (
    Batch,
    ConfigError,
    CostNet,
    DataError,
    LabelSet,
    OutputSpace,
    Predictor,
    Registry,
    RunFolder,
    TagSequence,
    Task,
)
from spen_plugins.figures import load_task, markdown_cell


@dataclass(frozen=True)
class NetComparison:
    """A and F on the same examples.

    Attributes:
        what: name of the score and of the examples.
        test_time, cost_augmented: the scores of A and F.
        differences: (output of A, which is right; output of F) -> count; None if outputs were not compared.
    """

    what: str
    test_time: float
    cost_augmented: float
    differences: Counter[tuple[str, str]] | None
    unit: str = ""
    """Unit of the scores; empty for fractions."""


def compare_nets(run: RunFolder, file: str | None = None) -> NetComparison:
    """A and F of a run.

    Raises:
        ConfigError: the run has no F, or only that of an earlier stage and a file is given.
        DataError: the examples can't be read, or have no gold.
    """
    predictor = Predictor(run)
    nets = [] if predictor.model.energy_loss is None else predictor.model.energy_loss.modules()
    net = next((module for module in nets if isinstance(module, CostNet)), None)
    if net is None:
        return compare_stages(run, predictor.task, file)
    if file is None:
        examples = load_task(run, Registry()).part("validation")
        return compare_on(predictor, net, examples, "the validation part")
    return compare_on(predictor, net, predictor.task.read(file), file)


def compare_on(predictor: Predictor, net: CostNet, examples: Sequence[Any], where: str) -> NetComparison:
    """A and F on the examples with gold, which F sees.

    Raises:
        DataError: no example has gold.
    """
    task = predictor.task
    ours, theirs, counts = task.metric(), task.metric(), 0
    labelled = False
    for proposal, batch, _ in predictor.proposals(examples):
        if batch.gold is None:
            continue
        labelled = True
        with torch.no_grad():
            augmented = net(batch, proposal)
        ours.update(proposal, batch)
        theirs.update(augmented, batch)
        counts = counts + count_differences(
            task.space, task.decode(proposal, batch.x), task.decode(augmented, batch.x), batch
        )
    if not labelled:
        raise DataError(where, None, "no gold outputs", "gold outputs: F sees them, and scores are against them")
    scores = [float(metric.compute()[task.selection]) for metric in (ours, theirs)]
    return NetComparison(f"{task.selection} on {where}", *scores, name_counts(task.space, counts), ours.unit)


def count_differences(space: OutputSpace, a: Tensor, f: Tensor, batch: Batch) -> Tensor:
    """Counts of A right and F different: for tags `(tag of A, tag of F)`, for label sets `(label, 0 or 1 of A)`.

    Args:
        space: tag sequences or label sets.
        a, f: discrete outputs of A and F, as `batch.gold`.
    """
    if not isinstance(space, (TagSequence, LabelSet)):
        raise ConfigError(f"outputs of A and F are compared of tags and of label sets, not of {type(space).__name__}")
    known = batch.gold
    a, f, gold = (to_integers(space, y) for y in (a, f, known))
    is_counted = batch.labelled[:, None] & (a == gold) & (f != a)
    if isinstance(space, LabelSet):
        first, second, shape = torch.arange(a.shape[1], device=a.device).expand_as(a), a, (len(space.labels), 2)
    else:
        first, second, shape = a, f, (len(space.tags), len(space.tags))
        is_counted &= known[:, 0].any(-1)  # neither padding nor a tag unseen in training
    codes = shape[1] * first[is_counted] + second[is_counted]
    return codes.bincount(minlength=shape[0] * shape[1]).view(shape).cpu()


def to_integers(space: OutputSpace, y: Tensor) -> Tensor:
    """Discrete y `(batch, 1, *variables)` as integers: `(batch, token)` tags, or `(batch, label)` 0 and 1."""
    return y[:, 0].argmax(-1) if isinstance(space, TagSequence) else (y[:, 0] > 0.5).long()


def name_counts(space: OutputSpace, counts: Tensor) -> Counter[tuple[str, str]]:
    """The counts of `count_differences` by the names of A's and F's outputs."""
    names: Counter[tuple[str, str]] = Counter()
    for i, j in counts.nonzero().tolist():
        if isinstance(space, TagSequence):
            pair = space.tags[i], space.tags[j]
        else:
            pair = (space.labels[i], f"not {space.labels[i]}")[:: 1 if j else -1]
        names[pair] = int(counts[i, j])
    return names


def compare_stages(run: RunFolder, task: Task, file: str | None) -> NetComparison:
    """The best validation scores of a single net: A after fine-tuning, F before.

    Raises:
        ConfigError: the run was not fine-tuned, or a file is given.
    """
    best: dict[str, float] = {}
    for record in run.history():
        if record["score"] is not None:  # it was infinite
            best[record["stage"]] = max(record["score"], best.get(record["stage"], record["score"]))
    if not {"joint", "finetune"} <= best.keys():
        raise ConfigError(
            f"{run.path} has no cost-augmented net: its energy loss holds none, and no net was fine-tuned. Train with "
            "energy_loss.type='infnet.compound', or infnet.margin and trainer.finetune"
        )
    if file is not None:
        raise ConfigError(f"{run.path}: its weights before fine-tuning are not kept; leave {file} out")
    what = f"{task.selection} on the validation part, F before fine-tuning"
    return NetComparison(what, best["finetune"], best["joint"], None, task.metric().unit)


def write_markdown(comparison: NetComparison, top: int = 10) -> str:
    """Both parts of the table, scores in per cent or in their unit."""
    scale = 1 if comparison.unit else 100
    a, f = (scale * score for score in (comparison.test_time, comparison.cost_augmented))
    lines = [
        "| score | A | F | A − F |",
        "|---|---:|---:|---:|",
        f"| {markdown_cell(comparison.what)} | {a:.2f} | {f:.2f} | {a - f:.2f} |",
    ]
    if comparison.differences is not None:
        most = sorted(comparison.differences.items(), key=lambda item: (-item[1], item[0]))[:top]
        rows = [f"| {markdown_cell(ours)} | {markdown_cell(theirs)} | {count} |" for (ours, theirs), count in most]
        summary = f"A is right and F differs {comparison.differences.total()} times; most often:"
        lines += ["", summary, "", "| A | F | count |", "|---|---|---:|", *rows]
    return "\n".join(lines) + "\n"
