"""A search space: which values an argument of a config may take.

What a trial drew is kept as the text one would type behind `NAME=` on a command line, so lists can be choices too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from spen_plugins.config.config import Config
from spen_plugins.config.evaluation import evaluate, parse_value
from spen_plugins.config.fields import validate
from spen_plugins.errors import ConfigError

if TYPE_CHECKING:
    from optuna import Trial


class Range(Config):
    """Numbers between two, both included."""

    low: float
    """The least."""
    high: float
    """The greatest."""
    log: bool = False
    """Whether to draw evenly on a logarithmic scale: for what spans orders of magnitude."""
    step: float | None = Field(None, gt=0)
    """Only `low`, `low + step`, …"""
    int: bool = False
    """Whole numbers; with a whole `step` between whole ends they are anyway."""

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers."""
        return self.int or (self.step is not None and _all_whole(self))

    def ends(self) -> list[str]:
        """The values that show whether a config takes this range."""
        return [value_text(round(v) if self.whole else v) for v in (self.low, self.high)]

    def suggest(self, trial: Trial, name: str) -> str:
        """What a trial draws, as a text."""
        if self.whole:
            low, high, step = round(self.low), round(self.high), round(self.step or 1)
            return value_text(trial.suggest_int(name, low, high, step=step, log=self.log))
        return value_text(trial.suggest_float(name, self.low, self.high, step=self.step, log=self.log))


class Choices(Config):
    """One of several values."""

    choices: list[Any] = Field(min_length=1)
    """Any JSON values, lists too."""

    def ends(self) -> list[str]:
        """All of them, as texts."""
        return [value_text(value) for value in self.choices]

    def suggest(self, trial: Trial, name: str) -> str:
        """What a trial draws, as a text."""
        return trial.suggest_categorical(name, self.ends())


Space = Mapping[str, Range | Choices]


def read(path: Path) -> Space:
    """The space a file describes: argument or dotted key -> range, choices, or a list of choices.

    Args:
        path: `.yaml`, `.json` or `.jsonnet`.

    Raises:
        ConfigError: no such file, a syntax error, or a range that is none.
    """
    space = {name: _dimension(name, value, path) for name, value in evaluate(path).items()}
    if not space:
        raise ConfigError(
            f"{path}: an empty space; expected lines such as net_lr: {{low: 1e-4, high: 1e-2, log: true}}"
        )
    return space


def value_text(value: Any) -> str:
    """A value as one types it behind `NAME=`."""
    return value if isinstance(value, str) and parse_value(value) == value else json.dumps(value)


def _dimension(name: str, value: Any, path: Path) -> Range | Choices:
    if isinstance(value, list):
        value = {"choices": value}
    if not isinstance(value, dict):
        raise ConfigError(
            f"{path}: {name}: found {json.dumps(value)}; expected a range {{low: 1, high: 2}} or a list of choices. "
            f"A value that is always the same is an argument: {name}={value_text(value)}"
        )
    if "choices" in value:
        found = validate(Choices, value, name, path)
        if len(set(found.ends())) < len(found.choices):
            raise ConfigError(f"{path}: {name}: a choice stands there twice: {', '.join(found.ends())}")
        return found
    return _check(validate(Range, value, name, path), f"{path}: {name}")


def _check(found: Range, where: str) -> Range:
    """A range one can draw from, else an error that says why not."""
    if not found.low < found.high:
        raise ConfigError(f"{where}: found low {found.low:g} and high {found.high:g}; expected low below high")
    if found.log and found.low <= 0:
        raise ConfigError(f"{where}: found low {found.low:g} with log; expected one above 0")
    if found.log and found.step is not None:
        raise ConfigError(f"{where}: found log and step; expected one of them")
    if found.int and not _all_whole(found):
        raise ConfigError(f"{where}: int, but low, high or step is no whole number")
    return found


def _all_whole(found: Range) -> bool:
    return all(value is None or value.is_integer() for value in (found.low, found.high, found.step))
