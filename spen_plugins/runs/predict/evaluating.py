"""Evaluation of a run against gold: scores, trajectories, energies, and calibration of probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from spen_plugins.energy_loss import Terms
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.loop.evaluation import average_likelihoods, evaluate
from spen_plugins.model import Model
from spen_plugins.runs.folder import sources
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.predict.own_data import load_own_data
from spen_plugins.scores import calibration
from spen_plugins.task import Metric, Task
from spen_plugins.task_parts import Calibrated, FitsDecoder

if TYPE_CHECKING:
    from spen_plugins.runs.predict.predictor import Predictor


def evaluate_file(predictor: Predictor, path: str | Path | None = None, part: str | None = None) -> dict[str, Any]:
    """Scores against the gold in a file, or in a part of the run's own data, with their protocol.

    Raises:
        ConfigError, RunError: the run's data are missing, have no such part, or have changed since training.
        DataError: there is no gold.
    """
    task = predictor.task
    examples, source = _read_examples(predictor, path, part)
    gold_examples = _keep_labelled(
        predictor, examples, source, "gold outputs to score against (spen predict needs none)"
    )
    likelihoods: list[Terms] = []
    metric = evaluate(
        predictor.model, task, gold_examples, predictor.batch_size, predictor.device, likelihoods=likelihoods
    )
    scores = {**metric.compute(), **metric.details()}
    if nll := average_likelihoods(likelihoods):
        scores["nll"] = nll
    split = f"all {len(examples)} examples of {source}"
    if len(gold_examples) < len(examples):
        split = f"the {len(gold_examples)} of {len(examples)} examples of {source} that have gold outputs"
    if path is not None and sources.warn_if_seen(predictor, path):
        split += ", which the run trained or validated on"
    task_notes = protocol(predictor.folder, predictor.model, task, predictor.refined.get("refined"))
    notes = {**task_notes, "split": split, **predictor.refined}
    notes |= {} if predictor.precision == "no" else {"precision": predictor.precision}
    return {"scores": scores, "protocol": notes}


def _read_examples(predictor: Predictor, path: str | Path | None, part: str | None) -> tuple[Sequence[Any], str]:
    """The examples of a file, or of a part of the run's own data, and their name in messages."""
    if part is None:
        return predictor.task.read(str(path)), str(path)
    run = predictor.folder
    examples = load_own_data(predictor.experiment, run, "Give a file with gold instead").part(part)
    if not examples:
        raise ConfigError(f"{run.path} has no {part} part; give a file with gold")
    return examples, f"the run's {part} part"


def protocol(run: RunFolder, model: Model, task: Task, refined: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The task's protocol, with the `unit` of scores that are not fractions, the runs of a mean, and the settings of a
    net that decides by the energy: `refined`, or else those of the run's config."""
    notes = task.protocol()
    if mean := run.environment().get("mean"):
        runs, count = ", ".join(mean["runs"]), len(mean["candidates"])
        suffix = (
            f", chosen among {count} on validation by greedy forward selection" if count > len(mean["runs"]) else ""
        )
        notes["mean_of"] = f"{runs}{suffix}"
    if unit := task.metric().unit:
        notes["unit"] = unit
    chooses, net = model.inference_net.chooses, refined or run.config()["inference_net"]
    if chooses and isinstance(task, FitsDecoder):
        is_weightless = net.get("weight") == 0
        notes["threshold"] = (
            f"none: the energy {'has weight 0, and the net alone decides' if is_weightless else 'decides'}"
        )
    if chooses or run.environment().get("refined"):
        notes["refined"] = {name: value for name, value in net.items() if name != "net" and value is not None}
    return notes


def trajectory_file(
    predictor: Predictor, path: str | Path | None = None, part: str | None = None
) -> Iterator[dict[str, Any]]:
    """Mean energy, scores and selection score after each step of the run's iterative inference, the start first.

    Raises:
        ConfigError: the run predicts in one pass (or has no energy), and the predictor has no `refine`; or as in
            `evaluate_file`.
        DataError, RunError: as in `evaluate_file`.
    """
    model, task = predictor.model, predictor.task
    if model.energy is None:
        raise ConfigError("there is no trajectory: this run was trained, or saved, without an energy")
    if not model.inference_net.iterative:
        raise ConfigError("there is no trajectory: the run predicts in one pass; ask for --refine gbi")
    gold_examples = _keep_labelled(predictor, *_read_examples(predictor, path, part), "gold outputs to score against")
    metrics: list[Metric] = []
    energies: list[float] = []
    model.inference_net.keep_iterates = True
    try:
        for proposal, batch, _ in predictor.proposals(gold_examples):
            with torch.no_grad():
                bound = model.energy.at(batch.x)
                for step, y in enumerate(proposal.iterates):
                    if step == len(metrics):
                        metrics.append(task.metric())
                        energies.append(0.0)
                    step_proposal = task.space.independent(task.space.logits(y, batch.x.mask), batch.x.mask)
                    metrics[step].update(step_proposal, batch)
                    energies[step] += float(bound(y).sum())
    finally:
        model.inference_net.keep_iterates = False
    for step, (metric, energy) in enumerate(zip(metrics, energies, strict=True)):
        scores = metric.compute()
        score = float(scores[task.selection])
        yield {"step": step, "energy": energy / len(gold_examples), "score": score, "scores": scores}


def score_file(predictor: Predictor, path: str | Path) -> Iterator[dict[str, float]]:
    """Energies of the gold outputs in a file and of the run's predictions; low is good.

    Raises:
        ConfigError: the run has no energy.
    """
    energy, task = predictor.energy, predictor.task
    examples = task.read(str(path))
    records: dict[int, dict[str, float]] = {}
    for proposal, batch, rows in predictor.proposals(examples):
        with torch.no_grad():
            bound = energy.at(batch.x)
            predicted = bound(task.decode(proposal, batch.x))[:, 0].tolist()
            gold = [None] * len(rows) if batch.gold is None else bound(batch.gold)[:, 0].tolist()
        has_gold = batch.labelled.tolist()
        for row, predicted_energy, gold_energy, is_labelled in zip(rows, predicted, gold, has_gold, strict=True):
            records[row] = (
                {"energy": gold_energy, "predicted_energy": predicted_energy}
                if is_labelled
                else {"predicted_energy": predicted_energy}
            )
    yield from (records[row] for row in range(len(examples)))


def calibrate(predictor: Predictor, path: str | Path | None = None) -> dict[str, Any]:
    """Fit the temperature of the reported probabilities, and write `calibration.json` into the run's folder.

    Args:
        predictor: the run's predictor.
        path: a file with gold, from the domain of later predictions; None: the run's own validation data, at the
            paths of its config.

    Returns:
        `temperature`, `decisions` (their kind), `file` if there is one, and `validation` (whatever the data): the
        expected calibration error with the temperature (`ece`) and without (`ece_uncalibrated`), the number of
        `decisions`, and `bins`: each bin's number of decisions, mean probability and share of right decisions with the
        temperature.

    Raises:
        ConfigError: the run's task has no decisions to calibrate, the predictor has `refine`, or the file is or holds
            the run's test part.
        DataError: the file has no gold.
        RunError: the run's data have changed since training.
    """
    if predictor.refined:
        raise ConfigError("a run loaded with refine can't be calibrated; load it without")
    task = predictor.task
    if path is None:
        advice = "Give a file with gold instead"
        examples = load_own_data(predictor.experiment, predictor.folder, advice).part("validation")
    else:
        sources.check_not_test(predictor, path)
        examples = task.read(str(path))
    gold_examples = _keep_labelled(predictor, examples, path, "gold outputs to calibrate probabilities against")
    decisions: list[calibration.Decisions] = []
    evaluate(predictor.model, task, gold_examples, predictor.batch_size, predictor.device, decisions)
    fit = calibration.calibrate({"validation": decisions})
    if fit is None or not isinstance(task, Calibrated):
        kind = predictor.experiment.task.type
        raise ConfigError(f"task {kind!r} reports no probabilities; there is nothing to calibrate")
    fit = fit if path is None else {"file": str(path), **fit}
    predictor.folder.write("calibration.json", fit)
    predictor.records["calibration.json"] = fit
    task.temperature = fit["temperature"]
    if bound := calibration.describe_bound(fit):
        warnings.warn(bound, stacklevel=3)
    return fit


def _keep_labelled(predictor: Predictor, examples: Sequence[Any], path: str | Path | None, expected: str) -> list[Any]:
    """The examples with gold."""
    gold_examples: list[Any] = []
    for start in range(0, len(examples), predictor.batch_size):
        chunk = examples[start : start + predictor.batch_size]
        batch = predictor.task.collate(chunk)
        if batch.gold is not None:
            gold_examples += [
                example for example, has_gold in zip(chunk, batch.labelled.tolist(), strict=True) if has_gold
            ]
    if not gold_examples:
        raise DataError(path, None, "no gold outputs", expected)
    return gold_examples
