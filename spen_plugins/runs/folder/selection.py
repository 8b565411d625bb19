"""The score by which runs are selected, and its unit, which runs in one table have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder

Groups = Mapping[str, Iterable[RunFolder]]
"""Runs by the name of their group."""


def find_selection(groups: Groups, registry: Registry) -> str:
    """The score that picks the best epoch, according to the task."""
    scores = {
        find_task_selection(run.config()["task"], registry): name for name, runs in groups.items() for run in runs
    }
    return _check_one(scores, "they are selected by")


def find_unit(groups: Groups) -> str:
    """The unit of the scores; empty for fractions."""
    units = {run.unit() or "fractions": name for name, runs in groups.items() for run in runs}
    unit = _check_one(units, "their scores are in")
    return "" if unit == "fractions" else unit


def _check_one(labels: Mapping[str, str], verb: str) -> str:
    """The one key of a table of values and groups that have them."""
    if len(labels) > 1:
        both = " and ".join(f"{value} ({label})" for value, label in labels.items())
        raise ConfigError(f"these runs can't be compared in one table: {verb} {both}")
    return next(iter(labels))


def find_task_selection(task: Mapping[str, Any], registry: Registry) -> str:
    """The selection score of a run's task, from its class or its config (`tagging`: accuracy or f1)."""
    cls = registry.resolve("task", task["type"])
    if not hasattr(cls, "selection"):
        cls, config = registry.parse("task", task, "task", "config.json")
        cls = cls(config)
    return cls.selection
