"""`spen-run CONFIG methods=cross_entropy,nce`: the runs of each method, and the one that validation chooses."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.cli.run import parse_methods
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.runs.folder.folder import RunFolder, read_methods
from spen_plugins.runs.many import jobs, plans
from spen_plugins.runs.many.seeds import choose
from spen_plugins.runs.train import runner
from tests.loaded import ROOT, spen, spen_run

SMALL = ["labels", "trainer.epochs=2", "trainer.epoch_updates=8", "trainer.batch_size=128", "features.hidden=[8]"]
SMALL += ["--device", "cpu"]


def read_validation_score(folder: Path) -> float:
    return RunFolder(folder).metrics()["validation"]["example_f1"]


@pytest.fixture(scope="module")
def two_methods(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Two methods with two seeds, and the output."""
    out = tmp_path_factory.mktemp("methods") / "x"
    return out, spen_run(*SMALL, "methods=cross_entropy,nce", "seeds=0..1", "--out", out).stdout


@pytest.fixture
def copied(two_methods, tmp_path) -> Path:
    return Path(shutil.copytree(two_methods[0], tmp_path / "x"))


@pytest.mark.parametrize("text", ["cross_entropy,nce", " cross_entropy, nce"])
def test_methods_are_a_list(text):
    assert parse_methods(text) == ["cross_entropy", "nce"]


@pytest.mark.parametrize("text", ["nce", "", "nce,", "nce,nce", "../nce,crf", "a b,c"])
def test_other_methods_are_rejected(text):
    with pytest.raises(ConfigError, match="methods=cross_entropy,nce"):
        parse_methods(text)


def test_an_energy_that_nothing_trains_raises_a_warning(tmp_path):
    small = [*SMALL, "method=cross_entropy"]
    for energy, is_warned in (('{"type": "seal.labels"}', True), ('{"type": "rules.at_most_one"}', False)):
        result = spen_run(*small, f"energy={energy}", "--out", tmp_path / str(is_warned))
        assert ("warning: this training does not train the energy" in " ".join(result.stdout.split())) == is_warned


@pytest.mark.parametrize(("method", "is_reported"), [("cross_entropy", True), ("nce", False)])
def test_a_method_that_ignores_examples_without_gold_says_so(tmp_path, method, is_reported):
    result = spen_run(*SMALL, f"method={method}", "task.labelled=100", "--out", tmp_path / "x")
    output = " ".join(result.stdout.split())
    assert (
        "learns only from examples with gold and ignores those without it, from task.labelled" in output
    ) == is_reported


def test_the_choice_is_printed_and_stored(two_methods):
    out, output = two_methods
    scores = {
        method: [read_validation_score(out / method / f"seed-{seed}") for seed in (0, 1)]
        for method in ("cross_entropy", "nce")
    }
    plan = json.loads((out / "methods.json").read_text())
    chosen = plan["chosen"]
    assert plan["methods"] == ["cross_entropy", "nce"] and plan["score"] == "example_f1"
    assert plan["validation"] == pytest.approx({method: sum(values) / 2 for method, values in scores.items()})
    assert plan["best"] == max(plan["validation"], key=plan["validation"].get)
    assert plan["standard_error"] == pytest.approx(abs(scores[plan["best"]][0] - scores[plan["best"]][1]) / 2)
    assert chosen == choose(plan["validation"], plan["standard_error"], plan["seconds"])
    assert plan["run"] == f"{chosen}/seed-{scores[chosen].index(max(scores[chosen]))}"
    assert f"chosen: {plan['reason']}" in output and f"its best run is {out / plan['run']}" in output
    assert "example_f1 − cross_entropy" in output


CHOICES = {
    "the cheaper one within the error": ({"a": 0.745, "b": 0.741}, {"a": 41, "b": 10}, "b"),
    "beyond the error the best": ({"a": 0.745, "b": 0.738}, {"a": 41, "b": 10}, "a"),
    "about equal cost": ({"a": 0.745, "b": 0.741}, {"a": 14, "b": 10}, "a"),
    "two thirds of the time": ({"a": 0.745, "b": 0.741}, {"a": 15, "b": 10}, "b"),
    "of two cheaper ones of about equal cost the better": (
        {"a": 0.745, "b": 0.741, "c": 0.742},
        {"a": 50, "b": 10, "c": 14},
        "c",
    ),
    "each cheaper than the one before": (
        {"a": 0.745, "b": 0.743, "c": 0.741},
        {"a": 40, "b": 20, "c": 10},
        "c",
    ),
    "cheap and far behind": ({"a": 0.745, "b": 0.741, "c": 0.5}, {"a": 50, "b": 10, "c": 1}, "b"),
    "equal scores": ({"a": 0.745, "b": 0.745}, {"a": 11, "b": 10}, "b"),
    "unknown times": ({"a": 0.741, "b": 0.745}, {"a": 0, "b": 0}, "b"),
}


@pytest.mark.parametrize(("scores", "seconds", "chosen"), CHOICES.values(), ids=CHOICES)
def test_a_cheaper_method_within_one_standard_error_is_chosen(scores, seconds, chosen):
    for order in itertools.permutations(scores):
        assert choose({method: scores[method] for method in order}, 0.006, seconds) == chosen


def test_without_a_standard_error_the_best_is_chosen():
    assert choose({"a": 0.741, "b": 0.745}, 0, {"a": 1, "b": 100}) == "b"


def set_results(folder: Path, scores: dict[str, list[float]], seconds: dict[str, float]) -> None:
    """Give a folder's runs, by method and seed, these validation scores and training times."""
    for method, values in scores.items():
        for seed, value in enumerate(values):
            path = folder / method / f"seed-{seed}"
            metrics = json.loads((path / "metrics.json").read_text())
            metrics["validation"]["example_f1"], metrics["test"]["example_f1"] = value, 1 - value
            (path / "metrics.json").write_text(json.dumps(metrics))
            time = {"stage": "train", "epoch": 1, "seconds": float(seconds[method])}
            (path / "times.jsonl").write_text(json.dumps(time) + "\n")


@pytest.mark.parametrize(
    ("scores", "seconds", "reason"),
    [
        (
            {"cross_entropy": [0.80, 0.81], "nce": [0.80, 0.82]},
            {"cross_entropy": 10, "nce": 41},
            "cross_entropy (80.50), within one standard error (1.00) of nce (81.00), which scores best, "
            "and 4.1 times faster to train",
        ),
        (
            {"cross_entropy": [0.10, 0.11], "nce": [0.90, 0.92]},
            {"cross_entropy": 10, "nce": 41},
            "nce (91.00), which scores best; none within one standard error (1.00) is cheaper",
        ),
    ],
    ids=["cheaper", "best"],
)
def test_the_choice_follows_validation_and_time_and_not_test(copied, scores, seconds, reason):
    set_results(copied, scores, seconds)
    for _ in range(2):  # the choice is the same when the command is given again
        assert f"chosen: {reason}\n" in spen_run("--resume", copied).stdout
        plan = json.loads((copied / "methods.json").read_text())
        assert plan["chosen"] == reason.split()[0] and plan["best"] == "nce" and plan["reason"] == reason
        assert plan["seconds"] == seconds and plan["standard_error"] == pytest.approx(0.01)


@pytest.mark.parametrize(("part", "chosen"), [("validation", "cross_entropy"), ("test", "nce")])
def test_with_one_seed_the_error_is_over_validation_examples(copied, part, chosen):
    for method in ("cross_entropy", "nce"):
        shutil.rmtree(copied / method / "seed-1")
        plan = json.loads((copied / method / "seeds.json").read_text())
        del plan["configs"]["1"]
        (copied / method / "seeds.json").write_text(json.dumps(plan))
        numerators = torch.tensor([1.0, 0.0] * 50)  # a standard error of 0.05
        RunFolder(copied / method / "seed-0").save_ratios(
            {"numerator": numerators, "denominator": torch.ones(100)}, part
        )
    set_results(copied, {"cross_entropy": [0.47], "nce": [0.5]}, {"cross_entropy": 10, "nce": 41})
    spen_run("--resume", copied)
    plan = json.loads((copied / "methods.json").read_text())
    assert plan["chosen"] == chosen
    assert plan["standard_error"] == (pytest.approx(0.05, rel=0.05) if part == "validation" else None)
    assert ("its standard error is unknown" in plan["reason"]) == (part == "test")


def test_a_run_stores_the_scores_of_validation_examples_too(two_methods):
    run = RunFolder(two_methods[0] / "nce" / "seed-0")
    validation, test = (run.ratios(part, beside=True) for part in ("validation", "test"))
    scored = [ratios["numerator"].sum() / ratios["denominator"].sum() for ratios in (validation, test)]
    assert len(set(scored)) == 2 and run.ratios("train") is None
    assert scored == pytest.approx([run.metrics()[part]["example_f1"] for part in ("validation", "test")])


def test_a_run_equals_one_trained_alone(two_methods, tmp_path):
    spen_run(*SMALL, "method=nce", "seed=1", "--out", tmp_path / "alone")
    for name in ("config.json", "metrics.json", "history.jsonl"):
        assert (two_methods[0] / "nce/seed-1" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def test_without_seeds_there_is_one(tmp_path):
    spen_run(*SMALL, "methods=cross_entropy,margin", "seed=3", "--out", tmp_path / "x", "--quiet")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("x/*/seed-*")) == [
        "x/cross_entropy/seed-3",
        "x/margin/seed-3",
    ]


def test_side_by_side_takes_modules_from_pythonpath_and_none_from_the_working_directory(tmp_path, monkeypatch):
    (work := tmp_path / "work").mkdir()
    for name in ("typing", "random"):
        (work / f"{name}.py").write_text("raise RuntimeError('not of Python')")
    (modules := tmp_path / "mine").mkdir()
    (modules / "of_mine.py").write_text("from random import random")
    monkeypatch.chdir(work)
    monkeypatch.setenv("PYTHONPATH", str(modules))
    lines = {"module": [sys.executable, "-m", "of_mine"], "code": [sys.executable, "-c", "import typing, of_mine"]}
    assert jobs.side_by_side(lines, 2, lambda *_: None, lambda _: "") == {}


def test_a_process_that_fails_leaves_the_others_and_a_wrong_config_is_an_error():
    def run(**codes):
        lines = {name: [sys.executable, "-c", code] for name, code in codes.items()}
        return jobs.side_by_side(lines, 2, lambda *words: messages.append(words), lambda _: "")

    messages = []
    failures = run(loud="import sys; sys.exit('diverged')", good="", silent="raise SystemExit(3)")
    assert failures == {"loud": "diverged", "silent": "its process ended with status 3"} and messages == [
        ("good", "done")
    ]
    with pytest.raises(ConfigError, match="wrong key"):
        run(wrong="import sys; print('wrong key', file=sys.stderr); sys.exit(2)")


def test_plans_that_a_kill_interrupted_are_completed(tmp_path, monkeypatch):
    def be_killed(folder: Path) -> None:
        raise SystemExit

    make = partial(plans.plan, tmp_path, lambda method, seed: {"method": method}, ["a", "b"], [0], "labels")
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(plans, "make_folder", be_killed)
        make()
    assert read_methods(tmp_path) == {"methods": ["a", "b"]}  # a folder that `run_many` takes
    make()
    assert plans.read_seeds(tmp_path / "a") == plans.read_seeds(tmp_path / "b") == [0]


def test_a_run_stops_when_the_process_that_began_it_is_gone():
    preamble = "import time; from spen_plugins.runs.many import jobs; jobs._run_one = lambda *_: time.sleep(600)"
    program = f"{preamble}; jobs._run_worker('runs', '0', '', '600')"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    process.communicate()
    assert process.returncode == -signal.SIGTERM


def test_methods_run_side_by_side(copied, monkeypatch):
    """Two processes run the missing seeds of two methods and report their progress."""
    monkeypatch.setattr(jobs, "LINE_SECONDS", 0.0)
    shutil.rmtree(copied / "cross_entropy/seed-1")
    shutil.rmtree(copied / "nce/seed-1")
    result = spen_run("--resume", copied, "--jobs", 2, "--device", "cpu")
    for method in ("cross_entropy", "nce"):
        assert f"{method}: already done: seed 0" in result.stdout and f"{method}: seed 1 done" in result.stdout
        assert f"{method}: seed 1: no epoch is finished yet" in result.stdout
        score = RunFolder(copied / method / "seed-1").history()[-1]["score"]
        assert jobs._describe_progress((copied / method, 1)).endswith(f", epoch 2, score {score:.4f} on validation")


@pytest.mark.parametrize("name", ["nce/seed-1/metrics.json", "nce/seeds.json"])
def test_a_method_whose_folder_is_damaged_leaves_the_others(copied, name):
    (copied / name).write_text("{")
    shutil.rmtree(copied / "cross_entropy/seed-1")
    result = spen_run("--resume", copied, "--device", "cpu", status=RunError.exit_status)
    assert "chosen among cross_entropy; failed: nce." in result.stderr and Path(name).name in result.stderr
    assert (copied / "cross_entropy/seed-1/metrics.json").exists()


def test_finished_runs_are_skipped_and_others_resumed(copied, monkeypatch):
    (copied / "nce/seed-1/metrics.json").unlink()
    shutil.rmtree(copied / "nce/seed-0")
    calls = []
    for name in ("run", "resume"):
        real = getattr(runner, name)
        monkeypatch.setattr(runner, name, lambda *a, _n=name, _r=real: (calls.append(_n), _r(*a))[1])
    spen_run("--resume", copied, "--device", "cpu")
    assert calls == ["run", "resume"]
    assert "chosen" in json.loads((copied / "methods.json").read_text())


def test_another_method_is_added_with_the_folders_seeds_and_none_can_be_left_out(copied):
    added = spen_run(*SMALL, "methods=margin,nce,cross_entropy", "seed=0", "--out", copied)
    assert added.stdout.count("already done: seed 0, 1") == 2
    assert added.stdout.count("note: also counts seed 1, of an earlier command") == 1
    assert sorted(path.name for path in (copied / "margin").glob("seed-*")) == ["seed-0", "seed-1"]
    rejected = spen_run(*SMALL, "methods=margin,nce", "seeds=0..1", "--out", copied, status=2)
    assert "name all of its methods" in rejected.stderr


@pytest.mark.parametrize("methods", ["cross_entropy,nce", "margin,cross_entropy,nce"])
def test_a_command_with_another_config_changes_nothing(copied, methods):
    contents = {path: path.read_bytes() for path in copied.rglob("*.json")}
    result = spen_run(*SMALL, f"methods={methods}", "trainer.net.lr=0.1", "--out", copied, status=2)
    assert "seeds of another config" in result.stderr
    assert {path: path.read_bytes() for path in copied.rglob("*.json")} == contents


def test_a_method_that_fails_leaves_the_others_to_choose_from(copied, monkeypatch):
    shutil.rmtree(copied / "nce/seed-1")

    def diverging(*arguments):
        raise RunError("the loss is infinite")

    monkeypatch.setattr(runner, "run", diverging)
    result = spen_run("--resume", copied, status=1)
    assert "chosen among cross_entropy; failed: nce." in result.stderr and "the loss is infinite" in result.stderr
    assert json.loads((copied / "methods.json").read_text())["chosen"] == "cross_entropy"
    shutil.rmtree(copied / "cross_entropy/seed-0")
    assert "no method was chosen" in spen_run("--resume", copied, status=1).stderr


def test_the_configs_own_seed_is_the_default(tmp_path):
    config = (ROOT / "configs/labels.jsonnet").read_text()
    (tmp_path / "lib").symlink_to(ROOT / "configs/lib")
    (tmp_path / "mine.jsonnet").write_text(config.replace("seed=0", "seed=7"))
    spen_run(tmp_path / "mine.jsonnet", *SMALL[1:], "methods=cross_entropy,nce", "--out", tmp_path / "x")
    assert (tmp_path / "x/nce/seed-7/metrics.json").exists()


def test_the_folder_is_decoded_as_its_chosen_run(copied, tmp_path):
    spen("decode", copied, tmp_path / "new", "--by", "expected_f1")
    assert sp.load(tmp_path / "new").predict([{"features": {}}])


def test_a_figure_of_one_run_asks_which_method(two_methods):
    result = spen("plot", "gradients", two_methods[0], "--labels", "0,1", status=2)
    assert "runs of several methods; name one of" in result.stderr


def test_the_error_for_energy_keys_says_that_the_method_has_no_energy(tmp_path):
    result = spen_run(*SMALL, "method=cross_entropy", "energy.hidden=4", "--out", tmp_path / "x", status=2)
    assert "If the config's method has none" in result.stderr


def test_compare_accepts_the_folder_of_all_methods(two_methods):
    result = spen("compare", two_methods[0])
    assert "| cross_entropy |" in result.stdout and "| nce |" in result.stdout
    assert "| mine/nce |" in spen("compare", f"mine={two_methods[0]}").stdout


def test_a_method_that_has_not_begun_is_left_out(copied, tmp_path):
    for run in (copied / "nce").glob("seed-*"):
        shutil.rmtree(run)
    note = f"{copied}: left out, no finished run: nce. Resume with: spen-run --resume {copied}"
    for words in (["compare", copied], ["compare", f"mine={copied}"]):
        result = spen(*words)
        assert note in result.stdout and "| nce |" not in result.stdout, result.output
    spen("report", copied, "--out", tmp_path / "page.html")
    assert "left out, no finished run: nce" in (tmp_path / "page.html").read_text()
    for metrics in (copied / "cross_entropy").glob("*/metrics.json"):
        metrics.unlink()
    result = spen("compare", copied, status=2)
    assert f"{copied}: its methods have no finished run: cross_entropy, nce. Resume" in result.stderr


def test_the_folder_predicts_with_the_run_that_was_chosen(copied):
    chosen = json.loads((copied / "methods.json").read_text())["run"]
    item = {"features": {}}
    assert sp.load(copied).folder.path == copied / chosen
    assert sp.load(copied).predict([item]) == sp.load(copied / chosen).predict([item])
    (copied / "methods.json").write_text('{"methods": ["cross_entropy", "nce"]}')
    with pytest.raises(ConfigError, match=r"no method is chosen yet; resume with: spen-run --resume"):
        sp.load(copied)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["methods=cross_entropy,nec"], 'unknown method "nec"'),
        (["methods=cross_entropy,nce", "method=nce"], "found both method= and methods="),
        (["methods=cross_entropy,nce", "seed=1", "seeds=0,1"], "found both seed= and seeds="),
        (["methods=cross_entropy,nce", "data=/none.csv", "split=/none.json"], "/none"),
        (["methods=cross_entropy,nce", "trainer.energy.lr=1"], "method=cross_entropy: unknown key"),
    ],
)
def test_invalid_arguments_are_rejected_before_training(words, message, tmp_path):
    assert message in spen_run(*SMALL, *words, "--out", tmp_path / "x", status=2).stderr
    assert not (tmp_path / "x").exists()


def test_a_config_without_methods_has_none_to_choose(tmp_path):
    assert "no argument 'method'" in spen_run("english", "methods=a,b", "--out", tmp_path / "x", status=2).stderr


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine").touch()
    result = spen_run(*SMALL, "methods=cross_entropy,nce", "--out", tmp_path, status=2)
    assert "has no methods" in result.stderr
    for words in (("methods=cross_entropy,nce",), ("seeds=0..1",)):
        result = spen_run(*SMALL, *words, "--out", tmp_path / "mine", status=2)
        assert "mine is a file; nothing was overwritten" in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
