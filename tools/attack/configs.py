"""Configs with a hostile value, a damaged source, or both."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import inputs
from tries import Ended, Try, command, scores_of
from warm import Warm, spen_run

from spen_plugins.config import shipped
from spen_plugins.config.evaluation import evaluate

TOTAL = 4_000


def make_try(warm: Warm, name: str, draw: random.Random) -> Try:
    """A config with a hostile value or a damaged source."""
    config = draw.choice(sorted(warm.arguments))
    change = draw.choice((_key, _key, _two_keys, _argument, _table, _text, _jsonnet, _yaml))
    return change(name, draw, warm, config, _evaluated(config, tuple(warm.arguments[config])))


@cache
def _evaluated(name: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    return evaluate(name, dict(word.split("=", 1) for word in arguments))


def _keys(value: Any, before: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield before + key
            yield from _keys(below, f"{before}{key}.")


def _check(values: list[str]) -> Any:
    def check(folder: Path, ended: Ended) -> str | None:
        if ended.status != 0:
            late = ended.status == 2 and (folder / "run").exists()
            return "refused after the run folder was made" if late else None
        if found := inputs.REFUSED.intersection(values):
            return f"{found.pop()} was taken"
        runs = list((folder / "run").glob("seed-*")) or [folder / "run"]
        return next((wrong for run in runs if (wrong := scores_of(run))), None)

    return check


def _key(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    """One key has a hostile value."""
    return _given(name, warm, config, [(draw.choice(list(_keys(evaluated))), draw.choice(inputs.HOSTILE))])


def _two_keys(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    keys = draw.sample(list(_keys(evaluated)), 2)
    return _given(name, warm, config, [(key, draw.choice(inputs.HOSTILE)) for key in keys])


def _argument(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    """An argument of the config, perhaps misspelt, has a hostile value."""
    names = "data validation test method energy features encoder seed seeds precision nothing"
    return _given(name, warm, config, [(draw.choice(names.split()), draw.choice(inputs.HOSTILE))])


def _given(name: str, warm: Warm, config: str, given: list[tuple[str, str]]) -> Try:
    words = [*warm.words(config), *(f"{key}={value}" for key, value in given)]
    said = [value for key, value in given if key not in ("data", "validation", "test")]
    return Try(name, lambda folder: command(spen_run, *words), _check(said))


def _table(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    """A table of the evaluated config is dropped, renamed, or has another's place."""
    table = json.loads(json.dumps(evaluated))
    keys = list(_keys(table))
    for _ in range(draw.randint(1, 3)):
        *path, last = draw.choice(keys).split(".")
        at: Any = table
        for key in path:
            at = at.get(key) if isinstance(at, dict) else None
        if not isinstance(at, dict) or last not in at:
            continue
        value = at.pop(last)
        if draw.random() < 0.6:
            at[draw.choice([last + "s", "type", last.upper(), "", "$", *evaluated])] = value
    return _written(name, ".json", json.dumps(table).encode())


def _text(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    return _written(name, ".json", inputs.damaged(json.dumps(evaluated, indent=1).encode(), draw))


def _yaml(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    import yaml

    return _written(name, ".yaml", inputs.damaged(yaml.safe_dump(evaluated).encode(), draw))


def _written(name: str, suffix: str, data: bytes) -> Try:
    def act(folder: Path) -> None:
        path = folder / f"config{suffix}"
        path.write_bytes(data)
        command(spen_run, str(path), "--out", "run", "--quiet", "--device", "cpu")

    return Try(name, act, _check([]))


def _jsonnet(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    """A file of the shipped configs is damaged."""

    def act(folder: Path) -> None:
        files = shipped.copy(config, folder / "configs")
        path = draw.choice([files[0], *files])
        path.write_bytes(inputs.damaged(path.read_bytes(), draw))
        command(spen_run, str(files[0]), *warm.words(config)[1:])

    return Try(name, act, _check([]))
