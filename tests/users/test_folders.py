"""Tests stand where their subjects stand, and no folder outgrows a screen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.loaded import ROOT

USERS = {"tests/users", "tests/tools", "tests/testing/stranger"}
"""Tests of users' paths and of tools, and a plugin that tests install: no folder of code stands behind them."""
MOST = 20
"""Python files of a folder; of more than that, some are a family that has no name yet."""


def sources(folder: str) -> list[Path]:
    return [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py") if "build" not in path.parts]


def test_every_folder_of_tests_mirrors_one_of_code() -> None:
    packages = {path.name.removeprefix("spen_"): path for path in (ROOT / "plugins").glob("*/spen_*") if path.is_dir()}
    for folder in {path.parent for path in sources("tests")} - {Path("tests"), *map(Path, USERS)}:
        first, *rest = folder.parts[1:]
        code = packages.get(first, ROOT / "spen_plugins" / first).joinpath(*rest)
        assert (code / "__init__.py").is_file(), f"{folder} mirrors no folder of spen_plugins or of a plugin"


def test_no_folder_holds_more_than_a_family() -> None:
    found = Counter(path.parent for top in ("spen_plugins", "plugins", "tests", "tools") for path in sources(top))
    assert {str(folder): count for folder, count in found.items() if count > MOST} == {}
