"""Every tool can be imported: most are run only by hand, so moved code could break them unnoticed."""

from __future__ import annotations

import importlib

import pytest

from tests.loaded import ROOT

TOOLS = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "tools").rglob("*.py"))
    if path.parent.name != "attack"  # a program with its own tests
]


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_can_be_imported(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = str(error.name)
        assert not missing.startswith(("tools", "spen_")), error
        pytest.skip(f"requires {missing}")
