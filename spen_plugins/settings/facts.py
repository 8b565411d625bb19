"""Facts of a task as they come from a run's `vocabulary.json`, checked when they are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def listed(facts: Mapping[str, Any], key: str) -> list[str]:
    """A list of different texts.

    Raises:
        KeyError, ValueError: there is no such list.
    """
    value = facts[key]
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key}: found {value!r:.60}; expected a list of strings")
    if len(set(value)) < len(value):
        raise ValueError(f"{key}: found a name twice; expected each once")
    return list(value)


def number(facts: Mapping[str, Any], key: str) -> float:
    """A finite number; raises the errors of `listed`."""
    value = facts[key]
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{key}: found {value!r:.60}; expected a number")
    return value


def numbers(facts: Mapping[str, Any], key: str, count: int) -> list[float]:
    """A list of `count` finite numbers; raises the errors of `listed`."""
    value = facts[key]
    if not isinstance(value, (list, tuple)) or len(value) != count:
        raise ValueError(f"{key}: found {value!r:.60}; expected a list of {count} numbers")
    return [number({key: item}, key) for item in value]
