"""Facts of a task as they come from a run's `vocabulary.json`, checked where they are taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def listed(facts: Mapping[str, Any], key: str) -> list[str]:
    """A list of different texts.

    Raises:
        KeyError, ValueError: there is none.
    """
    found = facts[key]
    if not isinstance(found, (list, tuple)) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{key}: found {found!r:.60}; expected a list of texts")
    if len(set(found)) < len(found):
        raise ValueError(f"{key}: found a name twice; expected each once")
    return list(found)


def number(facts: Mapping[str, Any], key: str) -> float:
    """A finite number; errors as `listed`."""
    found = facts[key]
    if not isinstance(found, (int, float)) or not math.isfinite(found):
        raise ValueError(f"{key}: found {found!r:.60}; expected a number")
    return found


def numbers(facts: Mapping[str, Any], key: str, count: int) -> list[float]:
    """A list of so many finite numbers; errors as `listed`."""
    found = facts[key]
    if not isinstance(found, (list, tuple)) or len(found) != count:
        raise ValueError(f"{key}: found {found!r:.60}; expected a list of {count} numbers")
    return [number({key: one}, key) for one in found]
