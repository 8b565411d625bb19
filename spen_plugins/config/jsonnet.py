"""Jsonnet configs: functions of a few arguments, or plain tables. rjsonnet evaluates them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spen_plugins.config.shipped import FOLDER, is_library
from spen_plugins.errors import ConfigError

# The evaluator has no names of parameters and no comments, so the head of the source is read here.
_TOKENS = re.compile(r"""//[^\n]*|\#[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\w+|.""", re.DOTALL)

_ASKED, _ITSELF = "//asked", "//config"
"""Names of the source that imports the config, and of the config in it."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a jsonnet config.

    Attributes:
        name: the argument's name.
        default: its source text; None if required.
        doc: the comment after it.
    """

    name: str
    default: str | None
    doc: str = ""


def evaluate(path: Path, text: str, values: Mapping[str, Any]) -> Any:
    """The value of a config, called with arguments if it is a function.

    Imports are searched beside the file that imports, then among the shipped configs.

    Args:
        path: the file.
        text: its content.
        values: arguments, JSON values by parameter name.

    Raises:
        ConfigError: a syntax error or an error the config raises, with file and line, or an import from elsewhere.
    """
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    codes = {name: json.dumps(value) for name, value in values.items() if name not in texts}
    return _asked(f"import {json.dumps(_ITSELF)}", path, text, tla_vars=texts, tla_codes=codes)


def parameters(path: Path, text: str) -> list[Parameter] | None:
    """The parameters of a config's function; [] for a table, None if they can't be read from the source.

    The evaluator tells if a config is a function and how many of its parameters have no default; their names, defaults
    and comments are read from the source, which may have only `local` and `assert` before the function.

    Raises:
        ConfigError: as `evaluate`.
    """
    code = f"local config = import {json.dumps(_ITSELF)}; if std.isFunction(config) then std.length(config)"
    required = _asked(code, path, text)
    if required is None:
        return []
    found = _written(text)
    return found if found and sum(p.default is None for p in found) == required else None


def _asked(code: str, path: Path, text: str, **arguments: Any) -> Any:
    """The value of an expression, in which the config is imported as `_ITSELF`."""
    import rjsonnet

    try:
        return json.loads(rjsonnet.evaluate_snippet(_ASKED, code, import_callback=_importer(path, text), **arguments))
    except RuntimeError as error:
        raise _error(error, path) from error


def _importer(path: Path, text: str) -> Callable[[str, str], tuple[str, str]]:
    """What rjsonnet asks for imports: the folder of the file that imports, and the name -> the file and its content.

    Files are below the config's folder, or ship with the package; links lead nowhere else.
    """
    below = path.parent.resolve()

    def found(folder: str, name: str) -> tuple[str, str]:
        if name == _ITSELF:
            return str(path), text
        place = next((place for place in (Path(folder, name), FOLDER / name) if place.is_file()), None)
        if place is None:
            raise ValueError(
                f"no file {name} to import, neither in {_near(Path(folder).resolve())} nor among those that ship"
            )
        if not any(place.resolve().is_relative_to(root) for root in (below, FOLDER)):
            wanted = f"one below the config's folder, {below}, or one that ships"
            raise ValueError(f"found an import of {place.resolve()}; expected {wanted}")
        try:
            return str(place), place.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{place}: not UTF-8 text ({error.reason} at byte {error.start})") from error

    return found


def _written(text: str) -> list[Parameter]:
    """The parameters of the function that a source consists of, after its locals; empty for any other source."""
    tokens, locals_, depth = _TOKENS.finditer(text), 0, 0
    for match in tokens:
        token = match[0]
        if token.isspace() or token.startswith(("//", "#", "/*")):
            continue
        if token == "function" and not locals_ and not depth:
            return _scan(text, tokens)
        if token in ("local", "assert") and not depth:
            locals_ += 1
        elif token == ";" and not depth:
            locals_ -= 1
        elif not locals_ and not depth:
            return []
        depth += (token in "([{") - (token in ")]}")
    return []


def _scan(text: str, tokens: Iterator[re.Match[str]]) -> list[Parameter]:
    """The parameters of the next list in parentheses, each with the comment after it on its line."""
    found: list[Parameter] = []
    depth, code, doc = 0, "", ""
    for match in tokens:
        token = match[0]
        if token.startswith(("//", "#", "/*")):
            alone = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
            if code.strip() and not alone and depth == 1:
                doc = token.strip("/*# \n")  # before the comma, or after the last one, which has none
            elif found and not alone and not code.strip():
                found[-1] = replace(found[-1], doc=token.strip("/*# \n"))
            continue
        if depth == 1 and token in (",", ")"):
            name, equals, default = (part.strip() for part in code.partition("="))
            found += [Parameter(name, default if equals else None, doc)] if name else []
            code, doc = "", ""
            if token == ")":
                break
        else:
            code += token if depth else ""
            depth += (token in "([{") - (token in ")]}")
    return found


def _error(error: RuntimeError, path: Path) -> ConfigError:
    """The evaluator's message after its location; what the shipped libraries refuse is a mistake of who calls them."""
    text = str(error)
    lines = text.split("\n")
    # The message is followed by an indented trace, innermost location first.
    cut = next((i for i, line in enumerate(lines) if line.startswith("    ")), len(lines))
    said = re.sub(r"^(runtime error|import_callback error: \w+): ", "", "\n".join(lines[:cut]))
    place = re.search(r"^ {4}(\S.*?):(\d+):\d+", text, re.MULTILINE)
    ours = place and (place[1] == _ASKED or is_library(Path(place[1]).resolve()))
    where = f"{_near(Path(place[1]))}:{place[2]}" if place and not ours else str(path)
    return ConfigError(f"{where}: {said}")


def _near(path: Path) -> str:
    """A path as a user would type it: relative to the working folder if below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
