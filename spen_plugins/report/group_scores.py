"""Scores of groups of runs on one part, and differences under resampling of seeds and test examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from spen_plugins.errors import ConfigError
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import Group
from spen_plugins.scores.bootstrap import (
    RESAMPLES,
    Estimate,
    Interval,
    compute_joint_interval,
    estimate,
    interval,
    resampled_scores,
)


class GroupScores:
    """Scores of a group."""

    def __init__(self, group: Group, part: str) -> None:
        self.label, self.part = group.label, part
        self.runs = group.by_seed()
        self._metrics = {seed: run.metrics() or {} for seed, run in self.runs.items()}
        for seed, metrics in self._metrics.items():
            if part not in metrics:
                parts = ", ".join(name for name in metrics if name != "protocol")
                raise ConfigError(
                    f"{self.runs[seed].path} has no scores on {part}; it has: {parts or 'none'}. Choose with --part"
                )

    @property
    def tables(self) -> list[Mapping[str, Any]]:
        """The scores of each run."""
        return [metrics[self.part] for metrics in self._metrics.values()]

    @property
    def is_mean(self) -> bool:
        """True for one mean of several runs, whose seed is only that of the first."""
        return len(self.runs) == 1 and all(run.environment().get("mean") for run in self.runs.values())

    @property
    def tasks(self) -> set[str]:
        """The types of the runs' tasks."""
        return {run.config()["task"]["type"] for run in self.runs.values()}

    @cached_property
    def ratios(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Numerators and denominators by seed, `(example,)` each, for the runs that kept them."""
        tables = {seed: run.ratios(self.part) for seed, run in self.runs.items()}
        return {s: (table["numerator"].numpy(), table["denominator"].numpy()) for s, table in tables.items() if table}

    @cached_property
    def data(self) -> frozenset[tuple[str, ...]]:
        """Checksums of the runs' data files; one element if all read the same files."""
        return frozenset(_collect_checksums(run) for run in self.runs.values())

    @cached_property
    def undivided_data(self) -> frozenset[tuple[str, ...]]:
        """`data` without the files that only say which rows are in which part."""
        return frozenset(_collect_checksums(run, split=False) for run in self.runs.values())

    @cached_property
    def protocols(self) -> dict[str, frozenset[str]]:
        """Protocols of the scores; for a fitted threshold only how it was fitted: its value differs between runs."""
        protocols: dict[str, set[str]] = {}
        for metrics in self._metrics.values():
            for key, value in metrics.get("protocol", {}).items():
                if key == "constant_predictor":  # follows from the data and the others
                    continue
                text = str(value)
                if key == "threshold" and ", picked" in text:
                    text = text[text.index("picked") :]
                protocols.setdefault(key, set()).add(text)
        return {key: frozenset(texts) for key, texts in protocols.items()}

    def values(self, name: str) -> dict[int, float]:
        """A score by seed, for the runs that have it."""
        scores = {seed: find_score(metrics[self.part], name) for seed, metrics in self._metrics.items()}
        return {seed: float(value) for seed, value in scores.items() if isinstance(value, (int, float))}


def find_score(scores: Mapping[str, Any], name: str) -> Any:
    """A score by its name, dotted for nested tables (`ranking.5.ndcg`); None if it is missing."""
    value: Any = scores
    for key in [name] if name in scores else name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _identify_examples(run: RunFolder, part: str) -> tuple[str, ...]:
    """The checksum of a part's own file; for a part that depends on other files, the checksums of all data files."""
    task = run.config()["task"]
    checksum = run.environment().get("data_sha256", {}).get(str(task.get(part)))
    return (part, checksum) if checksum and not task.get("unseen") else _collect_checksums(run)


def _collect_checksums(run: RunFolder, split: bool = True) -> tuple[str, ...]:
    """Checksums of a run's data files, with or without `task.split`; the task's type if the package ships the data."""
    task = run.config()["task"]
    checksums = dict(run.environment().get("data_sha256", {}))
    if not split:
        checksums.pop(str(task.get("split")), None)
    return tuple(sorted(checksums.values())) or (task["type"],)


@dataclass(frozen=True)
class Difference:
    """A group's selection score minus a baseline's.

    Attributes:
        seeds: estimate over shared seeds, paired.
        examples: interval over test examples, paired; None if runs stored none or their examples may differ.
        seeds_and_examples: interval over seeds and test examples together; also None with one seed.
    """

    seeds: Estimate
    examples: Interval | None
    seeds_and_examples: Interval | None = None


class _Notes:
    """Notes on differences that are missing or over some of the seeds."""

    def __init__(self) -> None:
        self.other_examples: list[str] = []
        self.some_seeds: list[str] = []
        self.no_seed: list[str] = []
        self.unsampled_labels: dict[str, None] = {}  # ordered

    def summarise(self) -> list[str]:
        """All notes, with one in place of several of a kind."""
        summary = "differences between rows with different seeds are over the seeds that both have"
        no_seed_summary = f"{len(self.no_seed)} pairs of rows share no seed: no difference between them"
        notes = [
            *self.other_examples,
            *(self.some_seeds if len(self.some_seeds) < 2 else [summary]),
            *(self.no_seed if len(self.no_seed) < 2 else [no_seed_summary]),
        ]
        if self.unsampled_labels:
            notes.append(
                "no bootstrap over examples, which requires a score that is a ratio of sums (macro F1 is none) and "
                f"examples.safetensors of this part; missing in: {'; '.join(self.unsampled_labels)}"
            )
        return notes


def compare_resampled(
    groups: Sequence[GroupScores], selection: str, baselines: Sequence[str], resample: bool = True
) -> tuple[dict[str, dict[str, Difference | None]], list[str]]:
    """Differences between each group and each baseline, None for itself or without a shared seed; and notes on missing
    differences and on those over some of the seeds. A mean of runs is compared with each seed. Runs on the same
    examples are resampled together, once; set `resample` to false if the examples' ratios are of other scores."""
    notes = _Notes()
    samples = _resample(groups) if resample else {}
    by_label = {group.label: group for group in groups}
    differences = {
        group.label: {
            name: None if name == group.label else _find_difference(group, by_label[name], selection, samples, notes)
            for name in baselines
        }
        for group in groups
    }
    if not resample:
        notes.unsampled_labels.clear()
    return differences, notes.summarise()


Samples = dict[tuple[str, int], tuple[Any, np.ndarray]]
"""For each label and seed, the pool of runs on the same examples, and the scores of its resamples."""


def _resample(groups: Sequence[GroupScores]) -> Samples:
    pools: dict[Any, dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]] = {}
    for group in groups:
        for seed, ratios in group.ratios.items():
            pool = _identify_examples(group.runs[seed], group.part), len(ratios[0])
            pools.setdefault(pool, {})[group.label, seed] = ratios
    samples: Samples = {}
    for pool, members in pools.items():
        numerators, denominators = (np.stack(arrays) for arrays in zip(*members.values(), strict=True))
        scores = resampled_scores(numerators, denominators, RESAMPLES).T
        samples |= {member: (pool, column) for member, column in zip(members, scores, strict=True)}
    return samples


def _pair_seeds(group: GroupScores, baseline: GroupScores, selection: str, notes: _Notes) -> list[tuple[int, int]]:
    """The seeds that both have, or each seed with the mean of runs."""
    seeds, baseline_seeds = group.values(selection).keys(), baseline.values(selection).keys()
    if group.is_mean or baseline.is_mean:
        pairs = [(seed, baseline_seed) for seed in seeds for baseline_seed in baseline_seeds]
    else:
        pairs = [(seed, seed) for seed in sorted(seeds & baseline_seeds)]
        if pairs and seeds != baseline_seeds:
            listing = f"seed{'s' if len(pairs) > 1 else ''} {', '.join(str(seed) for seed, _ in pairs)}"
            notes.some_seeds.append(
                f"{group.label} and {baseline.label} don't have the same seeds; their difference is over {listing}"
            )
    if not pairs:
        notes.no_seed.append(f"{group.label} and {baseline.label} share no seed: no difference")
    return pairs


def _find_difference(
    group: GroupScores, baseline: GroupScores, selection: str, samples: Samples, notes: _Notes
) -> Difference | None:
    seed_pairs = _pair_seeds(group, baseline, selection, notes)
    if not seed_pairs:
        return None
    scores, baseline_scores = group.values(selection), baseline.values(selection)
    over_seeds = estimate([scores[seed] - baseline_scores[baseline_seed] for seed, baseline_seed in seed_pairs])
    keys = [((group.label, seed), (baseline.label, baseline_seed)) for seed, baseline_seed in seed_pairs]
    if missing_labels := [label for label, seed in chain(*keys) if (label, seed) not in samples]:
        notes.unsampled_labels.update(dict.fromkeys(missing_labels))
        return Difference(over_seeds, None)
    pairs = [(samples[key], samples[baseline_key]) for key, baseline_key in keys]
    if any(pool != baseline_pool for (pool, _), (baseline_pool, _) in pairs):
        notes.other_examples.append(
            f"{group.label} and {baseline.label}: no bootstrap, as their examples may differ: they are from other "
            "files, another split, or another number"
        )
        return Difference(over_seeds, None)
    differences = np.stack([sample - reference for (_, sample), (_, reference) in pairs], axis=1)
    joint = compute_joint_interval(differences) if len(pairs) > 1 else None
    return Difference(over_seeds, interval(differences.mean(1)), joint)
