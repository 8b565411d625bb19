"""Scores and calibration of a part of the English pipeline, for `tools/build_english.py`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spen_plugins as sp
from spen_plugins.datasets import locate
from spen_plugins.files import save_json
from spen_plugins.loop import evaluate
from spen_plugins.scores import calibration

HOLDS = 0.1
"""Expected calibration error above which the card says that probabilities don't hold."""


def score_again(folder: Path) -> None:
    """Write the folder's metrics.json and calibration.json anew, from the files in its config."""
    predictor = sp.load(folder)
    task = sp.RunFolder.open(folder).config()["task"]
    metrics: dict[str, Any] = {}
    decisions: dict[str, list[calibration.Decisions]] = {}
    for part in ("validation", "test"):
        decisions[part] = []
        metrics[part] = _scores(predictor, task[part], decisions[part])
    split = {part: task[part] for part in ("train", "validation", "test")}
    save_json({**metrics, "protocol": {**predictor.task.protocol(), "split": split}}, folder / "metrics.json")
    save_json(calibration.calibrate(decisions), folder / "calibration.json")


def by_corpus(folder: Path, files: Mapping[str, Path]) -> dict[str, dict[str, float]]:
    """F1 and expected calibration error of names in each file, by its name."""
    predictor = sp.load(folder)
    found = {}
    for name, path in files.items():
        decisions: list[calibration.Decisions] = []
        f1 = _scores(predictor, path, decisions)["f1"]
        error = calibration.expected_calibration_error(decisions, predictor.task.temperature)
        found[name] = {"f1": f1, "ece": error, "decisions": sum(len(some.right) for some in decisions)}
    return found


def table(found: Mapping[str, Mapping[str, float]]) -> str:
    """Scores by corpus, in Markdown, and the corpora where probabilities don't hold."""
    lines = ["| corpus, test part | F1 | expected calibration error | names predicted |", "|---|---:|---:|---:|"]
    lines += [
        f"| {name} | {100 * row['f1']:.2f} | {row['ece']:.3f} | {row['decisions']} |" for name, row in found.items()
    ]
    weak = [name for name, row in found.items() if row["ece"] > HOLDS]
    told = "One temperature, fitted on the development parts together, serves all corpora. "
    if weak:
        told += f"**Probabilities don't hold on {', '.join(weak)}**: they are {HOLDS} or more from the share of right "
        told += "names. Use them to order names, or fit them on texts of the same kind (`spen calibrate`)."
    else:
        told += f"The error is at most {HOLDS} on each; texts of another kind can have a larger one."
    return "\n".join([*lines, "", told, ""])


def _scores(predictor: Any, path: str | Path, decisions: list[calibration.Decisions]) -> dict[str, Any]:
    examples = predictor.task.read(str(locate(str(path))))
    model, task = predictor.model, predictor.task
    metric = evaluate(model, task, examples, predictor.batch_size, predictor.device, decisions)
    return {**metric.compute(), **metric.details()}
