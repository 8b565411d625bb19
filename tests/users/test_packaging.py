"""The installed packages: versions, metadata, licences, pins, the citation, contracts on imports."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import spen_plugins
from tests.loaded import ROOT

PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("spen-*/setup.cfg"))
DISTRIBUTIONS = [ROOT, *PLUGINS]


LICENCES = {
    "Apache-2.0": "Version 2.0, January 2004",
    "CC-BY-4.0": "Creative Commons Attribution 4.0 International",
    "CC-BY-SA-4.0": "Attribution-ShareAlike 4.0 International",
    "LicenseRef-WordNet-3.0": "WordNet Release 3.0",
}
"""A phrase of each licence's text."""


def read_setup(folder: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(folder / "setup.cfg", encoding="utf-8")
    return parser


def split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def get_package(folder: Path) -> str:
    return "spen_plugins" if folder == ROOT else folder.name.replace("-", "_")


def read_pins() -> dict[str, Version]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    return {name: Version(version) for name, version in (line.split("==") for line in lines)}


def read_citation() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_versions_agree() -> None:
    """Plugins have the core's version; packages of pipelines have their own."""
    version = spen_plugins.__version__
    assert read_setup(ROOT)["metadata"]["version"] == "attr: spen_plugins.__version__"
    assert metadata.version("spen-plugins") == version == read_citation()["version"]
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[0] == version
    for folder in PLUGINS:
        parser, name = read_setup(folder), get_package(folder)
        stated, is_pipeline = parser["metadata"]["version"], (folder / name / "meta.json").exists()
        if is_pipeline:
            assert stated == f"attr: {name}.__version__"
            meta = json.loads((folder / name / "meta.json").read_text(encoding="utf-8"))
            assert meta["version"] == import_module(name).__version__
            assert (folder / "README.md").read_text(encoding="utf-8").startswith(f"# {name} {meta['version']}\n")
        else:
            assert stated == version, folder
        for requirement in map(Requirement, split_lines(parser["options"]["install_requires"])):
            if requirement.name.startswith("spen-"):
                assert requirement.specifier.contains(version, prereleases=True), f"{folder}: {requirement}"
                assert is_pipeline or str(requirement.specifier) == f">={version.rpartition('.')[0]}"


def test_extras_agree() -> None:
    """`all` includes every extra for users, and messages name existing extras."""
    extras = read_setup(ROOT)["options.extras_require"]
    requirements = [Requirement(line) for name in ("all", "encoders") for line in split_lines(extras[name])]
    included = set().union(*(requirement.extras for requirement in requirements))
    assert extras.keys() - included == {"all", "docs", "test"}
    for source in (*ROOT.glob("spen_plugins/**/*.py"), *ROOT.glob("plugins/*/spen_*/**/*.py")):
        for extra in re.findall(r"spen-plugins\[(\w+)\]", source.read_text(encoding="utf-8")):
            assert extra in extras, f"{source}: {extra}"


def test_the_citation_is_valid_and_has_the_papers() -> None:
    """It has the keys required by version 1.2.0 of the format, and the papers in docs/paper_methods.md."""
    citation = read_citation()
    assert citation["cff-version"] == "1.2.0" and {"message", "title", "authors"} <= citation.keys()
    for reference in citation["references"]:
        assert reference["type"] in ("article", "conference-paper", "unpublished") and reference["title"]
        assert isinstance(reference["year"], int) and reference["authors"]
        for author in reference["authors"]:
            assert author.keys() == {"family-names", "given-names"} or author.keys() == {"name"}
        assert "name" in reference.get("conference", {"name": ""})
        assert (reference["type"] == "conference-paper") == ("conference" in reference)
    titles = {reference["title"].casefold() for reference in citation["references"]}
    paper_titles = re.findall(r"^\*([^*]+)\* \(", (ROOT / "docs/paper_methods.md").read_text(encoding="utf-8"), re.M)
    assert len(paper_titles) == 5 and {title.casefold() for title in paper_titles} <= titles


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_each_distribution_is_complete(folder: Path) -> None:
    parser, name = read_setup(folder), get_package(folder)
    # A package with weights or a lexicon also names their licences, and has the text of each.
    licences = parser["metadata"]["license"].split(" AND ")
    patterns = split_lines(parser["metadata"].get("license_files", "LICENSE"))
    texts = [path.read_text(encoding="utf-8") for pattern in patterns for path in folder.glob(pattern)]
    assert licences[0] == "Apache-2.0" and len(licences) == len(texts)
    assert all(any(LICENCES[licence] in text for text in texts) for licence in licences)
    assert parser["options"]["python_requires"] == ">=3.11"
    assert (folder / name / "py.typed").exists() and "py.typed" in split_lines(parser["options.package_data"][name])
    assert tomllib.loads((folder / "pyproject.toml").read_text())["build-system"]["build-backend"]
    if folder != ROOT:
        assert any(Requirement(r).name == "spen-plugins" for r in split_lines(parser["options"]["install_requires"]))
        points = parser["options.entry_points"]
        assert split_lines(points["spen_plugins"]) == [f"{name[5:]} = {name}"]
        assert points.keys() <= {"spen_plugins", "spacy_factories", "spacy_models"}  # the other two are spaCy's


def test_spacy_finds_every_factory() -> None:
    points = read_setup(ROOT / "plugins/spen-spacy")["options.entry_points"]
    factories = {point.name: point for point in metadata.entry_points(group="spacy_factories")}
    for line in split_lines(points["spacy_factories"]):
        name = line.partition(" = ")[0]
        assert factories[name].load().__name__ == name


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_every_subpackage_is_packaged(folder: Path) -> None:
    for source in (folder / get_package(folder)).rglob("*.py"):
        assert (source.parent / "__init__.py").exists(), f"{source.parent} would be left out by packages = find:"


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_pins_are_in_the_allowed_ranges(folder: Path) -> None:
    parser, versions = read_setup(folder), read_pins()
    lines = split_lines(parser["options"]["install_requires"])
    if folder == ROOT:
        lines += [
            *split_lines(parser["options.extras_require"]["test"]),
            *split_lines(parser["options.extras_require"]["research"]),
        ]
    for requirement in map(Requirement, lines):
        name = canonicalize_name(requirement.name)
        if not name.startswith("spen-"):
            assert name in versions, f"{name} is not pinned in constraints.txt"
            assert requirement.specifier.contains(versions[name]), requirement


def test_torch_is_pinned_without_a_build() -> None:
    assert "\ntorch==2.13.0\n" in (ROOT / "constraints.txt").read_text()


def test_plugins_are_listed_in_the_contracts() -> None:
    """A new plugin is named wherever setup.cfg lists plugins; otherwise no contract would apply to it."""
    parser, names = read_setup(ROOT), [get_package(folder) for folder in PLUGINS]
    assert sorted(split_lines(parser["importlinter"]["root_packages"])) == sorted(["spen_plugins", *names])
    assert sorted(split_lines(parser["importlinter:contract:plugins"]["forbidden_modules"])) == sorted(names)
    assert sorted(split_lines(parser["importlinter:contract:strangers"]["modules"])) == sorted(names)
    assert sorted(split_lines(parser["importlinter:contract:public"]["source_modules"])) == sorted(names)
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    assert sorted(ruff["lint"]["isort"]["known-first-party"]) == sorted(["spen_plugins", *names])


def test_every_module_of_the_core_is_in_a_contract() -> None:
    parser = read_setup(ROOT)
    listed_modules = set(re.findall(r"spen_plugins\.(\w+)", parser["importlinter:contract:core"]["layers"]))
    listed_modules |= set(re.findall(r"spen_plugins\.(\w+)", parser["importlinter:contract:parts"]["source_modules"]))
    modules = {
        path.stem
        for path in (ROOT / "spen_plugins").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert modules - {"__init__"} == listed_modules


def test_console_scripts_lead_to_functions() -> None:
    scripts = metadata.entry_points(group="console_scripts")
    for name in ("spen", "spen-run"):
        assert callable(scripts[name].load())
