"""Scores and calibration of the parts of an English pipeline, for `build_english.py`; calibration by itself:

    python -m tools.english.english_data runs/english/data
    python -m tools.english.english_scores spen_en spen_en_md

The second prints the expected calibration error of each part of installed pipelines, measured on the development and
test parts that its config names; it changes no file. The first writes the names' parts.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spacy.util import get_package_path

import spen_plugins as sp
from spen_plugins.data.catalogue import locate
from spen_plugins.loop.evaluation import evaluate
from spen_plugins.scores import calibration
from tools.errors import end_with_message

HOLDS = 0.1
"""Expected calibration error above which the card says that probabilities don't hold."""


@end_with_message(ImportError)
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipelines", nargs="+", help="installed pipelines of spen-plugins' parts, as in spen_en")
    pipelines = parser.parse_args().pipelines
    print("| part | decisions | temperature | dev before | dev | test before | test |", flush=True)
    print("|---|---|---:|---:|---:|---:|---:|")
    for name in pipelines:
        place = get_package_path(name) / "pipeline"
        for folder in sorted(path.parent for path in place.glob("*/*/calibration.json")):
            print(calibration_row(name, folder), flush=True)


def calibration_row(name: str, folder: Path) -> str:
    """A part's row of the calibration table, in Markdown, measured anew with its stored temperature."""
    predictor = sp.load(folder)
    task, temperature = sp.RunFolder.open(folder).config()["task"], predictor.task.temperature
    dev: list[calibration.Decisions] = []
    test: list[calibration.Decisions] = []
    _compute_scores(predictor, task["validation"], dev)
    _compute_scores(predictor, task["test"], test)
    counts = [f"{sum(len(group.right) for group in decisions):,}" for decisions in (dev, test)]
    errors = [
        calibration.expected_calibration_error(decisions, t) for decisions in (dev, test) for t in (1.0, temperature)
    ]
    part = " ".join(folder.parts[-2:])
    columns = [f"`{name}` {part}", f"{counts[0]} dev, {counts[1]} test", f"{temperature:.2f}"]
    return f"| {' | '.join([*columns, *(f'{error:.4f}' for error in errors)])} |"


def by_corpus(folder: Path, files: Mapping[str, Path]) -> dict[str, dict[str, float]]:
    """F1 and expected calibration error of names in each file, by its name."""
    predictor = sp.load(folder)
    scores = {}
    for name, path in files.items():
        decisions: list[calibration.Decisions] = []
        f1 = _compute_scores(predictor, path, decisions)["f1"]
        error = calibration.expected_calibration_error(decisions, predictor.task.temperature)
        scores[name] = {"f1": f1, "ece": error, "decisions": sum(len(group.right) for group in decisions)}
    return scores


def table(found: Mapping[str, Mapping[str, float]]) -> str:
    """Scores by corpus, in Markdown, and the corpora where probabilities don't hold."""
    lines = ["| corpus, test part | F1 | expected calibration error | names predicted |", "|---|---:|---:|---:|"]
    lines += [
        f"| {name} | {100 * row['f1']:.2f} | {row['ece']:.3f} | {row['decisions']} |" for name, row in found.items()
    ]
    weak = [name for name, row in found.items() if row["ece"] > HOLDS]
    note = "One temperature, fitted on the development parts together, serves all corpora. "
    if weak:
        note += f"**Probabilities don't hold on {', '.join(weak)}**: they are {HOLDS} or more from the share of right "
        note += "names. Use them to order names, or fit them on texts of the same kind (`spen calibrate`)."
    else:
        note += f"The error is at most {HOLDS} on each; texts of another kind can have a larger one."
    return "\n".join([*lines, "", note, ""])


def _compute_scores(predictor: Any, path: str | Path, decisions: list[calibration.Decisions]) -> dict[str, Any]:
    examples = predictor.task.read(str(locate(str(path))))
    model, task = predictor.model, predictor.task
    metric = evaluate(model, task, examples, predictor.batch_size, predictor.device, decisions)
    return {**metric.compute(), **metric.details()}


if __name__ == "__main__":
    main()
