"""Groups of runs side by side: scores over seeds, and differences paired by seed and by test example."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spen_plugins.errors import ConfigError, did_you_mean
from spen_plugins.registry import Registry
from spen_plugins.report.costs import Costs, costs_of, mean_costs
from spen_plugins.report.resampled import Difference, Resampled
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.folder.selection import selection_of, unit_of
from spen_plugins.runs.many.groups import Group
from spen_plugins.scores.bootstrap import Estimate, estimate

OLD_NAMES = {"micro_ap": "map"}
"""Names of scores in older runs."""


@dataclass(frozen=True)
class Row:
    """One group.

    Attributes:
        scores: by name; None if its runs lack the score.
        differences: by the baseline's label; None for the baseline itself or without a shared seed.
        costs: mean over seeds.
    """

    label: str
    seeds: int
    scores: Mapping[str, Estimate | None]
    differences: Mapping[str, Difference | None]
    costs: Costs


@dataclass(frozen=True)
class Comparison:
    """A table of groups.

    Attributes:
        part: the part of the data that is scored.
        selection: name of the score whose differences are shown.
        against: labels of the baselines.
        notes: caveats on comparability.
        sizes: if true, parameters and speed are shown.
        unit: unit of the selection score; empty for fractions.
        lower_is_better: names of the task's scores of which low values are good.
    """

    part: str
    selection: str
    scores: tuple[str, ...]
    against: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    sizes: bool = False
    unit: str = ""
    lower_is_better: Collection[str] = ()


def compare(
    groups: Sequence[Group],
    part: str = "test",
    scores: Sequence[str] = (),
    against: Sequence[str] = (),
    registry: Registry | None = None,
    sizes: bool = False,
) -> Comparison:
    """Compare groups.

    Args:
        groups: at least one.
        part: `test` or `validation`.
        scores: names of the scores to show, dotted for those in nested tables; all but these if empty.
        against: labels of the baselines; the first group if empty.
        registry: source of the tasks' classes.
        sizes: if true, the table also shows parameters and speed.

    Raises:
        ConfigError: groups of different tasks, or an unknown part, score or baseline.
    """
    read = [_Read(group, part) for group in groups]
    registry = registry or Registry()
    runs = {one.label: list(one.runs.values()) for one in read}
    selection = selection_of(runs, registry)
    names = _names(read, scores, selection)
    check_baselines(groups, against)
    baselines = tuple(dict.fromkeys(against or [group.label for group in groups[:1] if len(groups) > 1]))
    mixed = [
        f"WARNING: runs of {one.label} did not read the same data files (environment.json)"
        for one in read
        if len(one.data) > 1
    ]
    unlike = [note for other in read[1:] for note in _unlike(read[0], other)]
    resampled = Resampled(read, selection) if baselines else None
    rows = []
    for one in read:
        differences = {
            label: None if label == one.label or resampled is None else resampled.difference(one.label, label)
            for label in baselines
        }
        rows.append(one.row(names, differences))
    notes = [note for group in groups for note in group.notes] + mixed + unlike + (resampled.notes if resampled else [])
    low = {name for one in read for run in one.runs.values() for name in _low(run.config()["task"], registry)}
    notes = list(dict.fromkeys(notes))
    return Comparison(part, selection, names, baselines, tuple(rows), tuple(notes), sizes, unit_of(runs), low)


def check_baselines(groups: Sequence[Group], against: Sequence[str]) -> None:
    """Check that every baseline is a group's label.

    Raises:
        ConfigError: one is not.
    """
    labels = [group.label for group in groups]
    for label in against:
        if label not in labels:
            raise ConfigError(f"no group is called {label!r}.{did_you_mean(label, labels)} Groups: {', '.join(labels)}")


class _Read:
    """A group's files."""

    def __init__(self, group: Group, part: str) -> None:
        self.label, self.part = group.label, part
        self.runs = group.by_seed()
        self.metrics = {seed: run.metrics() or {} for seed, run in self.runs.items()}
        for seed, metrics in self.metrics.items():
            if part not in metrics:
                known = ", ".join(name for name in metrics if name != "protocol")
                raise ConfigError(
                    f"{self.runs[seed].path} has no scores on {part}; it has: {known or 'none'}. Choose with --part"
                )

    @cached_property
    def ratios(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Numerators and denominators, `(example,)` each, for the runs that kept them."""
        found = {seed: run.ratios(self.part) for seed, run in self.runs.items()}
        return {s: (kept["numerator"].numpy(), kept["denominator"].numpy()) for s, kept in found.items() if kept}

    @cached_property
    def data(self) -> frozenset[tuple[str, ...]]:
        """Data files of the runs; one element if all read the same."""
        return frozenset(_data(run) for run in self.runs.values())

    def values(self, name: str) -> dict[int, float]:
        """A score by seed, for the runs that have it."""
        found = {seed: score_of(metrics[self.part], name) for seed, metrics in self.metrics.items()}
        return {seed: float(value) for seed, value in found.items() if isinstance(value, (int, float))}

    def row(self, names: Sequence[str], differences: Mapping[str, Difference | None]) -> Row:
        values = {name: list(self.values(name).values()) for name in names}
        return Row(
            self.label,
            len(self.runs),
            {name: estimate(found) if found else None for name, found in values.items()},
            differences,
            mean_costs(map(costs_of, self.runs.values())),
        )


def _data(run: RunFolder) -> tuple[str, ...]:
    """Checksums of a run's data files; for a corpus of the package the task's type."""
    checksums = run.environment().get("data_sha256", {}).values()
    return tuple(sorted(checksums)) or (run.config()["task"]["type"],)


def _low(task: Mapping[str, Any], registry: Registry) -> Collection[str]:
    """Names of the scores of a run's task of which low values are good."""
    return registry.resolve("task", task["type"]).lower_is_better


def score_of(scores: Mapping[str, Any], name: str) -> Any:
    """A score by its name; by a dotted one out of a nested table (`ranking.5.ndcg`); None if there is none."""
    found: Any = scores
    if name not in scores and name in OLD_NAMES:
        name = OLD_NAMES[name]
    for key in name.split(".") if name not in scores else [name]:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _names(groups: Sequence[_Read], wanted: Sequence[str], selection: str) -> tuple[str, ...]:
    """The scores to show; by default all numbers, the selection score first."""
    parts = [metrics[group.part] for group in groups for metrics in group.metrics.values()]
    known = dict.fromkeys(name for part in parts for name, value in part.items() if isinstance(value, (int, float)))
    for name in wanted:
        if not any(isinstance(score_of(part, name), (int, float)) for part in parts):
            if name in OLD_NAMES.values():
                raise ConfigError("map is called micro_ap in these runs; example_ap is the mean over examples")
            raise ConfigError(f"no run has a score {name!r}.{did_you_mean(name, known)} Scores: {', '.join(known)}")
    return tuple(wanted) or tuple(sorted(known, key=lambda name: name != selection))


def _unlike(first: _Read, other: _Read) -> list[str]:
    """Reasons why scores of two groups may not be comparable."""
    notes = []
    if first.data != other.data:
        notes.append(f"WARNING: {other.label} and {first.label} did not read the same data files (environment.json)")
    counts = [{len(numerator) for numerator, _ in group.ratios.values()} for group in (first, other)]
    if all(counts) and counts[0] != counts[1]:
        sizes = " and ".join("/".join(map(str, sorted(count))) for count in counts[::-1])
        notes.append(f"WARNING: {other.label} and {first.label} were scored on {sizes} examples")
    for key in sorted(_policies(first).keys() & _policies(other).keys()):
        theirs, ours = _policies(other)[key], _policies(first)[key]
        if theirs != ours:
            said = f"{'; '.join(sorted(theirs))} against {'; '.join(sorted(ours))}"
            notes.append(f"WARNING: {other.label} and {first.label} differ in protocol, {key}: {said}")
    return notes


def _policies(group: _Read) -> dict[str, frozenset[str]]:
    """A group's protocols; for a fitted threshold how it was fitted, as its value differs between runs."""
    found: dict[str, set[str]] = {}
    for metrics in group.metrics.values():
        for key, value in metrics.get("protocol", {}).items():
            if key == "constant_predictor":  # follows from the data and the others
                continue
            text = str(value)
            if key == "threshold" and ", picked" in text:
                text = text[text.index("picked") :]
            found.setdefault(key, set()).add(text)
    return {key: frozenset(texts) for key, texts in found.items()}
