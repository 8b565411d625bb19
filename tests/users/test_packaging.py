"""The installed package: metadata, pins, contracts on imports, the Makefile on machines that lack things."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import spen_plugins
from tests.loaded import ROOT

PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("spen-*/setup.cfg"))
DISTRIBUTIONS = [ROOT, *PLUGINS]


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


def test_versions_agree() -> None:
    assert metadata.version("spen-plugins") == spen_plugins.__version__
    assert f"version: {spen_plugins.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {spen_plugins.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)
def test_each_distribution_is_complete(folder: Path) -> None:
    parser, name = setup(folder), package(folder)
    # A package with weights names their data's licences, too.
    assert parser["metadata"]["license"].split(" AND ")[0] == "Apache-2.0"
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


# The Makefile, in a folder of its own with stand-ins for Python.

NEW = '#!/bin/sh\ncase $2 in *version_info*) exit 0;; esac\nmkdir -p .venv/bin && cp "$FAKE" .venv/bin/python\n'
OLD = "#!/bin/sh\nexit 1\n"
VENV = '#!/bin/sh\ncase "$*" in *pip*) echo "$@" >> pip.log;; *urllib*) exit 1;; esac\n'


class Machine:
    """A checkout with a PATH of our own."""

    def __init__(self, folder: Path) -> None:
        self.root, self.bin = folder / "checkout", folder / "bin"
        self.bin.mkdir()
        for name in ("Makefile", "setup.cfg", "pyproject.toml", "constraints.txt"):
            (self.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for plugin in PLUGINS:
            (self.root / "plugins" / plugin.name).mkdir(parents=True)
            for name in ("setup.cfg", "pyproject.toml"):
                shutil.copy(plugin / name, self.root / "plugins" / plugin.name / name)
        for tool in ("make", "sh", "mkdir", "cp", "rm", "touch", "uname", "test", "chmod"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.script(folder / "fake", VENV)
        self.environment = {"PATH": str(self.bin), "HOME": str(folder), "FAKE": str(folder / "fake")}

    def script(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def python(self, name: str, text: str) -> None:
        self.script(self.bin / name, text)

    def make(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / "make"), *words]
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)

    @property
    def pip_calls(self) -> list[str]:
        log = self.root / "pip.log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_make_without_a_python_says_what_to_do(machine: Machine) -> None:
    machine.python("python3", OLD)
    done = machine.make("install")
    assert done.returncode != 0 and "not a Python of at least 3.11" in done.stderr and "make PYTHON=" in done.stderr
    assert not (machine.root / ".venv").exists()


def test_make_takes_the_first_python_that_is_new_enough(machine: Machine) -> None:
    machine.python("python3", OLD)
    machine.python("python3.12", NEW)
    done = machine.make("install")
    assert done.returncode == 0, done.stderr
    assert "with python3.12" in done.stdout


def test_make_takes_the_python_it_is_given_and_no_other(machine: Machine) -> None:
    machine.python("python3", NEW)
    machine.python("mine", OLD)
    done = machine.make("install", "PYTHON=mine")
    assert done.returncode != 0 and "mine is not a Python of at least 3.11" in done.stderr
    machine.python("mine", NEW)
    assert "with mine" in machine.make("install", "PYTHON=mine").stdout


def test_make_installs_all_in_one_call_and_once(machine: Machine) -> None:
    machine.python("python3", NEW)
    assert machine.make("install").returncode == 0
    [call] = machine.pip_calls
    assert "--constraint constraints.txt" in call and "-e .[research,test]" in call
    assert all(f"-e ./plugins/{plugin.name}" in call for plugin in PLUGINS)
    assert machine.make("install", "PYTHON=another").returncode == 0
    assert machine.make(".venv/installed").returncode == 0
    assert len(machine.pip_calls) == 1
    os.utime(machine.root / "setup.cfg", (2**31, 2**31))
    machine.make("install")
    assert len(machine.pip_calls) == 2


def test_make_browser_takes_what_is_there_installs_it_or_says_how(machine: Machine) -> None:
    done = machine.make("browser")
    assert done.returncode != 0 and "sudo make browser" in done.stderr
    machine.script(machine.bin / "id", "#!/bin/sh\necho 0\n")
    machine.script(machine.bin / "apt-get", '#!/bin/sh\necho "apt-get $*"\n')
    done = machine.make("browser")
    assert done.returncode == 0 and "apt-get install -y --no-install-recommends chromium" in done.stdout
    machine.script(machine.bin / "chromium-browser", "#!/bin/sh\n")
    done = machine.make("browser")
    assert done.returncode == 0 and "there is one" in done.stdout and "apt-get" not in done.stdout


def test_what_ci_runs_is_make_test_and_its_slow_part() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK) and script.read_text().splitlines()[-2:] == ["make test", "make test-slow"]
