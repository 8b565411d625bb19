"""Jsonnet configs: functions of a few arguments, or plain tables. rjsonnet evaluates them in its own process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spen_plugins.config import jsonnet_process, shipped
from spen_plugins.errors import ConfigError, did_you_mean

# The evaluator has no names of parameters and no comments, so the head of the source is read here.
_TOKENS = re.compile(r"""//[^\n]*|\#[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\w+|.""", re.DOTALL)


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

    Imports are searched next to the importing file, then among the configs of the core and of plugins. `text` is the
    file's content without a byte order mark, which the evaluator rejects.
    """
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    codes = {name: json.dumps(value) for name, value in values.items() if name not in texts}
    request = {
        "packages": [folder for folder in sys.path if folder],
        "filename": str(path),
        "src": text,
        "tla_vars": texts,
        "tla_codes": codes,
    }
    command = [sys.executable, "-I", "-S", "-X", "utf8", jsonnet_process.__file__]
    for list_folders in (lambda: [shipped.FOLDER], shipped.list_folders):  # finding plugins takes a third of the time
        request["jpathdir"] = [str(folder) for folder in (path.parent, *list_folders())]
        process = subprocess.run(command, input=json.dumps(request), capture_output=True, encoding="utf-8", check=False)
        if "can't resolve" not in process.stderr:
            break
    if process.returncode == jsonnet_process.REFUSED:
        raise _make_error(process.stderr.rstrip("\n"), path)
    if process.returncode:
        reason = process.stderr.strip().rpartition("\n")[2] or "it is nested too deeply"
        raise ConfigError(f"{path}: can't be evaluated: {reason}")
    return json.loads(process.stdout)


def parameters(text: str) -> list[Parameter]:
    """The parameters of the function that a source consists of, after its locals; empty for any other source."""
    tokens, locals_, depth = _TOKENS.finditer(text), 0, 0
    for match in tokens:
        token = match[0]
        if token.isspace() or token.startswith(("//", "#", "/*")):
            continue
        if token == "function" and not locals_ and not depth:
            return _scan_parameters(text, tokens)
        if token in ("local", "assert") and not depth:
            locals_ += 1
        elif token == ";" and not depth:
            locals_ -= 1
        elif not locals_ and not depth:
            return []
        depth += (token in "([{") - (token in ")]}")
    return []


def _scan_parameters(text: str, tokens: Iterator[re.Match[str]]) -> list[Parameter]:
    """The parameters of the next list in parentheses, each with the comment after it on its line."""
    parameters: list[Parameter] = []
    depth, code, doc = 0, "", ""
    for match in tokens:
        token = match[0]
        if token.startswith(("//", "#", "/*")):
            is_alone = not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
            if code.strip() and not is_alone and depth == 1:
                doc = token.strip("/*# \n")  # before the comma, or after the last one, which has none
            elif parameters and not is_alone and not code.strip():
                parameters[-1] = replace(parameters[-1], doc=token.strip("/*# \n"))
            continue
        if depth == 1 and token in (",", ")"):
            name, equals, default = (part.strip() for part in code.partition("="))
            parameters += [Parameter(name, default if equals else None, doc)] if name else []
            code, doc = "", ""
            if token == ")":
                break
        else:
            code += token if depth else ""
            depth += (token in "([{") - (token in ")]}")
    return parameters


def _make_error(text: str, path: Path) -> ConfigError:
    """The evaluator's message after its location; an error of a shipped library is a mistake of the calling config."""
    lines = text.split("\n")
    # The message is followed by an indented trace, innermost location first.
    end = next((i for i, line in enumerate(lines) if line.startswith("    ")), len(lines))
    message = "\n".join(lines[:end]).removeprefix("runtime error: ")
    if unknown_name := re.fullmatch(r'unknown \w+ "(\w+)"; known: ([\w, ]+)', message):
        suggestion = did_you_mean(unknown_name[1], unknown_name[2].split(", "))
        message += suggestion and f".{suggestion}"
    if missing_import := re.fullmatch(r"can't resolve (\S+) from .*", message):
        suggestion = did_you_mean(missing_import[1], [f"{name}.jsonnet" for name in shipped.names()])
        message += suggestion and f".{suggestion}"
    place = re.search(r"^ {4}(\S.*?):(\d+):\d+", text, re.MULTILINE)
    if place is None or shipped.is_library(Path(place[1]).resolve()):
        return ConfigError(f"{path}: {message}")
    file = Path(place[1])
    display_path = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return ConfigError(f"{display_path}:{place[2]}: {message}")
