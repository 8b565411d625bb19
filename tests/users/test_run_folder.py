"""docs/run_folder.md lists every file of a run folder, and every exit status and environment variable of the code."""

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


def find_section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def find_modules(pattern: str, *folders: str) -> Iterator[str]:
    """Yields the texts of the modules in these folders in which the pattern occurs."""
    for path in (path for name in folders for path in (ROOT / name).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "build" not in path.parts and re.search(pattern, text):
            yield text


def find_strings(text: str, pattern: str) -> set[str]:
    """Returns the string literals of a module that match completely."""
    values = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {value for value in values if isinstance(value, str) and re.fullmatch(pattern, value)}


def test_the_page_has_every_file() -> None:
    pattern = r"[\w-]+\.(json|jsonl|safetensors|csv|db)"
    names = {name for text in find_modules(pattern, "spen_plugins/runs") for name in find_strings(text, pattern)}
    documented = set(re.findall(r"^([\w./-]+?)/? {2,}", folder.__doc__ or "", re.M))
    assert {"weights.safetensors", "seeds.json", "study.db", "best.json"} <= names and "checkpoint" in documented
    cells = re.findall(r"^\| (`.*?) \|", PAGE, re.M)
    names_on_page = {name.rstrip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert names | documented | {*RUN_FILES, *KINDS, folder.MEAN} <= names_on_page


def test_the_page_has_every_exit_status() -> None:
    def subtypes(cls: type) -> Iterator[type]:
        yield cls
        for child in cls.__subclasses__():
            yield from subtypes(child)

    statuses = {0, INTERRUPTED, *(cls.exit_status for cls in subtypes(SpenError) if cls.__module__.startswith("spen_"))}
    for text in find_modules(r"typer\.Exit\(", "spen_plugins", "plugins"):
        statuses |= {int(status) for status in re.findall(r"typer\.Exit\((?:code=)?(\d+)\)", text)}
    assert {int(status) for status in re.findall(r"^\| (\d+) \|", find_section("Exit statuses"), re.M)} == statuses


def test_the_page_has_every_environment_variable() -> None:
    """Checks the uppercase names in the modules that use the environment."""
    pattern = r"[A-Z][A-Z_]{3,}"
    modules = find_modules(r"\bos\.(environ|getenv)\b", "spen_plugins", "plugins")
    names = {name for text in modules for name in find_strings(text, pattern)}
    documented = set(re.findall(rf"`({pattern})…?`", find_section("Environment variables")))
    assert "SPEN_DATA" in names and names <= documented
