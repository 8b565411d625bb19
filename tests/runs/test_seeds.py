"""`spen-run CONFIG seeds=0..4`: one run per seed, skipped if finished, resumed if interrupted."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from statistics import mean, stdev

import pytest

from spen_plugins import RunFolder
from spen_plugins.cli.run import parse_seeds
from spen_plugins.errors import ConfigError, Interrupted, RunError
from spen_plugins.files.lock import locked
from spen_plugins.runs.many import jobs as parallel
from spen_plugins.runs.many.plans import describe_difference
from spen_plugins.runs.train import runner
from tests.loaded import spen_run

pytestmark = pytest.mark.usefixtures("whole_samples")

SMALL = ["method=cross_entropy", "trainer.epochs=2", "trainer.epoch_updates=8", "features.hidden=[8]"]
SMALL += ["trainer.batch_size=128"]


def run(out: Path, *words: str, status: int = 0):
    return spen_run("labels", *SMALL, *words, "--out", out, "--device", "cpu", status=status)


@pytest.fixture(scope="module")
def two_seeds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The runs of seeds 0 and 1, and the output."""
    out = tmp_path_factory.mktemp("seeds") / "x"
    return out, run(out, "seeds=0..1").stdout


@pytest.fixture
def copied(two_seeds, tmp_path) -> Path:
    return Path(shutil.copytree(two_seeds[0], tmp_path / "x"))


@pytest.mark.parametrize(("text", "seeds"), [("0..4", [0, 1, 2, 3, 4]), ("3..3", [3]), ("0, 3,7", [0, 3, 7])])
def test_seeds_are_a_range_or_a_list(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["4..0", "", "a", "1,1", "1..", "-1..3", "0.5", "[0,1", "0,1]"])
def test_other_seeds_are_rejected(text):
    with pytest.raises(ConfigError, match=r"seeds=0\.\.4"):
        parse_seeds(text)


def test_one_run_per_seed_and_their_mean(two_seeds, tmp_path):
    out, output = two_seeds
    assert sorted(path.name for path in out.iterdir()) == ["seed-0", "seed-1", "seeds.json"]
    folder = tmp_path / "alone"
    run(folder, "seed=1")
    for name in ("config.json", "metrics.json", "history.jsonl", "examples.safetensors"):
        assert (out / "seed-1" / name).read_bytes() == (folder / name).read_bytes()
    scores = [RunFolder(out / f"seed-{i}").metrics()["test"]["example_f1"] for i in (0, 1)]
    assert f"{mean(scores):.4f} ± {stdev(scores) / 2**0.5:.4f}" in output


def test_definitions_of_scores_are_printed_once_for_all_seeds(two_seeds):
    assert two_seeds[1].count("example_f1: F1 of each example's label set") == 1
    assert two_seeds[1].count("stage train") == two_seeds[1].count("threshold: ") == 2


def test_the_folder_of_all_seeds_names_its_runs(two_seeds):
    with pytest.raises(ConfigError, match=r"the runs in it are \S+/x/seed-0, \S+/x/seed-1"):
        RunFolder.open(two_seeds[0])


def test_finished_seeds_are_skipped_and_interrupted_ones_resumed(copied, two_seeds, monkeypatch):
    (copied / "seed-1" / "metrics.json").unlink()
    calls = []
    for name in ("run", "resume"):
        real = getattr(runner, name)
        monkeypatch.setattr(runner, name, lambda *a, _n=name, _r=real: (calls.append(_n), _r(*a))[1])
    result = run(copied, "seeds=0,1,2")
    assert calls == ["resume", "run"]
    assert "already done: seed 0" in result.stdout and "3 seeds" in result.stdout and "also counts" not in result.stdout
    assert "note: also counts seed 1, 2, of an earlier command" in run(copied, "seeds=0").stdout
    metrics = "seed-1/metrics.json"
    assert (copied / metrics).read_bytes() == (two_seeds[0] / metrics).read_bytes()


def test_resume_runs_seeds_that_had_not_begun(copied, two_seeds):
    shutil.rmtree(copied / "seed-1")
    spen_run("--resume", copied, "--device", "cpu", "--quiet")
    assert (copied / "seed-1/metrics.json").read_bytes() == (two_seeds[0] / "seed-1/metrics.json").read_bytes()


def test_a_seed_killed_before_its_config_does_not_stop_those_after_it(copied, two_seeds):
    shutil.rmtree(copied / "seed-0")
    (copied / "seed-0").mkdir()
    for name in (".lock", "config.json.00000000-1-0123456789abcdef.partial"):
        (copied / "seed-0" / name).touch()
    shutil.rmtree(copied / "seed-1")
    run(copied, "seeds=0..1")
    for seed in ("seed-0", "seed-1"):
        assert (copied / seed / "metrics.json").read_bytes() == (two_seeds[0] / seed / "metrics.json").read_bytes()


def test_a_folder_of_seeds_killed_before_its_plan_is_free(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x/seeds.json.00000000-1-0123456789abcdef.partial").touch()
    run(tmp_path / "x", "seeds=0..0")


def test_a_folder_in_use_is_rejected(copied):
    plan = (copied / "seeds.json").read_bytes()
    with locked(copied):
        started = run(copied, "seeds=0..2", status=2)
        resumed = spen_run("--resume", copied, status=2)
    assert f"in use by process {os.getpid()}" in started.stderr and "in use by" in resumed.stderr
    assert (copied / "seeds.json").read_bytes() == plan


def test_another_config_is_an_error(copied):
    error = " ".join(run(copied, "seeds=0..4", "features.dropout=0.3", status=2).stderr.split())
    assert "holds seeds of another config" in error and "seed 0: features.dropout: 0.2, now 0.3)" in error
    assert not (copied / "seed-2").exists()


def test_the_first_difference_of_configs_has_both_values():
    old = {"seed": 0, "task": {"a": [1], "b": None}, "x": 1}
    assert describe_difference(old, {**old, "task": {"a": [1], "b": 2}, "x": 3}) == "task.b: null, now 2"
    assert describe_difference(old, {"seed": 0, "task": 5}) == 'task: {"a": [1], "b": null}, now 5'
    assert describe_difference(old, {**old, "y": {"z": 1}}) == 'y: none, now {"z": 1}'


def test_a_folder_of_other_things_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    assert "not empty" in run(tmp_path, "seeds=0..1", status=2).stderr


def test_a_wrong_config_leaves_no_folder(tmp_path):
    for words in (
        ["seeds=0..1", "hiden=3"],
        ["seeds=0..1", "trainer.net.lr=x"],
        ["seeds=0..1", "task.train=no"],
    ):
        run(tmp_path / "x", *words, status=2)
        assert not (tmp_path / "x").exists()


def test_seed_and_seeds_exclude_each_other_and_jobs_need_seeds(tmp_path):
    assert "found both seed= and seeds=" in run(tmp_path / "x", "seed=1", "seeds=0..1", status=2).stderr
    assert "seeds=0..4" in run(tmp_path / "x", "--jobs", "2", status=2).stderr


def test_a_config_may_have_seeds_of_its_own(tmp_path, monkeypatch):
    config = tmp_path / "own.jsonnet"
    config.write_text("function(seeds=2) { seed: seeds }")
    configs = []
    monkeypatch.setattr(runner, "run", lambda config, *_: configs.append(config) or tmp_path)
    spen_run(config, "seeds=7")
    assert configs == [{"seed": 7}]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_seed_that_fails_does_not_stop_the_others(copied, two_seeds, jobs):
    plan = json.loads((copied / "seeds.json").read_text())
    plan["configs"]["0"]["trainer"]["net"]["lr"] = 1e30  # soon not finite
    (copied / "seeds.json").write_text(json.dumps(plan))
    for seed in (0, 1):
        shutil.rmtree(copied / f"seed-{seed}")
    failed = spen_run("--resume", copied, "--device", "cpu", "--jobs", jobs, status=RunError.exit_status)
    assert "1 of 2 runs failed" in failed.stderr and "seed 0: " in failed.stderr
    assert (copied / "seed-1/metrics.json").read_bytes() == (two_seeds[0] / "seed-1/metrics.json").read_bytes()


def test_stopping_says_how_to_resume_all_seeds(copied, monkeypatch):
    def stop(*_):
        raise Interrupted("stopped")

    (copied / "seed-1/metrics.json").unlink()
    monkeypatch.setattr(runner, "resume", stop)
    result = spen_run("--resume", copied, status=130)
    assert f"spen-run --resume {copied}" in result.stderr.replace("\n", "")


@pytest.mark.parametrize("arguments", ["seeds=0,1", "methods=cross_entropy,nce seeds=0,1"])
def test_stopping_before_a_run_begins_names_no_folder_to_resume(arguments, tmp_path, monkeypatch):
    """Ctrl-C while the processes start: the folder goes, so there is nothing to resume."""

    def stop(*_):
        raise Interrupted("stopped")

    monkeypatch.setattr(parallel, "side_by_side", stop)
    result = spen_run("labels", *arguments.split(), "--jobs", 2, "--out", tmp_path / "x", status=130)
    assert "Run the same command again" in result.stderr
    assert "--resume" not in result.stderr and not (tmp_path / "x").exists()
