"""The mean of several runs, from a command line or from a folder of methods with several seeds."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spen_plugins.errors import ConfigError, DataError, RunError
from spen_plugins.runs.folder.folder import MEAN, RunFolder, read_methods
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.runs.options import RunOptions
from spen_plugins.runs.predict.own_data import load_own_data
from spen_plugins.runs.train.averaging import average_runs, choose_members, open_members, write_mean
from spen_plugins.scores.bootstrap import scale


def average_folders(
    paths: Sequence[Path], out: Path, settings: Mapping[str, Any] | None, choose: bool, options: RunOptions
) -> list[str]:
    """`average_runs` for the finished runs in run folders and in folders of runs, except means of other runs; returns
    notes on runs that were left out."""
    groups = read_groups([str(path) for path in paths])
    runs = [run.path for group in groups for run in group.runs if run.path.name != MEAN]
    average_runs(runs, out, settings, choose, options)
    return [note for group in groups for note in group.notes]


def keep_mean(
    out: Path, runs: Mapping[str, Sequence[RunFolder]], best: str, unit: str, options: RunOptions
) -> tuple[dict[str, Any] | None, list[str]]:
    """Write the mean of the runs that the validation part chooses in a folder, into the folder itself.

    An existing mean is kept unless the runs differ. No mean is written if none is better than a single run, or if the
    runs can't be averaged.

    Args:
        out: the folder of the methods.
        runs: the finished runs of each method.
        best: the chosen run, a path below `out`.
        unit: unit of the scores.
        options: device and output.

    Returns:
        The mean as JSON values, or None if the folder predicts with a single run; and lines for the user.
    """
    paths = sorted((run.path for method in runs.values() for run in method), key=lambda path: path != out / best)
    candidates = [str(path.relative_to(out)) for path in paths]
    mean_folder, record = out / MEAN, read_methods(out).get("mean")
    if record is None or record["candidates"] != candidates or not (mean_folder / "metrics.json").exists():
        shutil.rmtree(mean_folder, ignore_errors=True)
        try:
            members = open_members(paths)
            task = load_own_data(members[0].experiment, members[0].folder, "Train again")
            chosen, scores = choose_members(members, task, options)
            if len(chosen) == 1:
                single = chosen[0].folder.path.relative_to(out)
                reason = f"no mean of its runs scores better on validation than {single} alone"
                return None, [f"the folder predicts with {best}: {reason}"]
            write_mean(chosen, members, task, mean_folder, options)
        except (ConfigError, DataError, RunError) as error:
            return None, [f"the folder predicts with {best}, because its runs can't be averaged: {error}"]
        record = {
            "runs": [str(member.folder.path.relative_to(out)) for member in chosen],
            "candidates": candidates,
            "validation": scores[-1],
            "best_alone": scores[0],
            "seconds": sum(member.seconds for member in members),
        }
    names, factor = record["runs"], scale(unit)
    mean_score, single_score = (f"{factor * record[name]:.2f}" for name in ("validation", "best_alone"))
    line = (
        f"the folder predicts with the mean of {len(names)} of {len(candidates)} runs, chosen on the validation part: "
        f"{', '.join(names)} ({mean_score}; {names[0]} alone {single_score})"
    )
    best = f"training took {record['seconds']:.0f} s in total; for the best run alone: spen-run --resume FOLDER --best"
    return record, [line, best]
