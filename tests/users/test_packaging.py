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
"""Words of each licence's text."""


def setup(folder: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(folder / "setup.cfg", encoding="utf-8")
    return parser


def listed(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def package(folder: Path) -> str:
    return "spen_plugins" if folder == ROOT else folder.name.replace("-", "_")


def pins() -> dict[str, Version]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    return {name: Version(version) for name, version in (line.split("==") for line in lines)}


def citation() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_versions_agree() -> None:
    """The plugins have the core's version, except pipelines, whose packages have one of their own."""
    version = spen_plugins.__version__
    assert setup(ROOT)["metadata"]["version"] == "attr: spen_plugins.__version__"
    assert metadata.version("spen-plugins") == version == citation()["version"]
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[0] == version
    for folder in PLUGINS:
        parser, name = setup(folder), package(folder)
        own, is_pipeline = parser["metadata"]["version"], (folder / name / "meta.json").exists()
        if is_pipeline:
            assert own == f"attr: {name}.__version__"
            meta = json.loads((folder / name / "meta.json").read_text(encoding="utf-8"))
            assert meta["version"] == import_module(name).__version__
            assert (folder / "README.md").read_text(encoding="utf-8").startswith(f"# {name} {meta['version']}\n")
        else:
            assert own == version, folder
        for requirement in map(Requirement, listed(parser["options"]["install_requires"])):
            if requirement.name.startswith("spen-"):
                assert requirement.specifier.contains(version, prereleases=True), f"{folder}: {requirement}"
                assert is_pipeline or str(requirement.specifier) == f">={version.rpartition('.')[0]}"


def test_extras_agree() -> None:
    """`all` has what users choose from, and messages name extras that there are."""
    extras = setup(ROOT)["options.extras_require"]
    requirements = [Requirement(line) for name in ("all", "encoders") for line in listed(extras[name])]
    whole = set().union(*(requirement.extras for requirement in requirements))
    assert extras.keys() - whole == {"all", "docs", "test"}
    for source in (*ROOT.glob("spen_plugins/**/*.py"), *ROOT.glob("plugins/*/spen_*/**/*.py")):
        for named in re.findall(r"spen-plugins\[(\w+)\]", source.read_text(encoding="utf-8")):
            assert named in extras, f"{source}: {named}"


def test_the_citation_is_valid_and_has_the_papers() -> None:
    """The keys that version 1.2.0 of the format requires, and the papers that docs/paper_methods.md describes."""
    cited = citation()
    assert cited["cff-version"] == "1.2.0" and {"message", "title", "authors"} <= cited.keys()
    for reference in cited["references"]:
        assert reference["type"] in ("article", "conference-paper", "unpublished") and reference["title"]
        assert isinstance(reference["year"], int) and reference["authors"]
        for author in reference["authors"]:
            assert author.keys() == {"family-names", "given-names"} or author.keys() == {"name"}
        assert "name" in reference.get("conference", {"name": ""})
        assert (reference["type"] == "conference-paper") == ("conference" in reference)
    titles = {reference["title"].casefold() for reference in cited["references"]}
    described = re.findall(r"^\*([^*]+)\* \(", (ROOT / "docs/paper_methods.md").read_text(encoding="utf-8"), re.M)
    assert len(described) == 5 and {title.casefold() for title in described} <= titles


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_each_distribution_is_complete(folder: Path) -> None:
    parser, name = setup(folder), package(folder)
    # A package with weights or a lexicon names their licences, too, and has the text of each.
    licences = parser["metadata"]["license"].split(" AND ")
    patterns = listed(parser["metadata"].get("license_files", "LICENSE"))
    texts = [path.read_text(encoding="utf-8") for pattern in patterns for path in folder.glob(pattern)]
    assert licences[0] == "Apache-2.0" and len(licences) == len(texts)
    assert all(any(LICENCES[licence] in text for text in texts) for licence in licences)
    assert parser["options"]["python_requires"] == ">=3.11"
    assert (folder / name / "py.typed").exists() and "py.typed" in listed(parser["options.package_data"][name])
    assert tomllib.loads((folder / "pyproject.toml").read_text())["build-system"]["build-backend"]
    if folder != ROOT:
        assert any(Requirement(r).name == "spen-plugins" for r in listed(parser["options"]["install_requires"]))
        points = parser["options.entry_points"]
        assert listed(points["spen_plugins"]) == [f"{name[5:]} = {name}"]
        assert points.keys() <= {"spen_plugins", "spacy_factories", "spacy_models"}  # the others are spaCy's


def test_spacy_finds_every_factory() -> None:
    points = setup(ROOT / "plugins/spen-spacy")["options.entry_points"]
    found = {point.name: point for point in metadata.entry_points(group="spacy_factories")}
    for line in listed(points["spacy_factories"]):
        name = line.partition(" = ")[0]
        assert found[name].load().__name__ == name


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_every_subpackage_is_packaged(folder: Path) -> None:
    for source in (folder / package(folder)).rglob("*.py"):
        assert (source.parent / "__init__.py").exists(), f"{source.parent} would be left out by packages = find:"


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_pins_lie_in_the_ranges(folder: Path) -> None:
    parser, pinned = setup(folder), pins()
    wanted = listed(parser["options"]["install_requires"])
    if folder == ROOT:
        wanted += [
            *listed(parser["options.extras_require"]["test"]),
            *listed(parser["options.extras_require"]["research"]),
        ]
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        if not name.startswith("spen-"):
            assert name in pinned, f"{name} is not pinned in constraints.txt"
            assert requirement.specifier.contains(pinned[name]), requirement


def test_torch_is_pinned_without_a_build() -> None:
    assert "\ntorch==2.13.0\n" in (ROOT / "constraints.txt").read_text()


def test_plugins_stand_in_the_contracts() -> None:
    """A new plugin is named wherever setup.cfg lists plugins, or no contract would hold for it."""
    parser, names = setup(ROOT), [package(folder) for folder in PLUGINS]
    assert sorted(listed(parser["importlinter"]["root_packages"])) == sorted(["spen_plugins", *names])
    assert sorted(listed(parser["importlinter:contract:plugins"]["forbidden_modules"])) == sorted(names)
    assert sorted(listed(parser["importlinter:contract:strangers"]["modules"])) == sorted(names)
    assert sorted(listed(parser["importlinter:contract:public"]["source_modules"])) == sorted(names)
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    assert sorted(ruff["lint"]["isort"]["known-first-party"]) == sorted(["spen_plugins", *names])


def test_every_module_of_the_core_has_its_place() -> None:
    parser = setup(ROOT)
    placed = set(re.findall(r"spen_plugins\.(\w+)", parser["importlinter:contract:core"]["layers"]))
    placed |= set(re.findall(r"spen_plugins\.(\w+)", parser["importlinter:contract:parts"]["source_modules"]))
    found = {
        path.stem
        for path in (ROOT / "spen_plugins").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert found - {"__init__"} == placed


def test_console_scripts_lead_to_functions() -> None:
    scripts = metadata.entry_points(group="console_scripts")
    for name in ("spen", "spen-run"):
        assert callable(scripts[name].load())
