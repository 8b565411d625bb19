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
    change = draw.choice(
        (_set_key, _set_key, _set_two_keys, _set_argument, _change_table, _damage_json, _damage_jsonnet, _damage_yaml)
    )
    return change(name, draw, warm, config, _evaluate(config, tuple(warm.arguments[config])))


@cache
def _evaluate(name: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    return evaluate(name, dict(word.split("=", 1) for word in arguments))


def _iterate_keys(value: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield prefix + key
            yield from _iterate_keys(child, f"{prefix}{key}.")


def _make_check(values: list[str]) -> Any:
    def check(folder: Path, end: Ended) -> str | None:
        if end.status != 0:
            is_late = end.status == 2 and (folder / "run").exists()
            return "refused after the run folder was made" if is_late else None
        if invalid := inputs.REFUSED.intersection(values):
            return f"{invalid.pop()} was taken"
        runs = list((folder / "run").glob("seed-*")) or [folder / "run"]
        return next((fault for run in runs if (fault := scores_of(run))), None)

    return check


def _set_key(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    """Gives one key a hostile value."""
    return _try_values(name, warm, config, [(draw.choice(list(_iterate_keys(evaluated))), draw.choice(inputs.HOSTILE))])


def _set_two_keys(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    keys = draw.sample(list(_iterate_keys(evaluated)), 2)
    return _try_values(name, warm, config, [(key, draw.choice(inputs.HOSTILE)) for key in keys])


def _set_argument(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    """Gives an argument of the config, perhaps misspelt, a hostile value."""
    names = "data validation test method energy features encoder seed seeds precision nothing"
    return _try_values(name, warm, config, [(draw.choice(names.split()), draw.choice(inputs.HOSTILE))])


def _try_values(name: str, warm: Warm, config: str, assignments: list[tuple[str, str]]) -> Try:
    words = [*warm.words(config), *(f"{key}={value}" for key, value in assignments)]
    values = [value for key, value in assignments if key not in ("data", "validation", "test")]
    return Try(name, lambda folder: command(spen_run, *words), _make_check(values))


def _change_table(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    """Drops, renames or replaces one to three keys of the evaluated config."""
    table = json.loads(json.dumps(evaluated))
    keys = list(_iterate_keys(table))
    for _ in range(draw.randint(1, 3)):
        *path, last = draw.choice(keys).split(".")
        parent: Any = table
        for key in path:
            parent = parent.get(key) if isinstance(parent, dict) else None
        if not isinstance(parent, dict) or last not in parent:
            continue
        value = parent.pop(last)
        if draw.random() < 0.6:
            parent[draw.choice([last + "s", "type", last.upper(), "", "$", *evaluated])] = value
    return _try_file(name, ".json", json.dumps(table).encode())


def _damage_json(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    return _try_file(name, ".json", inputs.damaged(json.dumps(evaluated, indent=1).encode(), draw))


def _damage_yaml(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    import yaml

    return _try_file(name, ".yaml", inputs.damaged(yaml.safe_dump(evaluated).encode(), draw))


def _try_file(name: str, suffix: str, data: bytes) -> Try:
    def act(folder: Path) -> None:
        path = folder / f"config{suffix}"
        path.write_bytes(data)
        command(spen_run, str(path), "--out", "run", "--quiet", "--device", "cpu")

    return Try(name, act, _make_check([]))


def _damage_jsonnet(name: str, draw: random.Random, warm: Warm, config: str, evaluated: dict[str, Any]) -> Try:
    """Damages a file of the shipped config."""

    def act(folder: Path) -> None:
        files = shipped.copy(config, folder / "configs")
        path = draw.choice([files[0], *files])
        path.write_bytes(inputs.damaged(path.read_bytes(), draw))
        command(spen_run, str(files[0]), *warm.words(config)[1:])

    return Try(name, act, _make_check([]))
