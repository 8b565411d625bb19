"""The Makefile on machines that lack programs: in an empty folder, with stand-ins for Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.loaded import ROOT

PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("spen-*/setup.cfg"))
NEW_PYTHON = '#!/bin/sh\ncase $2 in *version_info*) exit 0;; esac\nmkdir -p .venv/bin && cp "$FAKE" .venv/bin/python\n'
OLD_PYTHON = "#!/bin/sh\nexit 1\n"
VENV = '#!/bin/sh\ncase "$*" in *pip*) echo "$@" >> pip.log;; *urllib*) exit 1;; esac\n'


class Machine:
    """A checkout with its own PATH."""

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


def test_make_without_a_python_reports_what_to_do(machine: Machine) -> None:
    machine.python("python3", OLD_PYTHON)
    result = machine.make("install")
    assert (
        result.returncode != 0 and "not a Python of at least 3.11" in result.stderr and "make PYTHON=" in result.stderr
    )
    assert not (machine.root / ".venv").exists()


def test_make_uses_the_first_python_that_is_new_enough(machine: Machine) -> None:
    machine.python("python3", OLD_PYTHON)
    machine.python("python3.12", NEW_PYTHON)
    result = machine.make("install")
    assert result.returncode == 0, result.stderr
    assert "with python3.12" in result.stdout


def test_make_uses_only_the_python_that_is_named(machine: Machine) -> None:
    machine.python("python3", NEW_PYTHON)
    machine.python("mine", OLD_PYTHON)
    result = machine.make("install", "PYTHON=mine")
    assert result.returncode != 0 and "mine is not a Python of at least 3.11" in result.stderr
    machine.python("mine", NEW_PYTHON)
    assert "with mine" in machine.make("install", "PYTHON=mine").stdout


def test_make_installs_all_in_one_call_and_once(machine: Machine) -> None:
    machine.python("python3", NEW_PYTHON)
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


def test_make_browser_finds_a_browser_installs_one_or_reports_how(machine: Machine) -> None:
    result = machine.make("browser")
    assert result.returncode != 0 and "sudo make browser" in result.stderr
    machine.script(machine.bin / "id", "#!/bin/sh\necho 0\n")
    machine.script(machine.bin / "apt-get", '#!/bin/sh\necho "apt-get $*"\n')
    result = machine.make("browser")
    assert result.returncode == 0 and "apt-get install -y --no-install-recommends chromium" in result.stdout
    machine.script(machine.bin / "chromium-browser", "#!/bin/sh\n")
    result = machine.make("browser")
    assert result.returncode == 0 and "there is one" in result.stdout and "apt-get" not in result.stdout


def test_ci_runs_make_test_and_its_slow_part() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK) and script.read_text().splitlines()[-2:] == ["make test", "make test-slow"]
