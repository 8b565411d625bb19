"""A search space: values of a config's arguments.

Drawn values are stored as text, as typed after `NAME=` on a command line, so choices can also be lists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from spen_plugins.config.evaluation import evaluate, parse_value
from spen_plugins.errors import ConfigError
from spen_plugins.settings.config import Config
from spen_plugins.settings.fields import validate

if TYPE_CHECKING:
    from optuna import Trial


class Range(Config):
    """A range of numbers, both ends included."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""
    log: bool = False
    """If true, values are drawn uniformly on a logarithmic scale."""
    step: float | None = Field(None, gt=0)
    """Step size: only `low`, `low + step`, … are drawn."""
    int: bool = False
    """If true, values are whole numbers; they always are if `step` and both ends are."""

    @property
    def is_whole(self) -> bool:
        """True if the values are whole numbers."""
        return self.int or (self.step is not None and _are_whole(self))

    def ends(self) -> list[str]:
        """The two ends, as text; configs are checked with them."""
        return [write_value(round(v) if self.is_whole else v) for v in (self.low, self.high)]

    def suggest(self, trial: Trial, name: str) -> str:
        """Draw a value for a trial, as text."""
        if self.is_whole:
            low, high, step = round(self.low), round(self.high), round(self.step or 1)
            return write_value(trial.suggest_int(name, low, high, step=step, log=self.log))
        return write_value(trial.suggest_float(name, self.low, self.high, step=self.step, log=self.log))


class Choices(Config):
    """A choice of several values."""

    choices: list[Any] = Field(min_length=1)
    """JSON values, lists included."""

    def ends(self) -> list[str]:
        """All choices, as text."""
        return [write_value(value) for value in self.choices]

    def suggest(self, trial: Trial, name: str) -> str:
        """Draw a value for a trial, as text."""
        return trial.suggest_categorical(name, self.ends())


Space = Mapping[str, Range | Choices]


def read(path: Path) -> Space:
    """The search space of a file: argument or dotted key -> range, choices, or a list of choices."""
    space = {name: _parse_dimension(name, value, path) for name, value in evaluate(path).items()}
    if not space:
        raise ConfigError(
            f"{path}: found an empty space; expected lines such as trainer.net.lr: {{low: 1e-4, high: 1e-2, log: true}}"
        )
    return space


def write_value(value: Any) -> str:
    """A value as typed after `NAME=`."""
    return value if isinstance(value, str) and parse_value(value) == value else json.dumps(value)


def _parse_dimension(name: str, value: Any, path: Path) -> Range | Choices:
    if isinstance(value, list):
        value = {"choices": value}
    if not isinstance(value, dict):
        raise ConfigError(
            f"{path}: {name}: found {json.dumps(value)}; expected a range {{low: 1, high: 2}} or a list of choices. "
            f"Give a fixed value as an argument: {name}={write_value(value)}"
        )
    if "choices" in value:
        choices = validate(Choices, value, name, path)
        if len(set(choices.ends())) < len(choices.choices):
            raise ConfigError(f"{path}: {name}: a choice occurs twice: {', '.join(choices.ends())}")
        return choices
    numbers = validate(Range, value, name, path)
    if problem := _find_problem(numbers):
        raise ConfigError(f"{path}: {name}: {problem}")
    return numbers


def _find_problem(numbers: Range) -> str:
    """The problem of a range; empty if it has none."""
    if not numbers.low < numbers.high:
        return f"found low {numbers.low:g} and high {numbers.high:g}; expected low below high"
    if numbers.log and numbers.low <= 0:
        return f"found low {numbers.low:g} with log; expected low above 0"
    if numbers.log and numbers.step is not None:
        return "found log and step; expected one of them"
    return "found int, but low, high or step is not a whole number" if numbers.int and not _are_whole(numbers) else ""


def _are_whole(numbers: Range) -> bool:
    return all(value is None or value.is_integer() for value in (numbers.low, numbers.high, numbers.step))
