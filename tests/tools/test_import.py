"""Every tool can be imported and has help: most are run only by hand, so moved code could break them unnoticed."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.loaded import ROOT

TOOLS = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "tools").rglob("*.py"))
    if path.parent.name != "attack"  # a program with its own tests
]
PROGRAMS = [name for name in TOOLS if "__main__" in (ROOT / name.replace(".", "/")).with_suffix(".py").read_text()]


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_can_be_imported(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = str(error.name)
        assert not missing.startswith(("tools", "spen_")), error
        pytest.skip(f"requires {missing}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tool_prints_its_help_and_nothing_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without data, and without packages that only this tool requires: the help says how to install them."""
    monkeypatch.delenv("SPEN_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit) as end:
        importlib.import_module(name).main()
    assert not end.value.code
    assert capsys.readouterr().out.startswith("usage: ")
    assert not any(tmp_path.iterdir())
