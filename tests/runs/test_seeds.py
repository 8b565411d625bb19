"""`spen-run CONFIG seeds=0..4`: a run for each seed, skipped where done, resumed where cut short."""

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
from spen_plugins.runs.train import runner
from tests.loaded import spen_run

pytestmark = pytest.mark.usefixtures("whole_samples")

SMALL = ["method=cross_entropy", "trainer.epochs=2", "trainer.epoch_updates=8", "features.hidden=[8]"]
SMALL += ["trainer.batch_size=128"]


def run(out: Path, *words: str, status: int = 0):
    return spen_run("labels", *SMALL, *words, "--out", out, "--device", "cpu", status=status)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Seeds 0 and 1, and what was said."""
    out = tmp_path_factory.mktemp("seeds") / "x"
    return out, run(out, "seeds=0..1").stdout


@pytest.fixture
def copied(two, tmp_path) -> Path:
    return Path(shutil.copytree(two[0], tmp_path / "x"))


@pytest.mark.parametrize(("text", "seeds"), [("0..4", [0, 1, 2, 3, 4]), ("3..3", [3]), ("0, 3,7", [0, 3, 7])])
def test_seeds_are_a_range_or_a_list(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["4..0", "", "a", "1,1", "1..", "-1..3", "0.5", "[0,1", "0,1]"])
def test_other_seeds_are_refused(text):
    with pytest.raises(ConfigError, match=r"seeds=0\.\.4"):
        parse_seeds(text)


def test_a_run_a_seed_and_their_mean(two, tmp_path):
    out, said = two
    assert sorted(path.name for path in out.iterdir()) == ["seed-0", "seed-1", "seeds.json"]
    alone = tmp_path / "alone"
    run(alone, "seed=1")
    for name in ("config.json", "metrics.json", "history.jsonl", "examples.safetensors"):
        assert (out / "seed-1" / name).read_bytes() == (alone / name).read_bytes()
    found = [RunFolder(out / f"seed-{i}").metrics()["test"]["example_f1"] for i in (0, 1)]
    assert f"{mean(found):.4f} ± {stdev(found) / 2**0.5:.4f}" in said


def test_definitions_of_scores_are_said_once_for_all_seeds(two):
    assert two[1].count("example_f1: F1 of each example's label set") == 1
    assert two[1].count("stage train") == two[1].count("threshold: ") == 2


def test_the_folder_of_all_seeds_names_its_runs(two):
    with pytest.raises(ConfigError, match=r"the runs in it are \S+/x/seed-0, \S+/x/seed-1"):
        RunFolder.open(two[0])


def test_what_is_done_is_skipped_and_what_was_cut_short_resumed(copied, two, monkeypatch):
    (copied / "seed-1" / "metrics.json").unlink()
    calls = []
    for name in ("run", "resume"):
        real = getattr(runner, name)
        monkeypatch.setattr(runner, name, lambda *a, _n=name, _r=real: (calls.append(_n), _r(*a))[1])
    done = run(copied, "seeds=0,1,2")
    assert calls == ["resume", "run"]
    assert "already done: seed 0" in done.stdout and "3 seeds" in done.stdout and "also counts" not in done.stdout
    assert "note: also counts seed 1, 2, of an earlier command" in run(copied, "seeds=0").stdout
    metrics = "seed-1/metrics.json"
    assert (copied / metrics).read_bytes() == (two[0] / metrics).read_bytes()


def test_resume_goes_on_with_seeds_that_had_not_begun(copied, two):
    shutil.rmtree(copied / "seed-1")
    spen_run("--resume", copied, "--device", "cpu", "--quiet")
    assert (copied / "seed-1/metrics.json").read_bytes() == (two[0] / "seed-1/metrics.json").read_bytes()


def test_a_seed_killed_before_its_config_does_not_stop_those_after_it(copied, two):
    shutil.rmtree(copied / "seed-0")
    (copied / "seed-0").mkdir()
    for name in (".lock", "config.json.00000000-1-0123456789abcdef.partial"):
        (copied / "seed-0" / name).touch()
    shutil.rmtree(copied / "seed-1")
    run(copied, "seeds=0..1")
    for seed in ("seed-0", "seed-1"):
        assert (copied / seed / "metrics.json").read_bytes() == (two[0] / seed / "metrics.json").read_bytes()


def test_a_folder_of_seeds_killed_before_its_plan_is_free(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x/seeds.json.00000000-1-0123456789abcdef.partial").touch()
    run(tmp_path / "x", "seeds=0..0")


def test_two_at_once_in_one_folder_are_refused(copied):
    before = (copied / "seeds.json").read_bytes()
    with locked(copied):
        refused = run(copied, "seeds=0..2", status=2)
        resumed = spen_run("--resume", copied, status=2)
    assert f"in use by process {os.getpid()}" in refused.stderr and "in use by" in resumed.stderr
    assert (copied / "seeds.json").read_bytes() == before


def test_another_config_is_an_error(copied):
    assert "holds seeds of another config" in run(copied, "seeds=0..4", "features.dropout=0.3", status=2).stderr
    assert not (copied / "seed-2").exists()


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
    given = []
    monkeypatch.setattr(runner, "run", lambda config, *_: given.append(config) or tmp_path)
    spen_run(config, "seeds=7")
    assert given == [{"seed": 7}]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_seed_that_fails_does_not_stop_the_others(copied, two, jobs):
    plan = json.loads((copied / "seeds.json").read_text())
    plan["configs"]["0"]["trainer"]["net"]["lr"] = 1e30  # not finite soon
    (copied / "seeds.json").write_text(json.dumps(plan))
    for seed in (0, 1):
        shutil.rmtree(copied / f"seed-{seed}")
    failed = spen_run("--resume", copied, "--device", "cpu", "--jobs", jobs, status=RunError.exit_status)
    assert "1 of 2 runs failed" in failed.stderr and "seed 0: " in failed.stderr
    assert (copied / "seed-1/metrics.json").read_bytes() == (two[0] / "seed-1/metrics.json").read_bytes()


def test_stopping_says_how_to_go_on_with_all(copied, monkeypatch):
    def stopped(*_):
        raise Interrupted("stopped")

    (copied / "seed-1/metrics.json").unlink()
    monkeypatch.setattr(runner, "resume", stopped)
    done = spen_run("--resume", copied, status=130)
    assert f"spen-run --resume {copied}" in done.stderr.replace("\n", "")


@pytest.mark.parametrize("several", ["seeds=0,1", "methods=cross_entropy,nce seeds=0,1"])
def test_stopping_before_a_run_begins_names_no_folder_to_resume(several, tmp_path, monkeypatch):
    """Ctrl-C while the processes start: the folder goes, so there is nothing to resume."""

    def stopped(*_):
        raise Interrupted("stopped")

    monkeypatch.setattr(parallel, "side_by_side", stopped)
    done = spen_run("labels", *several.split(), "--jobs", 2, "--out", tmp_path / "x", status=130)
    assert "Run the same command again" in done.stderr
    assert "--resume" not in done.stderr and not (tmp_path / "x").exists()
