"""A short part of the attack (tools/attack), and tries of it that fail."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.loaded import ROOT

ATTACK = ROOT / "tools" / "attack"


def run_attack(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(ATTACK), *words, "--folder", str(folder), "--limit", "300"]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_part_of_the_attack_finds_nothing(tmp_path: Path) -> None:
    process = run_attack(tmp_path, "--share", "0.001")
    assert process.returncode == 0, process.stdout + process.stderr


def test_hostile_configs_are_rejected(tmp_path: Path) -> None:
    numbers = [word for number in (3, 5, 7, 11) for word in ("--number", str(number))]
    process = run_attack(tmp_path, "--only", "configs", *numbers)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "| 4 |" in process.stdout


def test_a_failure_is_found(tmp_path: Path) -> None:
    script = """
        import os, sys, time
        sys.path.insert(0, sys.argv[1])
        from pathlib import Path
        from tries import Try, run

        def act(how):
            def of(folder):
                if how == "raises": raise ValueError("nobody caught this")
                if how == "hangs": time.sleep(60)
                if how == "dies": os.kill(os.getpid(), 11)
                if how == "silent": raise SystemExit(2)
                if how == "refuses": print("error: found x; expected y"); raise SystemExit(2)
                if how == "fetches": __import__("socket").create_connection(("127.0.0.1", 9))
            return of

        def told(made, wrong): print(made.name, "|", wrong)
        hows = ["raises", "hangs", "dies", "silent", "refuses", "fetches", "works"]
        run([Try(how, act(how)) for how in hows], Path(sys.argv[2]), 1, told, limit=2)
    """
    line = [sys.executable, "-c", textwrap.dedent(script), str(ATTACK), str(tmp_path)]
    output = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    results = dict(row.split(" | ") for row in output.splitlines())
    assert results["raises"] == "traceback: ValueError: nobody caught this"
    assert results["hangs"] == "no end within the limit"
    assert results["dies"] == "ended by SIGSEGV"
    assert results["silent"] == "exit status 2 without an error message"
    assert results["refuses"] == results["works"] == "None"
    assert "network" in results["fetches"] or "traceback" in results["fetches"]


def test_a_command_that_loses_data_when_killed_is_found(tmp_path: Path) -> None:
    script = """
        import sys
        sys.path.insert(0, sys.argv[1])
        from pathlib import Path
        import operations
        from commands import Command
        from functools import partial
        from interrupted import Interrupted
        from tries import run

        def work(how):
            out, done = Path("run"), Path("run/metrics.json")
            if how == "fussy" and out.exists():
                print("error: run is there")
                raise SystemExit(2)
            if how == "tidy":
                for path in Path().glob("*.partial"):
                    path.unlink()
            out.mkdir(exist_ok=True)
            if how == "hasty" and done.exists():
                raise SystemExit(0)
            if how == "messy":
                Path("run/metrics.partial").write_text("")
            done.write_text("{")
            Path("run/history.jsonl").write_text("")
            done.write_text("{}")

        hows = ["sound", "fussy", "tidy", "hasty", "messy"]
        runs = Interrupted({how: Command(partial(work, how), ["on"]) for how in hows}, Path(sys.argv[2], "whole"))

        def told(made, wrong): print(made.name, "|", wrong)
        killed = partial(operations.watch, at=operations.killed_at(3))
        run([runs.interrupted(how, how, killed) for how in hows], Path(sys.argv[2], "tries"), 1, told)
    """
    line = [sys.executable, "-c", textwrap.dedent(script), str(ATTACK), str(tmp_path)]
    output = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    results = dict(row.split(" | ") for row in output.splitlines())
    assert results["sound"] == "None"
    assert results["fussy"].startswith("run/history.jsonl differs") and "error: run is there" in results["fussy"]
    assert results["tidy"] == "notes.partial of the user was changed or removed"
    assert results["hasty"].startswith("run/history.jsonl differs")
    assert results["messy"] == "unfinished files are left: ['metrics.partial']"
