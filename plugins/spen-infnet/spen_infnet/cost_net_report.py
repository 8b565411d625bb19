"""A run's cost-augmented net F compared with its test-time net A (Tu, Pang & Gimpel 2020, Table 3).

A single net fine-tuned after joint training is A; before fine-tuning it is F, whose weights are not kept. For such a
run, the report compares the best validation scores of both stages.
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
from spen_plugins.sentences import SentenceBatch


@dataclass(frozen=True)
class NetComparison:
    """The scores of A and F on the same examples."""

    title: str
    """Name of the score and of the examples."""
    test_time: float
    cost_augmented: float
    differences: Counter[tuple[str, str]] | None
    """Counts of `count_differences`; None if outputs were not compared."""
    unit: str = ""
    """Unit of the scores; empty for fractions."""


def compare_nets(run: RunFolder, file: str | None = None) -> NetComparison:
    """Compares A and F of a run.

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


def compare_on(predictor: Predictor, net: CostNet, examples: Sequence[Any], source: str) -> NetComparison:
    """Compares A and F on the examples with gold, which F sees; raises `DataError` if none has gold."""
    task = predictor.task
    test_time_metric, augmented_metric, counts = task.metric(), task.metric(), Counter()
    has_gold = False
    for proposal, batch, _ in predictor.proposals(examples):
        if batch.gold is None:
            continue
        has_gold = True
        with torch.no_grad():
            augmented = net(batch, proposal)
        test_time_metric.update(proposal, batch)
        augmented_metric.update(augmented, batch)
        a, f = (task.decode(distribution, batch.x) for distribution in (proposal, augmented))
        counts += count_differences(task.space, a, f, batch)
    if not has_gold:
        raise DataError(source, None, "no gold outputs", "gold outputs, which F reads and scores require")
    scores = [float(metric.compute()[task.selection]) for metric in (test_time_metric, augmented_metric)]
    return NetComparison(f"{task.selection} on {source}", *scores, counts, test_time_metric.unit)


def count_differences(space: OutputSpace, a: Tensor, f: Tensor, batch: Batch) -> Counter[tuple[str, str]]:
    """Counts the pairs of A's right output and F's different one: the tags of a token, or a label and its absence.

    `a` and `f` are discrete outputs, like `batch.gold`, of tag sequences or label sets.
    """
    if not isinstance(space, (TagSequence, LabelSet)):
        raise ConfigError(f"comparing A and F requires label sets or tags as outputs; found {type(space).__name__}")
    is_set = isinstance(space, LabelSet)
    a, f, gold = (y[:, 0] > 0.5 if is_set else y[:, 0].argmax(-1) for y in (a, f, batch.gold))
    is_counted = batch.labelled[:, None] & (a == gold) & (f != a)
    if is_set:
        differences = zip(is_counted.nonzero()[:, 1].tolist(), a[is_counted].tolist(), strict=True)
        return Counter((space.labels[i], f"not {space.labels[i]}")[:: 1 if is_on else -1] for i, is_on in differences)
    is_counted &= find_known(batch)
    differences = zip(a[is_counted].tolist(), f[is_counted].tolist(), strict=True)
    return Counter((space.tags[i], space.tags[j]) for i, j in differences)


def find_known(batch: Batch) -> Tensor:
    """True for tokens, not padding, whose gold tag was seen in training, `(batch, token)`."""
    is_known = batch.gold[:, 0].any(-1)
    if isinstance(batch, SentenceBatch):  # its gold has a known tag in place of an unseen one, which has index -1
        for row, example in zip(is_known, batch.examples, strict=True):
            if example.tags is not None:
                row[: len(example.tags)] &= torch.from_numpy(example.tags >= 0).to(row.device)
    return is_known


def compare_stages(run: RunFolder, task: Task, file: str | None) -> NetComparison:
    """Compares a single net's best validation scores: A after fine-tuning, F before. Raises `ConfigError` if it was not
    fine-tuned, or if a file is given."""
    best: dict[str, float] = {}
    for record in run.history():
        if record["score"] is not None:  # None was an infinite score
            best[record["stage"]] = max(record["score"], best.get(record["stage"], record["score"]))
    if not {"joint", "finetune"} <= best.keys():
        raise ConfigError(
            f"{run.path} has no cost-augmented net: its energy loss has none, and no net was fine-tuned. Train with "
            "energy_loss.type='infnet.compound', or with infnet.margin and trainer.finetune"
        )
    if file is not None:
        raise ConfigError(
            f"{run.path} has no weights from before fine-tuning, so it cannot score {file}; omit the file"
        )
    title = f"{task.selection} on the validation part, F before fine-tuning"
    return NetComparison(title, best["finetune"], best["joint"], None, task.metric().unit)


def write_markdown(comparison: NetComparison, top: int = 10) -> str:
    """The tables of scores, in per cent or in their unit, and of the most frequent differences."""
    scale = 1 if comparison.unit else 100
    a, f = (scale * score for score in (comparison.test_time, comparison.cost_augmented))
    lines = [
        "| score | A | F | A − F |",
        "|---|---:|---:|---:|",
        f"| {markdown_cell(comparison.title)} | {a:.2f} | {f:.2f} | {a - f:.2f} |",
    ]
    if comparison.differences is not None:
        most_frequent = sorted(comparison.differences.items(), key=lambda item: (-item[1], item[0]))[:top]
        rows = [
            f"| {markdown_cell(predicted)} | {markdown_cell(augmented)} | {count} |"
            for (predicted, augmented), count in most_frequent
        ]
        summary = f"A is right and F differs {comparison.differences.total()} times; most often:"
        lines += ["", summary, "", "| A | F | count |", "|---|---|---:|", *rows]
    return "\n".join(lines) + "\n"
