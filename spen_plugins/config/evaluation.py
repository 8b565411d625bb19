"""Config files -> plain tables: jsonnet functions and their arguments, JSON, YAML, dotted overrides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from spen_plugins.errors import ConfigError, did_you_mean

TABLES = ("seed", "task", "features", "inference_net", "energy", "energy_loss", "trainer", "init", "precision")
"""The keys of an experiment, which an override may name even where the config leaves them out."""

FILES = ("task.train", "task.file")
"""Overrides that name the data a task learns from."""

SUFFIXES = (".jsonnet", ".json", ".yaml", ".yml")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a jsonnet config.

    Attributes:
        name: of the argument.
        default: its source text, None where it must be given.
        doc: the comment behind it.
    """

    name: str
    default: str | None
    doc: str = ""


def evaluate(path: str | Path, arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A config file with its arguments applied.

    A name is an argument of the config's function if it has one of that name; else a key of the evaluated config,
    dotted below the top (`trainer.epochs`), which the value replaces or adds. A value that is JSON is taken as such,
    any other as a string.

    A config that takes `data` and would use an embedded corpus is evaluated with `data=files` where an override names
    files to train on instead: its other defaults are those for a user's files then, too.

    Args:
        path: a `.jsonnet`, `.json` or `.yaml` file.
        arguments: values by name.

    Raises:
        ConfigError: no such file, a syntax error (with file and line), an unknown name.
    """
    path = Path(path)
    arguments = dict(arguments or {})
    _find(path)
    known: list[str] | None = []
    if path.suffix == ".jsonnet":
        known = _signature(path)
        passed = {name: arguments.pop(name) for name in list(arguments) if known is None or name in known}
        config = _evaluate_jsonnet(path, passed)
        if "data" in (known or []) and "data" not in passed and _has_corpus(config) and _names_files(arguments):
            config = _evaluate_jsonnet(path, {**passed, "data": "files"})
    else:
        config = _read_json(path) if path.suffix == ".json" else _read_yaml(path)
    if not isinstance(config, dict):
        raise ConfigError(f"{path}: the config is {_kind(config)}; expected a table with 'task', 'trainer' and so on")
    for name, text in arguments.items():
        _override(config, name, parse_value(text), path, known or [])
    return config


def parse_arguments(words: Iterable[str]) -> dict[str, str]:
    """`name=value` words of a command line.

    Raises:
        ConfigError: a word without `=`, or a name given twice.
    """
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
    """A value of a command line: JSON where it is, else the text itself."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text


def parameters(path: str | Path) -> list[Parameter]:
    """What a jsonnet config takes, with defaults and comments; empty where the config is no function."""
    path = Path(path)
    _find(path)
    names = _signature(path) if path.suffix == ".jsonnet" else []
    written = _written_parameters(path, names) if names else {}
    return [written.get(name, Parameter(name, "?")) for name in names or []]


# Jsonnet


def _evaluate_jsonnet(path: Path, passed: Mapping[str, str]) -> Any:
    import rjsonnet

    codes, texts = {}, {}
    for name, text in passed.items():
        value = parse_value(text)
        if isinstance(value, str):
            texts[name] = value
        else:
            codes[name] = json.dumps(value)
    try:
        return json.loads(rjsonnet.evaluate_file(str(path), tla_vars=texts, tla_codes=codes))
    except RuntimeError as error:
        raise _jsonnet_error(error, path) from error


def _signature(path: Path) -> list[str] | None:
    """Names of a config's parameters; [] where it is no function, None where the evaluator doesn't say."""
    import rjsonnet

    imported = f"local config = import {json.dumps(str(path.resolve()))}; "
    try:
        if json.loads(rjsonnet.evaluate_snippet("signature", imported + "std.type(config)")) != "function":
            return []
        # The evaluator names the parameters of a function that is called with too many.
        rjsonnet.evaluate_snippet("signature", f"{imported}config({', '.join(['null'] * 256)})")
    except RuntimeError as error:
        if "too many args" not in str(error):
            raise _jsonnet_error(error, path) from error
        found = re.search(r"signature: \((.*)\)$", str(error), re.MULTILINE)
        return re.findall(r"(\w+)(?: = <default>)?(?:, |$)", found[1]) if found else None
    return None


def _jsonnet_error(error: RuntimeError, path: Path) -> ConfigError:
    """The evaluator's message with the place in front."""
    text = str(error)
    lines = text.split("\n")
    # What follows the message is a trace, indented, innermost place first.
    cut = next((i for i, line in enumerate(lines) if line.startswith("    ")), len(lines))
    said = "\n".join(lines[:cut]).removeprefix("runtime error: ")
    missing = re.match(r"function argument is not passed: (\w+)", said)
    if missing:
        return ConfigError(
            f"{path}: the argument '{missing[1]}' has no default; give {missing[1]}=… on the command line"
        )
    place = re.search(r"^ {4}(\S.*?):(\d+):\d+", text, re.MULTILINE)
    where = f"{_near(Path(place[1]))}:{place[2]}" if place else str(path)
    return ConfigError(f"{where}: {said}")


def _written_parameters(path: Path, names: list[str]) -> dict[str, Parameter]:
    """Defaults and comments as they stand in the source: for people to read, so guessing is allowed."""
    text = path.read_text(encoding="utf-8")
    for start in re.finditer(r"\bfunction\s*\(", text):
        found = _scan(text, start.end())
        if list(found) == names:
            return found
    return {}


def _scan(text: str, position: int) -> dict[str, Parameter]:
    """Parameters from behind an opening bracket to its closing one."""
    tokens = re.compile(r"""//[^\n]*|\#[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|.""", re.DOTALL)
    found: dict[str, Parameter] = {}
    depth, code = 0, ""

    def finish() -> None:
        nonlocal code
        name, equals, default = (part.strip() for part in code.partition("="))
        if name:
            found[name] = Parameter(name, default if equals else None)
        code = ""

    for match in tokens.finditer(text, position):
        token = match[0]
        if token.startswith(("//", "#", "/*")):
            # A comment belongs to the parameter before it on its line, be it finished by a comma or not.
            alone = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
            if not code.strip() and found and not alone:
                last = list(found)[-1]
                found[last] = Parameter(last, found[last].default, token.strip("/*# \n"))
            continue
        if depth == 0 and token in (",", ")"):
            finish()
            if token == ")":
                break
            continue
        depth += (token in "([{") - (token in ")]}")
        code += token
    return found


# JSON and YAML


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_text(path), object_pairs_hook=lambda pairs: _unique(pairs, path))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error


def _read_yaml(path: Path) -> Any:
    import yaml

    from spen_plugins.config.yaml_loader import Loader

    try:
        return yaml.load(_text(path), Loader=Loader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line}: not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error


def _unique(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ConfigError(f"{path}: the key {key!r} stands twice in one table")
        table[key] = value
    return table


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error


def _find(path: Path) -> None:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        siblings = [str(p) for p in path.parent.glob("*") if p.suffix in SUFFIXES] if path.parent.is_dir() else []
        raise ConfigError(f"the config file {path} {what}.{did_you_mean(str(path), siblings)}")
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"{path}: a config ends in {', '.join(SUFFIXES)}, not {path.suffix!r}")


# Overrides


def _has_corpus(config: Any) -> bool:
    task = config.get("task") if isinstance(config, dict) else None
    return isinstance(task, dict) and task.get("corpus") is not None


def _names_files(arguments: Mapping[str, str]) -> bool:
    return any(parse_value(arguments[name]) is not None for name in FILES if name in arguments)


def _override(config: dict[str, Any], name: str, value: Any, path: Path, parameters: list[str]) -> None:
    """Set `name`, dotted, to `value`; tables between are made, because a config may leave defaults out."""
    first, *rest = name.split(".")
    keys = list(dict.fromkeys([*config, *TABLES]))
    if first not in keys or not all((first, *rest)):
        near = did_you_mean(name, parameters) or did_you_mean(first, keys)
        listing = f" Arguments: {', '.join(parameters)}." if parameters else ""
        raise ConfigError(f"{path}: unknown argument {name!r}.{near}{listing} Keys of the config: {', '.join(keys)}.")
    place: Any = config
    *between, last = (first, *rest)
    for depth, key in enumerate(between):
        key = _index(place, key, name, path) if isinstance(place, list) else key
        if isinstance(place, dict) and place.get(key) is None:
            place[key] = {}
        place = place[key]
        if not isinstance(place, dict | list):
            walked = ".".join(between[: depth + 1])
            raise ConfigError(f"{path}: {name!r} can't be set: {walked!r} is {_kind(place)}, not a table")
    place[_index(place, last, name, path) if isinstance(place, list) else last] = value


def _index(values: list[Any], key: str, name: str, path: Path) -> int:
    if not key.isdigit() or int(key) >= len(values):
        raise ConfigError(f"{path}: {name!r} can't be set: {key!r} is no place in a list of {len(values)}")
    return int(key)


def _kind(value: Any) -> str:
    kinds = {dict: "a table", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def _near(path: Path) -> str:
    """A path as a user would type it: from the working folder where it is below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
