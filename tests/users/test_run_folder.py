"""docs/run_folder.md has every file of a run folder, exit status and environment variable of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from spen_plugins.cli.common import INTERRUPTED, RUN_FILES
from spen_plugins.errors import SpenError
from spen_plugins.runs.folder import folder
from spen_plugins.runs.folder.kinds import KINDS
from tests.loaded import ROOT

PAGE = (ROOT / "docs/run_folder.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def texts(pattern: str, *folders: str) -> Iterator[str]:
    """The modules of these folders in which the pattern occurs."""
    for path in (path for name in folders for path in (ROOT / name).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "build" not in path.parts and re.search(pattern, text):
            yield text


def strings(text: str, pattern: str) -> set[str]:
    """String literals of a module that match as a whole."""
    values = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {value for value in values if isinstance(value, str) and re.fullmatch(pattern, value)}


def test_the_page_has_every_file() -> None:
    pattern = r"[\w-]+\.(json|jsonl|safetensors|csv|db)"
    names = {name for text in texts(pattern, "spen_plugins/runs") for name in strings(text, pattern)}
    listed = set(re.findall(r"^([\w./-]+?)/? {2,}", folder.__doc__ or "", re.M))
    assert {"weights.safetensors", "seeds.json", "study.db", "best.json"} <= names and "checkpoint" in listed
    cells = re.findall(r"^\| (`.*?) \|", PAGE, re.M)
    shown = {name.rstrip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert names | listed | {*RUN_FILES, *KINDS, folder.MEAN} <= shown


def test_the_page_has_every_exit_status() -> None:
    def kinds(cls: type) -> Iterator[type]:
        yield cls
        for child in cls.__subclasses__():
            yield from kinds(child)

    statuses = {0, INTERRUPTED, *(cls.exit_status for cls in kinds(SpenError) if cls.__module__.startswith("spen_"))}
    for text in texts(r"typer\.Exit\(", "spen_plugins", "plugins"):
        statuses |= {int(status) for status in re.findall(r"typer\.Exit\((?:code=)?(\d+)\)", text)}
    assert {int(status) for status in re.findall(r"^\| (\d+) \|", section("Exit statuses"), re.M)} == statuses


def test_the_page_has_every_environment_variable() -> None:
    """Names in capitals in the modules that use the environment."""
    pattern = r"[A-Z][A-Z_]{3,}"
    reading = texts(r"\bos\.(environ|getenv)\b", "spen_plugins", "plugins")
    names = {name for text in reading for name in strings(text, pattern)}
    shown = set(re.findall(rf"`({pattern})…?`", section("Environment variables")))
    assert "SPEN_DATA" in names and names <= shown
