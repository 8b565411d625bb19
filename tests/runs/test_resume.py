"""A run that is killed at any time and resumed ends bit for bit like a run that was not killed."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from spen_plugins import RunFolder
from spen_plugins.cli.run import main
from spen_plugins.files.lock import locked
from spen_plugins.runs.folder.environment import read_git_state
from tests.loaded import ROOT

CONFIGS = ROOT / "configs"
SIZES = ("features.hidden=[24]", "energy.hidden=8", "energy_loss.samples=4")
SEAL = ("labels.jsonnet", *SIZES, "trainer.epochs=4", "trainer.net.lr=0.01", "trainer.batch_size=256", "seed=3")
SEAL += ("trainer.epoch_updates=12",)
BATCHES = 12
"""Batches per epoch; each has an update of the energy, one of the net, and then a checkpoint."""
FORK = multiprocessing.get_context("forkserver")
"""Processes with the imports of a run: one server imports them, the others are its forks."""
FORK.set_forkserver_preload(
    ["spen_plugins.runs.train.runner", "spen_plugins.cli.run", "torch._dynamo", "scipy.optimize"]
)


def command(words: list[str], log: Path, event: str, count: int, signal_number: int) -> None:
    """`spen-run` in a separate process, which sends itself a signal at an update or when a file is renamed."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell passes on that it is ignored
    countdown = itertools.count(count, -1)

    def count_down(*_: object) -> None:
        if next(countdown) == 1:
            os.kill(os.getpid(), signal_number)

    if event == "update":
        register_optimizer_step_pre_hook(count_down)
    elif event:
        replace = os.replace
        os.replace = lambda old, new: (count_down() if Path(new).match(event) else None, replace(old, new))[1]
    sys.argv = ["spen-run", *words]
    with log.open("w", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        main()


def call(
    log: Path, *words: str, event: str = "", count: int = 0, signal_number: int = signal.SIGKILL, status: int = 0
) -> str:
    """The messages of the command, after it ended with this status."""
    process = FORK.Process(target=command, args=(list(words), log, event, count, signal_number))
    process.start()
    process.join(600)
    out = log.read_text()
    assert process.exitcode == status, out
    return out


def train(folder: Path, *arguments: str, **options: Any) -> str:
    words = (str(CONFIGS / SEAL[0]), *SEAL[1:], "--out", str(folder), "--checkpoint-every", "0", *arguments)
    return call(folder.with_name(f"{folder.name}.said"), *words, **options)


def resume(folder: Path, **options: Any) -> str:
    return call(folder.with_name(f"{folder.name}.said"), "--resume", str(folder), **options)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    train(folder)
    return folder


def check_same_results(folder: Path, reference: Path) -> None:
    for name in ("weights.safetensors", "history.jsonl", "metrics.json", "vocabulary.json", "config.json"):
        assert (folder / name).read_bytes() == (reference / name).read_bytes(), name


@pytest.mark.parametrize(
    ("event", "count", "epochs"),
    [
        ("environment.json", 1, 0),
        ("update", 2 * BATCHES + 9, 1),
        ("state-*.json", 2 * BATCHES + 5, 2),  # the previous checkpoint still exists
        ("state-*.safetensors", 3 * BATCHES + 3, 3),
    ],
)
def test_a_killed_run_resumes_exactly(reference: Path, tmp_path: Path, event: str, count: int, epochs: int) -> None:
    folder = tmp_path / "killed"
    train(folder, event=event, count=count, status=-signal.SIGKILL)
    assert not (folder / "metrics.json").exists()
    history = folder / "history.jsonl"
    assert epochs == (len(history.read_text().splitlines()) if history.exists() else 0)
    assert (folder / ".lock").exists()  # a new run holds its folder until its process ends
    resume(folder)
    check_same_results(folder, reference)
    assert not (folder / ".lock").exists()


def test_a_folder_with_only_unfinished_files_is_free(reference: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    train(folder, event="config.json", count=1, status=-signal.SIGKILL)
    assert [path.suffix for path in sorted(folder.iterdir())] == ["", ".partial"]
    train(folder)
    check_same_results(folder, reference)
    assert not any(path.name == ".lock" or path.suffix == ".partial" for path in folder.rglob("*"))


def test_a_run_that_is_being_trained_is_not_resumed(reference: Path, tmp_path: Path) -> None:
    folder = tmp_path / "held"
    shutil.copytree(reference, folder)
    (folder / "metrics.json").unlink()
    with locked(folder):
        output = " ".join(resume(folder, status=2).split())
        new_output = " ".join(train(folder, status=2).split())
    assert f"in use by process {os.getpid()} on " in output and "Traceback" not in output
    assert f"in use by process {os.getpid()} on " in new_output and "not empty" not in new_output
    assert not (folder / "metrics.json").exists()


def test_a_run_killed_before_its_scores_gets_those_of_its_best_weights(reference: Path, tmp_path: Path) -> None:
    folder = tmp_path / "unscored"
    shutil.copytree(reference, folder)
    (folder / "metrics.json").unlink()
    resume(folder)
    check_same_results(folder, reference)


@pytest.mark.parametrize(
    ("event", "count", "place"), [("update", 2 * BATCHES + 5, ""), ("vocabulary.json", 2, "last evaluation")]
)
def test_ctrl_c_saves_the_run_and_says_how_to_resume_exactly(
    reference: Path, tmp_path: Path, event: str, count: int, place: str
) -> None:
    folder = tmp_path / "interrupted"
    output = train(folder, event=event, count=count, signal_number=signal.SIGINT, status=130)
    assert place in output and f"spen-run --resume {folder}" in " ".join(output.split())
    assert "Traceback" not in output
    resume(folder)
    check_same_results(folder, reference)


def test_nothing_written_can_run_code(reference: Path) -> None:
    for path in reference.rglob("*"):
        if path.is_file() and path.suffix not in (".json", ".jsonl"):
            assert path.suffix == ".safetensors", path
            header = path.read_bytes()[8:9]
            assert header == b"{", f"{path} is not safetensors"


def test_the_environment_is_complete(reference: Path) -> None:
    environment = json.loads((reference / "environment.json").read_text())
    assert environment["format"] == 3 and environment["seed"] == 3
    assert {"git_commit", "git_dirty"} <= environment.keys()
    assert environment["packages"]["torch"] and environment["plugins"]["seal"]
    metrics = json.loads((reference / "metrics.json").read_text())
    assert set(metrics) == {"validation", "test", "protocol"}
    assert 0 < metrics["test"]["example_f1"] <= 1


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_uncommitted_changes_are_recorded_beside_the_commit(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert read_git_state() == {"git_commit": None, "git_dirty": None}
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    (tmp_path / "x").write_text("1")
    for words in (("init", "-q"), ("add", "x"), (*identity, "commit", "-qm", "x")):
        subprocess.run(["git", *words], check=True)
    (tmp_path / "untracked").touch()
    state = read_git_state()
    assert len(state["git_commit"]) == 40 and state["git_dirty"] is False
    (tmp_path / "x").write_text("2")
    assert read_git_state() == state | {"git_dirty": True}


def test_a_used_folder_is_not_overwritten(reference: Path) -> None:
    weights = (reference / "weights.safetensors").read_bytes()
    output = train(reference, status=2)
    assert "is not empty" in output and "another --out" in output
    assert "weights.safetensors is a file; nothing" in " ".join(
        train(reference / "weights.safetensors", status=2).split()
    )
    assert (reference / "weights.safetensors").read_bytes() == weights


def test_a_finished_run_says_so(reference: Path) -> None:
    assert "already done" in resume(reference)


def test_a_damaged_checkpoint_is_reported_and_nothing_is_lost(reference: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    train(folder, event="update", count=4 * BATCHES + 1, status=-signal.SIGKILL)
    for path in (folder / "checkpoint").glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:100])
    output = resume(folder, status=1)
    assert "can't be read" in output and "Traceback" not in output
    assert (folder / "weights.safetensors").exists() and (folder / "history.jsonl").exists()


@pytest.mark.slow
def test_torchruns_two_processes_make_the_updates_of_one(tmp_path: Path) -> None:
    """Gradients are summed over processes; with dropout off the weights agree to rounding."""
    small = ("features.hidden=[24]", "features.dropout=0", "trainer.epochs=1")
    words = (str(CONFIGS / SEAL[0]), "method=cross_entropy", *small)
    call(tmp_path / "said", *words, "--out", str(tmp_path / "one"))
    code = "import sys; from spen_plugins.cli.run import main; sys.exit(main())"
    script = tmp_path / "run.py"
    script.write_text(code)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    line = [*launch, *words, "--out", str(tmp_path / "two")]
    result = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr
    assert "2 processes" in result.stdout
    one, two = (RunFolder(tmp_path / name).weights() for name in ("one", "two"))
    torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)
