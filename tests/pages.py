"""Functions for pages of the documentation: their blocks, their files and the commands that a reader types."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.loaded import ROOT, spen, spen_run


def blocks(page: str | Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)


def files(page: str | Path) -> dict[str, str]:
    """Returns the blocks after `<!-- file: NAME -->`, by name."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return dict(re.findall(r"^<!-- file: ([^>]+) -->\n```\w+\n(.*?)^```$", text, re.M | re.S))


def commands(page: str | Path) -> list[str]:
    """Returns the lines of console blocks that a reader types, in order."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def call(line: str, *arguments: str) -> str:
    """Calls a command in this process, with these arguments appended, and returns its output."""
    program, *words = shlex.split(line, comments=True)
    return {"spen": spen, "spen-run": spen_run}[program](*words, *arguments).output
