"""The file of the scores of each run behind a table of results, `docs/results/runs.csv`."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spen_plugins.files import writing

COLUMNS = ("group", "row", "seed", "score", "validation", "test", "epochs", "seconds", "processor", "torch")
"""Scores in per cent, epochs that were run and their seconds, and the processor and torch used; empty if unknown."""


def run_lines(group: str, row: str, seed: object, scores: Sequence[str], folder: Path, trained: bool = True) -> list:
    """A line for each score of a run; one that decodes another run again has no cost.

    Raises:
        OSError: the folder holds no finished run.
    """
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    history, times, environment_file = (folder / name for name in ("history.jsonl", "times.jsonl", "environment.json"))
    seconds = [json.loads(line)["seconds"] for line in times.read_text().splitlines()] if times.exists() else []
    cost = {"epochs": len(history.read_text().splitlines()), "seconds": round(sum(seconds))} if trained else {}
    environment = json.loads(environment_file.read_text(encoding="utf-8")) if environment_file.exists() else {}
    machine = {"processor": environment.get("processor"), "torch": environment.get("packages", {}).get("torch")}
    return [
        {
            "group": group, "row": row, "seed": str(seed), "score": score, **cost, **machine,
            **{part: f"{100 * metrics[part][score]:.2f}" for part in ("validation", "test") if part in metrics},
        }
        for score in scores
    ]  # fmt: skip


def seed_lines(
    group: str, scores: Sequence[str], seeds: Sequence[int], runs: Mapping[str, Sequence[Path]], *decoded: str
) -> list[dict[str, Any]]:
    """`run_lines` of rows with a run for each seed; the rows `decoded` have no cost."""
    return [
        line
        for row, folders in runs.items()
        for seed, folder in zip(seeds, folders, strict=True)
        for line in run_lines(group, row, seed, scores, folder, row not in decoded)
    ]


def record(found: Sequence[dict[str, Any]], path: Path) -> None:
    """Bring a file up to date with lines of runs; other runs stay in it."""
    old_lines: list[dict[str, Any]] = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            old_lines = list(csv.DictReader(file))
    new_keys = {(line["group"], line["row"], line["seed"]) for line in found}
    lines = [line for line in old_lines if (line["group"], line["row"], line["seed"]) not in new_keys] + list(found)
    lines.sort(key=lambda line: (line["group"], line["row"], int(line["seed"]), line["score"]))
    with writing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(lines)
