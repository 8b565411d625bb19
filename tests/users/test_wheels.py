"""Wheels of the core and of all plugins, in an environment without a checkout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.loaded import ROOT, module_of
from tests.pages import files

wheels = module_of(ROOT / "tools/wheels.py")

CHECKOUT_ONLY = ("make", "pip")
"""Programs in the README that require a checkout: they make its .venv, or install its folders."""
AUDIT = """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith("spen_") and name != "spen_acme" and getattr(module, "__file__", None):
        assert module.__file__.startswith(sys.prefix), module.__file__
"""
"""Code that runs after the README's Python and checks that all our modules come from the wheels."""


class Environment:
    """A virtual environment with some of our wheels and the other packages of this one, and a working folder."""

    def __init__(self, folder: Path, built_wheels: Iterable[Path]) -> None:
        self.work, self.bin, self.place = folder / "work", folder / "env/bin", folder / "others"
        self.work.mkdir()
        self.place.mkdir()
        for name in ("purelib", "platlib"):
            for path in Path(sysconfig.get_path(name)).iterdir():
                link = self.place / path.name
                # Without our own packages: the metadata of packages that aren't installed would count as plugins.
                if not path.name.startswith(("spen_", "__editable__")) and not link.exists():
                    link.symlink_to(path)
        venv.create(folder / "env", symlinks=True)
        [site] = (folder / "env").glob("lib/python*/site-packages")
        (site / "others.pth").write_text(f"{self.place}\n")
        keep = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "LANG", "LC_ALL")
        self.variables = {name: os.environ[name] for name in keep if name in os.environ}
        self.variables |= {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(folder), "COLUMNS": "200"}
        self.install("--no-compile", *map(str, built_wheels))

    def install(self, *words: str) -> None:
        """Installs into this environment without dependencies and without the network."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--disable-pip-version-check"]
        self.run([*pip, "install", "--quiet", "--no-deps", "--no-index", *words])

    def run(self, words: list[str]) -> str:
        process = subprocess.run(words, cwd=self.work, env=self.variables, capture_output=True, text=True, check=False)
        assert process.returncode == 0, f"{shlex.join(words)}\n{process.stdout}\n{process.stderr}"
        return process.stdout + process.stderr

    def call(self, line: str, *arguments: str) -> str:
        """Returns the output of a command with these arguments appended."""
        program, *words = shlex.split(line, comments=True)
        return self.run([str(self.bin / program), *words, *arguments])


def check_content(folder: Path, wheel: Path) -> None:
    """Checks that a wheel has every file of its package, and the texts of its licences."""
    name = wheels.package(folder)
    sources = (
        Path(top) / file for top, _, file_names in os.walk(folder / name, followlinks=True) for file in file_names
    )
    expected = {str(path.relative_to(folder)) for path in sources if path.parent.name != "__pycache__"}
    metadata = wheels.metadata(wheel)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    texts = {file.partition("/licenses/")[2] for file in names if ".dist-info/licenses/" in file}
    assert {file for file in names if ".dist-info/" not in file} == expected
    assert texts == set(metadata.get_all("License-File")) and texts
    assert not re.search(r"\]\((?!https?:)", str(metadata.get_payload()))


@pytest.mark.slow
def test_the_readme_runs_from_wheels_alone(tmp_path: Path) -> None:
    """Runs its commands in order, each training for one epoch, then its Python; `examples` is the reader's."""
    built_wheels = wheels.build(tmp_path / "dist")
    for folder, wheel in zip(wheels.FOLDERS, built_wheels, strict=True):
        check_content(folder, wheel)
    environment = Environment(tmp_path, built_wheels)
    shutil.copytree(ROOT / "examples", environment.work / "examples")
    page_files = files("README.md")
    plugin = environment.work / "acme"
    plugin.mkdir()
    (plugin / "spen_acme.py").write_text(page_files["spen_acme.py"], encoding="utf-8")
    (plugin / "pyproject.toml").write_text(page_files["entry point"], encoding="utf-8")
    environment.install("--no-build-isolation", "--editable", str(plugin))

    programs, code = [], []
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(console|python)\n(.*?)^```$", text, re.M | re.S):
        if language == "python" and block not in page_files.values():
            code.append(block)
        for line in block.splitlines() if language == "console" else ():
            line = line.removeprefix("$ ")
            if not line.startswith(CHECKOUT_ONLY):
                options = ["trainer.epochs=1", "--device", "cpu"] if line.startswith("spen-run") else []
                environment.call(line, *options)
                programs.append(line.split()[0])
    assert programs == ["spen-run", "spen", "spen", "spen-run"] and len(code) == 3
    environment.run([str(environment.bin / "python"), "-c", "".join(code) + AUDIT])  # one process: imports take long


@pytest.mark.slow
def test_a_plugin_needs_no_other(tmp_path: Path) -> None:
    folders = [folder for folder in wheels.FOLDERS if folder == ROOT or folder.name == "spen-seal"]
    environment = Environment(tmp_path, wheels.build(tmp_path / "dist", folders))
    assert "from spen-seal" in environment.call("spen describe energy seal.labels")
    assert "trainer.energy_weight" in environment.call("spen-run --arguments texts")
    arguments = environment.call("spen-run --arguments tags")
    assert "method" in arguments and "pip install spen-infnet" in arguments
