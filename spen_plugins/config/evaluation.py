"""Config files -> plain tables: jsonnet functions and their arguments, JSON, YAML, dotted overrides."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NoReturn

from spen_plugins.config import jsonnet, shipped
from spen_plugins.config.jsonnet import Parameter
from spen_plugins.errors import ConfigError, did_you_mean
from spen_plugins.files import no_file

TABLES = ("seed", "task", "features", "inference_net", "energy", "energy_loss", "trainer", "init", "precision")
"""The keys of an experiment, which an override may set even if the config omits them."""

FILES = ("task.train", "task.file")
"""Overrides that name the data a task learns from."""

SUFFIXES = (".jsonnet", ".json", ".yaml", ".yml")


def evaluate(path: str | Path | Mapping[str, Any], arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A config file with its arguments applied, or an evaluated config with the keys that they name.

    A name is an argument of the config's function, if it has one of that name; otherwise a key of the evaluated config,
    dotted below the top (`trainer.epochs`), which the value replaces or adds. A value that is valid JSON is parsed,
    any other is a string.

    A config that takes `data` and would use an embedded corpus is evaluated with `data=files` if an override names
    training files instead: its other defaults then suit a user's files, too.

    Raises a ConfigError if the function takes `seed`, but ignores it.
    """
    arguments = dict(arguments or {})
    if isinstance(path, Mapping):
        return _set_keys(deepcopy(dict(path)), Path("config"), arguments)
    path = find(path)
    try:
        return _evaluate_file(path, arguments)
    except RecursionError:
        raise ConfigError(f"{path}: can't be evaluated: it is nested too deeply") from None


def _evaluate_file(path: Path, arguments: dict[str, str]) -> dict[str, Any]:
    """A config file with its arguments applied."""
    text, names = _read_text(path), list[str]()
    if path.suffix == ".jsonnet":
        signature = jsonnet.parameters(text)
        names = [parameter.name for parameter in signature]
        values = {name: parse_value(arguments.pop(name)) for name in names if name in arguments}
        for parameter in signature:
            if parameter.default is None and (name := parameter.name) not in values:
                raise ConfigError(f"{path}: the argument {name!r} has no default; give {name}=… on the command line")
        config = jsonnet.evaluate(path, text, values)
        _check_seed_is_used(path, text, values, config)
        task = config.get("task") if isinstance(config, dict) else None
        has_corpus = isinstance(task, dict) and task.get("corpus") is not None
        has_files = any(parse_value(arguments.get(name, "null")) is not None for name in FILES)
        if "data" in names and "data" not in values and has_corpus and has_files:
            config = jsonnet.evaluate(path, text, {**values, "data": "files"})
    else:
        config = _read_json(path, text) if path.suffix == ".json" else _read_yaml(path, text)
    if not isinstance(config, dict):
        raise ConfigError(
            f"{path}: the config is {_describe_kind(config)}; expected a table with 'task', 'trainer' and so on"
        )
    return _set_keys(config, path, arguments, names)


def _check_seed_is_used(path: Path, text: str, values: Mapping[str, Any], config: Any) -> None:
    """Raise a ConfigError if a function ignores its argument `seed`: runs of several seeds would be equal."""
    seed = values.get("seed")
    if not isinstance(seed, int) or not isinstance(config, dict) or config.get("seed", 0) == seed:
        return
    try:
        others = [jsonnet.evaluate(path, text, {**values, "seed": seed + step}) for step in (1, 2)]
    except ConfigError:  # only an argument that is used can be invalid
        return
    if all(other == config for other in others):
        raise ConfigError(
            f"{path}: found seed={seed}, which the function ignores: its config has the seed "
            f"{config.get('seed', 0)}. Pass it on, as in labels(data=data, seed=seed) or {{ seed: seed }}"
        )


def _set_keys(
    config: dict[str, Any], path: Path, arguments: Mapping[str, str], names: Sequence[str] = ()
) -> dict[str, Any]:
    """The config with the keys that arguments name."""
    for name, text in arguments.items():
        _override(config, name, parse_value(text), path, names)
    return config


def parse_arguments(words: Iterable[str]) -> dict[str, str]:
    """`name=value` words of a command line."""
    arguments: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ConfigError(f"argument {word!r}: expected name=value, as in seed=7 or trainer.epochs=3")
        if name in arguments:
            raise ConfigError(f"argument {name!r} is given twice: {arguments[name]!r} and {value!r}")
        arguments[name] = value
    return arguments


def parse_value(text: str) -> Any:
    """A value of a command line: parsed if it is JSON, else the text itself."""
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except ValueError:
        return text


def parameters(path: str | Path) -> list[Parameter]:
    """The arguments of a jsonnet config, with defaults and comments; empty if it is no function."""
    path = find(path)
    return jsonnet.parameters(_read_text(path)) if path.suffix == ".jsonnet" else []


def find(path: str | Path) -> Path:
    """The config file for a user's path: their own, or a shipped config of that name."""
    file = shipped.find(Path(path))
    if not file.is_file():
        problem = f"is {no_file(file)}" if file.exists() else "does not exist"
        siblings = [str(p) for p in file.parent.glob("*") if p.suffix in SUFFIXES]
        suggestion = did_you_mean(str(path), [*siblings, *shipped.names()])
        if Path(path).stem in shipped.names():
            suggestion = f" {Path(path).stem!r} ships with the package: give that name alone"
        raise ConfigError(f"the config file {path} {problem}.{suggestion}")
    if file.suffix not in SUFFIXES:
        raise ConfigError(f"{path}: found suffix {file.suffix!r}; expected {', '.join(SUFFIXES)}")
    return file


# JSON and YAML


def _read_json(path: Path, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _check_unique(pairs, path))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error


def _read_yaml(path: Path, text: str) -> Any:
    import yaml

    from spen_plugins.settings.yaml_loader import Loader

    try:
        table = yaml.load(text, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line}: not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    return json.loads(json.dumps(table))  # a table with several names becomes several tables


def _check_unique(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ConfigError(f"{path}: the key {key!r} occurs twice in one table")
        table[key] = value
    return table


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error


# Overrides


def _override(config: dict[str, Any], name: str, value: Any, path: Path, parameters: Sequence[str]) -> None:
    """Set `name`, dotted, to `value`; missing tables on the way are created, because a config may omit defaults."""
    first, *rest = name.split(".")
    keys = list(dict.fromkeys([*config, *TABLES]))
    if first not in keys or not all((first, *rest)):
        suggestion = _suggest_below(config, name) or did_you_mean(name, parameters) or did_you_mean(first, keys)
        listing = f" Arguments: {', '.join(parameters)}." if parameters else ""
        raise ConfigError(
            f"{path}: unknown argument {name!r}.{suggestion}{listing} Keys of the config: {', '.join(keys)}; "
            "`spen-run --arguments` with this config lists the keys below them."
        )
    table: Any = config
    *inner_keys, last = (first, *rest)
    for depth, key in enumerate(inner_keys):
        key = _parse_index(table, key, name, path) if isinstance(table, list) else key
        if isinstance(table, dict) and table.get(key) is None:
            table[key] = {}
        table = table[key]
        if not isinstance(table, dict | list):
            prefix = ".".join(inner_keys[: depth + 1])
            raise ConfigError(f"{path}: {name!r} can't be set: {prefix!r} is {_describe_kind(table)}, not a table")
    table[_parse_index(table, last, name, path) if isinstance(table, list) else last] = value


def _suggest_below(config: Any, name: str) -> str:
    """' Did you mean 'trainer.epochs'?' if `name` is the last part of dotted keys of the config, else ''."""

    def find_paths(table: Any, prefix: str) -> Iterator[str]:
        for key, value in table.items() if isinstance(table, dict) else ():
            if key == name:
                yield prefix + key
            yield from find_paths(value, f"{prefix}{key}.")

    matches = [repr(path) for path in find_paths(config, "")]
    return f" Did you mean {' or '.join(matches)}?" if matches else ""


def _parse_index(values: list[Any], key: str, name: str, path: Path) -> int:
    if not key.isdigit() or int(key) >= len(values):
        raise ConfigError(f"{path}: {name!r} can't be set: {key!r} is not an index of a list of {len(values)}")
    return int(key)


def _describe_kind(value: Any) -> str:
    kinds = {dict: "a table", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
