"""Run folders of a command line: groups of runs that differ only in their seed, and their selection score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from spen_plugins.errors import ConfigError, did_you_mean
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import MEAN, RunFolder, open_runs, read_methods


@dataclass(frozen=True)
class Group:
    """Runs of one experiment, one per seed.

    Attributes:
        label: name in tables and plots.
        runs: in order of seeds; at least one.
        notes: notes for the user, such as runs that were left out.
    """

    label: str
    runs: list[RunFolder]
    notes: tuple[str, ...] = ()

    def by_seed(self) -> dict[int, RunFolder]:
        return {read_seed(run): run for run in self.runs}


def read_seed(run: RunFolder) -> int:
    """The seed of a run."""
    return int(run.config().get("seed", 0))


def read_groups(words: Sequence[str], unfinished: bool = False) -> list[Group]:
    """The groups that the words of a command line name.

    Args:
        words: run folders or folders of run folders (one per seed), with or without a label: `runs/mine`,
            `mine=runs/mine`. The default label is the folder's name, or the path if two names are equal. A folder of
            several methods (`methods.json`) is one group per method; methods without a run are left out with a note.
        unfinished: if true, runs without scores are included; otherwise they are left out with a note.
    """
    entries = [entry for word in words for entry in _split_methods(*_split(word), unfinished)]
    names = [path.resolve().name for label, path, _ in entries if label is None]
    groups = []
    for label, path, notes in entries:
        if label is None:
            name = path.resolve().name
            label = name if names.count(name) == 1 else str(path)
        group = read_group(label, path, unfinished)
        groups.append(replace(group, notes=(*notes, *group.notes)))
    labels = [group.label for group in groups]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"found two runs labelled {label!r}; give each its own label: label=folder")
    return groups


def _split_methods(label: str | None, path: Path, unfinished: bool) -> list[tuple[str | None, Path, tuple[str, ...]]]:
    """The label, path and notes of each method with a run in a folder; of the folder itself if it has no methods."""
    methods = read_methods(path).get("methods", [])
    if not methods:
        return [(label, path, ())]

    def has_run(name: str) -> bool:
        return any(unfinished or run.metrics() is not None for run in open_runs(path / name))

    finished_methods = [method for method in methods if has_run(method)]
    unfinished_names = ", ".join(method for method in methods if method not in finished_methods)
    resume = f"Resume with: spen-run --resume {quote(str(path))}"
    if not finished_methods:
        raise ConfigError(f"{path}: its methods have no finished run: {unfinished_names}. {resume}")
    note = (f"{path}: left out, no finished run: {unfinished_names}. {resume}",) if unfinished_names else ()
    if has_run(MEAN):
        finished_methods.append(MEAN)
    entries = [(method if label is None else f"{label}/{method}", path / method) for method in finished_methods]
    return [(*entry, () if number else note) for number, entry in enumerate(entries)]


def _split(word: str) -> tuple[str | None, Path]:
    """The label, if any, and the path of a word; either may contain `=`."""
    if Path(word).exists():
        return None, Path(word)
    parts = word.split("=")
    for i in range(1, len(parts)):
        label, name = "=".join(parts[:i]), "=".join(parts[i:])
        if label and name and Path(name).exists():
            return label, Path(name)
    path = Path(parts[-1])
    suggestion = did_you_mean(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
    raise ConfigError(f"found no run {word}; expected a run folder, a folder of runs, or label=folder.{suggestion}")


def read_group(label: str, path: Path, unfinished: bool = False) -> Group:
    """The runs of a run folder, or of a folder of run folders; see `read_groups`."""
    all_runs = open_runs(path)
    if not all_runs:
        problem = "it is a file; name its folder" if path.is_file() else "no config.json in it or its subfolders"
        raise ConfigError(f"{path} is neither a run folder nor a folder of runs: {problem}")
    finished_runs = [run for run in all_runs if unfinished or run.metrics() is not None]
    unfinished_names = ", ".join(str(run.path) for run in all_runs if run not in finished_runs)
    if not finished_runs:
        raise ConfigError(
            f"{label}: no run is finished: {unfinished_names}. Resume with: spen-run --resume {quote(str(path))}"
        )
    notes = [f"{label}: left out, not finished: {unfinished_names}"] if unfinished_names else []
    runs: dict[int, RunFolder] = {}
    for run in finished_runs:
        first = runs.setdefault(read_seed(run), run)
        if first is not run:
            raise ConfigError(
                f"{path} has two runs with seed {read_seed(run)}, {first.path.name} and {run.path.name}; expected one "
                "run per seed. Name runs of different experiments one by one"
            )
    if differing_keys := _find_differing_keys(finished_runs):
        notes.append(f"{label}: its runs differ in more than their seed: {', '.join(differing_keys)}")
    return Group(label, [runs[seed] for seed in sorted(runs)], tuple(notes))


def _find_differing_keys(runs: Sequence[RunFolder]) -> list[str]:
    """Top-level keys of the configs, except the seed, that differ between runs."""
    first, *others = (run.config() for run in runs)
    return sorted(
        {key for other in others for key in first.keys() | other.keys() if first.get(key) != other.get(key)} - {"seed"}
    )


Groups = Mapping[str, Iterable[RunFolder]]
"""Runs by the name of their group."""


def find_selection(groups: Groups, registry: Registry, score_names: Sequence[str] = ()) -> tuple[str, bool]:
    """The score that picks the runs' best epochs, and true; if runs differ in it, the first of `score_names`, false."""
    scores = {find_run_selection(run, registry): name for name, runs in groups.items() for run in runs}
    if score_names and len(scores) > 1:
        return score_names[0], False
    return _find_only_key(scores, "they are selected by", "; name one with --scores"), True


def find_unit(groups: Groups) -> str:
    """The unit of the scores; empty for fractions."""
    units = {run.unit() or "fractions": name for name, runs in groups.items() for run in runs}
    unit = _find_only_key(units, "their scores are in")
    return "" if unit == "fractions" else unit


def _find_only_key(labels: Mapping[str, str], verb: str, advice: str = "") -> str:
    """The only key of a table of values and their groups; raises a ConfigError if there are several."""
    if len(labels) > 1:
        values = " and ".join(f"{value} ({label})" for value, label in labels.items())
        raise ConfigError(f"these runs can't be compared in one table: {verb} {values}{advice}")
    return next(iter(labels))


def find_run_selection(run: RunFolder, registry: Registry) -> str:
    """The selection score of a run: the recorded score, which may depend on the data, or else that of its task."""
    recorded = (run.metrics() or {}).get("protocol", {}).get("constant_predictor", {})
    return recorded.get("score") or find_task_selection(run.config()["task"], registry)


def find_task_selection(task: Mapping[str, Any], registry: Registry) -> str:
    """The selection score of a run's task, from its class or its config (`tagging`, `multilabel`)."""
    cls = registry.resolve("task", task["type"])
    if not hasattr(cls, "selection"):
        cls, config = registry.parse("task", task, "task", "config.json")
        cls = cls(config)
    return cls.selection
