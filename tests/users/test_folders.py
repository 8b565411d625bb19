"""Folders of tests mirror folders of code, and no folder has too many files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.loaded import ROOT

USERS = {"tests/users", "tests/tools", "tests/testing/stranger"}
"""Tests of users' paths and of tools, and a plugin that tests install; they mirror no folder of code."""
MAX_FILES = 20
"""Maximum number of Python files in a folder; more should be grouped into a subfolder."""


def list_sources(folder: str) -> list[Path]:
    return [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py") if "build" not in path.parts]


def test_every_folder_of_tests_mirrors_one_of_code() -> None:
    packages = {path.name.removeprefix("spen_"): path for path in (ROOT / "plugins").glob("*/spen_*") if path.is_dir()}
    for folder in {path.parent for path in list_sources("tests")} - {Path("tests"), *map(Path, USERS)}:
        first, *rest = folder.parts[1:]
        code = packages.get(first, ROOT / "spen_plugins" / first).joinpath(*rest)
        assert (code / "__init__.py").is_file(), f"{folder} mirrors no folder of spen_plugins or of a plugin"


def test_no_folder_has_too_many_files() -> None:
    counts = Counter(path.parent for top in ("spen_plugins", "plugins", "tests", "tools") for path in list_sources(top))
    assert {str(folder): count for folder, count in counts.items() if count > MAX_FILES} == {}
