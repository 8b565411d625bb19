"""Differences between groups of runs, under resampling of their seeds and test examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spen_plugins.report.group_scores import GroupScores
from spen_plugins.scores.bootstrap import (
    RESAMPLES,
    Estimate,
    Interval,
    estimate,
    interval,
    resampled_scores,
    with_seeds,
)


@dataclass(frozen=True)
class Difference:
    """A group's selection score minus a baseline's.

    Attributes:
        seeds: over shared seeds, paired.
        examples: over test examples, paired; None if runs kept none or their examples differ.
        both: over seeds and test examples together; None with one seed, too.
    """

    seeds: Estimate
    examples: Interval | None
    both: Interval | None = None


class Resampled:
    """Differences between groups; runs on the same examples are resampled together, once."""

    def __init__(self, groups: Sequence[GroupScores], selection: str) -> None:
        self.groups, self.selection = {group.label: group for group in groups}, selection
        self._notes: list[str] = []
        self._unequal: list[str] = []
        self._without: dict[str, None] = {}
        self._scores: dict[tuple[str, int], tuple[Any, np.ndarray]] = {}
        pools: dict[Any, list[tuple[str, int]]] = {}
        for group in groups:
            for seed, (numerator, _) in group.ratios.items():
                pools.setdefault((group.data, len(numerator)), []).append((group.label, seed))
        for pool, members in pools.items():
            tables = [self.groups[label].ratios[seed] for label, seed in members]
            above, below = (np.stack(arrays) for arrays in zip(*tables, strict=True))
            for member, column in zip(members, resampled_scores(above, below, RESAMPLES).T, strict=True):
                self._scores[member] = (pool, column)

    @property
    def notes(self) -> list[str]:
        """Notes on differences that `differences` omitted, or that are over some of the seeds."""
        several = "where two rows don't have the same seeds, their difference is over those that both have"
        notes = [*self._notes, *(self._unequal if len(self._unequal) < 2 else [several])]
        if self._without:
            labels = "; ".join(self._without)
            notes.append(f"no bootstrap over examples, as no examples.safetensors of this part is in: {labels}")
        return notes

    def differences(self, label: str, baselines: Sequence[str]) -> dict[str, Difference | None]:
        """Differences between a group and each baseline; None for itself or without a shared seed."""
        return {name: None if name == label else self._difference(label, name) for name in baselines}

    def _difference(self, label: str, baseline: str) -> Difference | None:
        ours, theirs = (self.groups[name].values(self.selection) for name in (label, baseline))
        shared = sorted(ours.keys() & theirs.keys())
        if not shared:
            self._notes.append(f"{label} and {baseline} share no seed: no difference")
            return None
        if ours.keys() != theirs.keys():
            seeds = ", ".join(map(str, shared))
            self._unequal.append(f"{label} and {baseline} don't have the same seeds; their difference is over {seeds}")
        seeds = estimate([ours[seed] - theirs[seed] for seed in shared])
        drawn = self._draw(label, baseline, shared)
        if drawn is None:
            return Difference(seeds, None)
        both = interval(with_seeds(drawn)) if len(shared) > 1 else None
        return Difference(seeds, interval(drawn.mean(1)), both)

    def _draw(self, label: str, baseline: str, shared: Sequence[int]) -> np.ndarray | None:
        """Differences under resampling of the examples, `(resample, seed)`."""
        without = [name for name in (label, baseline) if any((name, seed) not in self._scores for seed in shared)]
        if without:
            self._without.update(dict.fromkeys(without))
            return None
        pairs = [(self._scores[label, seed], self._scores[baseline, seed]) for seed in shared]
        if len({pool for pair in pairs for pool, _ in pair}) > 1:
            self._notes.append(f"{label} and {baseline}: no bootstrap, as their examples are not the same")
            return None
        return np.stack([ours - theirs for (_, ours), (_, theirs) in pairs], axis=1)
