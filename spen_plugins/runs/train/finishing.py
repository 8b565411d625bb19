"""The end of a run: the trained model's scores, and what is written and said with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelerate import Accelerator
from torch import Tensor

from spen_plugins.config.experiment import Built
from spen_plugins.console import Console
from spen_plugins.loop import evaluate
from spen_plugins.loop.constant import Constant
from spen_plugins.loop.evaluation import example_ratios
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.folder.summary import print_scores
from spen_plugins.runs.predict.evaluating import protocol
from spen_plugins.scores.calibration import Decisions, calibrate
from spen_plugins.task import Task
from spen_plugins.task_parts import FitsDecoder


def finish(
    built: Built,
    folder: RunFolder,
    accelerator: Accelerator,
    console: Console,
    test: bool,
    predictor: Constant,
    trained: bool = True,
) -> None:
    """Score the model, and write and print what a finished run has, beside a constant predictor's score; also say so if
    what was trained is no better than that."""
    task = built.task
    scores, ratios, decisions = _score(built, accelerator, test)
    if accelerator.is_main_process:
        folder.write("vocabulary.json", task.facts())
        last = next(reversed(scores))
        if ratios[last]:
            folder.save_ratios(ratios[last], last, ratios["validation"] if last != "validation" else None)
        if calibration := calibrate(decisions):
            folder.write("calibration.json", calibration)
        found = predictor.scores(list(scores))
        said = {**protocol(folder, built.model, task), **built.trainer.protocol()}
        if found:
            said["constant_predictor"] = {"score": task.selection, **found}
        folder.write("metrics.json", {**scores, "protocol": said})
        print_scores(console, folder)
        if trained and test and found and not console.quiet and _learned_nothing(task, scores["validation"], found):
            Console(stderr=True).print(_nothing_learned(task, scores["validation"], found), soft_wrap=True)


def _learned_nothing(task: Task, validation: Mapping[str, Any], constant: Mapping[str, float]) -> bool:
    reached, without = validation[task.selection], constant["validation"]
    return reached < without or reached == without < 1


def _nothing_learned(task: Task, validation: Mapping[str, Any], constant: Mapping[str, float]) -> str:
    return (
        f"warning: nothing was learned that helps {task.selection} on the validation part: it is "
        f"{validation[task.selection]:.4f}, and {constant['validation']:.4f} if every input gets the same output. "
        f"There are {len(task.part('train'))} training examples; more of them help most. Where the method has such "
        "settings, more updates (trainer.epoch_updates, trainer.epochs), a smaller trainer.batch_size or another "
        "trainer.net.lr may help, and of label sets another task.threshold."
    )


def _score(
    built: Built, accelerator: Accelerator, test: bool
) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]], dict[str, list[Decisions]]]:
    """Scores, the ratios of each example, and decisions, each by part.

    Decoding parameters, such as a threshold, are fitted on the validation part before the test part is scored.
    """
    model, task = built.model, built.task
    batch_size = built.trainer.config.evaluated_at_once
    scores: dict[str, Any] = {}
    ratios: dict[str, dict[str, Tensor]] = {}
    decisions: dict[str, list[Decisions]] = {}
    for part in ("validation", "test") if test and len(task.part("test")) else ("validation",):
        examples, decisions[part] = task.part(part), []
        metric = evaluate(model, task, examples, batch_size, accelerator.device, decisions[part])
        if part == "validation" and isinstance(task, FitsDecoder):
            task.fit_threshold(metric)
        scores[part] = {**metric.compute(), **metric.details()}
        ratios[part] = example_ratios(metric, task, examples)
    return scores, ratios, decisions
