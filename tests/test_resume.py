"""A run that is killed, whenever, and resumed ends bit for bit where the run that was not killed ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

CONFIGS = Path(__file__).parent.parent / "configs"
SEAL = ("mlc_seal.jsonnet", "epochs=5", "hidden=[24]", "samples=4", "global_hidden=8", "seed=3")


def start(*arguments: str) -> subprocess.Popen[str]:
    code = "import sys; from spen_plugins.cli.run import main; sys.exit(main())"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment, **pipes)


def finish(process: subprocess.Popen[str], status: int = 0) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == status, out + err
    return out + err


def train(folder: Path, *more: str) -> subprocess.Popen[str]:
    return start(str(CONFIGS / SEAL[0]), *SEAL[1:], "--out", str(folder), "--checkpoint-every", "0", *more)


def wait_for(path: Path, lines: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and len(path.read_text().splitlines()) >= lines:
            return
        time.sleep(0.005)
    raise AssertionError(f"{path} never had {lines} lines: {process.communicate()}")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    finish(train(folder))
    return folder


def same_results(folder: Path, whole: Path) -> None:
    for name in ("weights.safetensors", "history.jsonl", "metrics.json", "vocabulary.json", "config.json"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name


def test_same_seed_same_result(whole: Path, tmp_path: Path) -> None:
    finish(train(tmp_path / "again"))
    same_results(tmp_path / "again", whole)


@pytest.mark.parametrize("epochs, pause", [(0, 0.0), (1, 0.05), (3, 0.2)])
def test_a_killed_run_resumes_exactly(whole: Path, tmp_path: Path, epochs: int, pause: float) -> None:
    folder = tmp_path / "killed"
    process = train(folder)
    marker = folder / ("history.jsonl" if epochs else "environment.json")
    wait_for(marker, max(epochs, 1), process)
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "metrics.json").exists()
    finish(start("--resume", str(folder)))
    same_results(folder, whole)


def test_a_run_killed_before_its_scores_gets_those_of_its_best_weights(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "unscored"
    shutil.copytree(whole, folder)
    (folder / "metrics.json").unlink()
    finish(start("--resume", str(folder)))
    same_results(folder, whole)


def test_ctrl_c_saves_says_how_to_go_on_and_resumes_exactly(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "interrupted"
    process = train(folder)
    wait_for(folder / "history.jsonl", 1, process)
    process.send_signal(signal.SIGINT)
    said = finish(process, 130)
    assert f"spen-run --resume {folder}" in " ".join(said.split())
    assert "Traceback" not in said
    finish(start("--resume", str(folder)))
    same_results(folder, whole)


def test_nothing_written_can_run_code(whole: Path) -> None:
    for path in whole.rglob("*"):
        if path.is_file() and path.suffix not in (".json", ".jsonl"):
            assert path.suffix == ".safetensors", path
            header = path.read_bytes()[8:9]
            assert header == b"{", f"{path} is not safetensors"


def test_the_environment_is_complete(whole: Path) -> None:
    environment = json.loads((whole / "environment.json").read_text())
    assert environment["format"] == 2 and environment["seed"] == 3
    assert environment["packages"]["torch"] and environment["plugins"]["seal"]
    metrics = json.loads((whole / "metrics.json").read_text())
    assert set(metrics) == {"validation", "test", "protocol"}
    assert 0 < metrics["test"]["example_f1"] <= 1


def test_a_used_folder_is_not_overwritten(whole: Path) -> None:
    before = (whole / "weights.safetensors").read_bytes()
    said = finish(train(whole), 2)
    assert "--resume" in said
    assert (whole / "weights.safetensors").read_bytes() == before


def test_a_run_that_is_done_says_so(whole: Path) -> None:
    assert "already done" in finish(start("--resume", str(whole)))


def test_a_damaged_checkpoint_is_said_and_nothing_is_lost(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    process = train(folder)
    wait_for(folder / "history.jsonl", 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    index = json.loads((folder / "checkpoint" / "state.json").read_text())
    whole_one = folder / "checkpoint" / index["tensors"]  # there may be a newer one that the index doesn't name yet
    whole_one.write_bytes(whole_one.read_bytes()[:100])
    said = finish(start("--resume", str(folder)), 1)
    assert "can't be read" in said and "Traceback" not in said
    assert (folder / "weights.safetensors").exists() and (folder / "history.jsonl").exists()


def test_two_processes_make_the_updates_of_one(tmp_path: Path) -> None:
    """Gradients are summed over processes; with dropout off the weights agree to rounding."""
    alike = (str(CONFIGS / SEAL[0]), "method=cross_entropy", "dropout=0", "epochs=1", "hidden=[24]")
    finish(start(*alike, "--out", str(tmp_path / "one")))
    code = "import sys; from spen_plugins.cli.run import main; sys.exit(main())"
    script = tmp_path / "run.py"
    script.write_text(code)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    line = [*launch, *alike, "--out", str(tmp_path / "two")]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 processes" in done.stdout
    one, two = (load_file(tmp_path / name / "weights.safetensors") for name in ("one", "two"))
    for name, value in one.items():
        torch.testing.assert_close(value, two[name], atol=1e-5, rtol=1e-4)
