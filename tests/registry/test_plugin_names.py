"""The core's Python code names no plugin's types, except in docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spen_plugins.registry import Registry
from spen_plugins.registry.kinds import KINDS
from tests.loaded import ROOT

CORE = ROOT / "spen_plugins"


def find_strings(path: Path) -> Iterator[str]:
    """Strings of a module except docstrings; an f-string's parts one by one."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.value


@pytest.fixture(scope="module")
def types() -> re.Pattern[str]:
    names = {name for kind in KINDS for name in Registry().names(kind)}
    foreign = sorted(name for name in names if "." in name and not name.startswith("core."))
    assert {"seal.nce", "infnet.joint", "implicit.bilevel"} <= set(foreign)
    return re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, foreign))})(?!\w)")


def test_no_string_names_a_plugins_type(types: re.Pattern[str]) -> None:
    for path in CORE.rglob("*.py"):
        assert not [name for text in find_strings(path) for name in types.findall(text)], path
