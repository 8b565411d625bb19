"""The scores of a group's runs on one part, with what decides whether groups are comparable."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from spen_plugins.errors import ConfigError
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import Group


class GroupScores:
    """Scores of a group."""

    def __init__(self, group: Group, part: str) -> None:
        self.label, self.part = group.label, part
        self.runs = group.by_seed()
        self._metrics = {seed: run.metrics() or {} for seed, run in self.runs.items()}
        for seed, metrics in self._metrics.items():
            if part not in metrics:
                known = ", ".join(name for name in metrics if name != "protocol")
                raise ConfigError(
                    f"{self.runs[seed].path} has no scores on {part}; it has: {known or 'none'}. Choose with --part"
                )

    @property
    def tables(self) -> list[Mapping[str, Any]]:
        """The scores of each run."""
        return [metrics[self.part] for metrics in self._metrics.values()]

    @property
    def tasks(self) -> set[str]:
        """The types of the runs' tasks."""
        return {run.config()["task"]["type"] for run in self.runs.values()}

    @cached_property
    def ratios(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Numerators and denominators by seed, `(example,)` each, for the runs that kept them."""
        kept = {seed: run.ratios(self.part) for seed, run in self.runs.items()}
        return {s: (table["numerator"].numpy(), table["denominator"].numpy()) for s, table in kept.items() if table}

    @cached_property
    def data(self) -> frozenset[tuple[str, ...]]:
        """Data files of the runs; one element if all read the same."""
        return frozenset(_checksums(run) for run in self.runs.values())

    @cached_property
    def protocols(self) -> dict[str, frozenset[str]]:
        """The protocols of the scores; for a fitted threshold how it was fitted, as its value differs between runs."""
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
    """A score by its name; by a dotted one out of a nested table (`ranking.5.ndcg`); None if there is none."""
    value: Any = scores
    for key in [name] if name in scores else name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _checksums(run: RunFolder) -> tuple[str, ...]:
    """Checksums of a run's data files; for a corpus of the package the task's type."""
    checksums = run.environment().get("data_sha256", {}).values()
    return tuple(sorted(checksums)) or (run.config()["task"]["type"],)
