"""The end of a run: the trained model's scores, and their files and messages."""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from spen_plugins.config.experiment import Built
from spen_plugins.console import Console
from spen_plugins.loop.evaluation import Constant, average_likelihoods, evaluate, example_ratios
from spen_plugins.loop.progress import Tracker
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.folder.summary import print_scores
from spen_plugins.runs.predict.evaluating import protocol
from spen_plugins.scores.calibration import Decisions, calibrate
from spen_plugins.task import Task
from spen_plugins.task_parts import FitsDecoder, PartlyLabelled


def finish(
    components: Built,
    folder: RunFolder,
    accelerator: Accelerator,
    console: Console,
    test: bool,
    constant: Constant,
    trained: bool = True,
) -> None:
    """Score the model, write and print its scores and those of a constant predictor, and warn if it is no better."""
    task = components.task
    with Tracker(console):
        scores, ratios, decisions = _score(components, accelerator, test)
    if accelerator.is_main_process:
        folder.write("vocabulary.json", task.facts())
        last = next(reversed(scores))
        if ratios[last]:
            folder.save_ratios(ratios[last], last, ratios["validation"] if last != "validation" else None)
        if calibration := calibrate(decisions):
            folder.write("calibration.json", calibration)
        constant_scores = constant.scores(list(scores))
        notes = {**protocol(folder, components.model, task), **components.trainer.protocol()}
        if constant_scores:
            notes["constant_predictor"] = {"score": task.selection, **constant_scores}
        folder.write("metrics.json", {**scores, "protocol": notes})
        print_scores(console, folder)
        if trained and test and constant_scores and not console.quiet:
            batch_size = components.trainer.config.evaluated_at_once
            _warn_if_nothing_learned(
                task, batch_size, scores["validation"][task.selection], constant_scores["validation"]
            )


def _warn_if_nothing_learned(task: Task, batch_size: int, score: float, constant: float) -> None:
    """Print a warning unless the selection score on the validation part exceeds that of a constant predictor."""
    if score > constant or score == constant == 1:
        return
    examples, kind = task.part("train"), "training examples"
    count = len(examples)
    if isinstance(task, PartlyLabelled) and task.keys_without_gold:
        starts, kind = range(0, count, batch_size), f"{kind} with gold"
        count = sum(int(task.collate(examples[start : start + batch_size]).labelled.sum()) for start in starts)
    text = (
        f"warning: the net learned nothing useful: {task.selection} on the validation part is {score:.4f}, and "
        f"{constant:.4f} if every input gets the same output. There are {count} {kind}; "
        "more of them help most. More updates (trainer.epoch_updates, trainer.epochs), a smaller trainer.batch_size, "
        "another trainer.net.lr or, for label sets, another task.threshold may help."
    )
    Console(stderr=True).print(text, soft_wrap=True)


def _score(
    components: Built, accelerator: Accelerator, test: bool
) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]], dict[str, list[Decisions]]]:
    """Scores, the ratios of each example, and decisions, each by part.

    Decoding parameters, such as a threshold, are fitted on the validation part before the test part is scored.
    """
    model, task = components.model, components.task
    batch_size = components.trainer.config.evaluated_at_once
    scores: dict[str, Any] = {}
    ratios: dict[str, dict[str, Tensor]] = {}
    decisions: dict[str, list[Decisions]] = {}
    for part in ("validation", "test") if test and len(task.part("test")) else ("validation",):
        examples, decisions[part], rewards, likelihoods = task.part(part), [], [], []
        metric = evaluate(model, task, examples, batch_size, accelerator.device, decisions[part], rewards, likelihoods)
        if part == "validation" and isinstance(task, FitsDecoder):
            old_settings = task.decoder_settings()
            task.fit_threshold(metric)
            if task.decoder_settings() != old_settings:  # decisions and rewards must be those of the new decoder
                decisions[part].clear(), rewards.clear()
                evaluate(model, task, examples, batch_size, accelerator.device, decisions[part], rewards)
        scores[part] = {**metric.compute(), **metric.details()}
        for name, values in zip(("reward", "reward_of_gold"), zip(*rewards, strict=True), strict=False):
            scores[part][name] = float(torch.cat(values).mean())
        if nll := average_likelihoods(likelihoods):
            scores[part]["nll"] = nll
        ratios[part] = example_ratios(metric, task, examples)
    return scores, ratios, decisions
