"""`spen sweep`: searches by validation scores alone, survives SIGKILL, and shares its work."""

from __future__ import annotations

import csv
import errno
import json
import multiprocessing
import os
import shlex
import signal
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch

optuna = pytest.importorskip("optuna")

from spen_plugins.builtin.tasks.labels.multilabel import MultiLabel  # noqa: E402
from spen_plugins.cli.main import app  # noqa: E402
from spen_plugins.config.evaluation import evaluate, parse_value  # noqa: E402
from spen_plugins.errors import ConfigError, Interrupted, NonFiniteLoss, RunError  # noqa: E402
from spen_plugins.files.unfinished import LOCK  # noqa: E402
from spen_plugins.runs.folder.folder import RunFolder  # noqa: E402
from spen_plugins.runs.many import space as spaces  # noqa: E402
from spen_plugins.runs.many import study as studies  # noqa: E402
from spen_plugins.runs.many import sweep as sweeps  # noqa: E402
from spen_plugins.runs.many.sweep import Sweep, sweep  # noqa: E402
from spen_plugins.runs.train import finishing, runner  # noqa: E402
from tests.loaded import ROOT, trained  # noqa: E402

CONFIG = ROOT / "configs" / "labels.jsonnet"
MEMORY = "sqlite:///:memory:"


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.yaml"
    path.write_text("trainer.net.lr: {low: 1e-5, high: 1e-1, log: true}\nfeatures.hidden: [[4], [8]]\n")
    return path


@pytest.fixture
def make_sweep(tmp_path: Path, space: Path):
    def make(trials: int, **changes: Any) -> Sweep:
        arguments = {"method": "cross_entropy", "trainer.epochs": "2"} | changes.pop("arguments", {})
        return Sweep(CONFIG, space, arguments, trials, **{"folder": tmp_path / "sweep", "device": "cpu"} | changes)

    return make


@pytest.fixture
def fake_run(monkeypatch: pytest.MonkeyPatch):
    """Replaces training: writes a folder whose history has the scores that a function of the config returns."""

    def put(scores: Any) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def run(config, source, out, options, test, after_epoch):
            calls.append(config)
            folder = RunFolder.create(out, config)
            best = -1.0
            for epoch, score in enumerate(scores(config)):
                better, best = score > best, max(best, score)
                record = {"stage": "all", "epoch": epoch, "validation": {"f1": score}, "score": score, "best": better}
                folder.append_history(record, 0.0)
                after_epoch(record)

        monkeypatch.setattr(runner, "run", run)
        return calls

    return put


def read_trials(folder: Path) -> list[dict[str, str]]:
    with (folder / "trials.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def load_study(folder: Path, name: str = "sweep") -> Any:
    return optuna.load_study(study_name=name, storage=f"sqlite:///{folder / 'study.db'}")


# The space


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trainer.net.lr: 3", "expected a range .* trainer.net.lr=3"),
        ("trainer.net.lr: {low: 1, high: 1}", "low below high"),
        ("trainer.net.lr: {low: 0, high: 1, log: true}", "above 0"),
        ("trainer.net.lr: {low: 1, high: 2, log: true, step: 1}", "one of them"),
        ("trainer.net.lr: {low: 1, hi: 2}", "unknown key 'trainer.net.lr.hi'"),
        ("energy_loss.samples: {low: 1.5, high: 3, int: true}", "not a whole number"),
        ("features.hidden: []", "at least 1"),
        ("features.hidden: [[4], [4]]", "twice"),
        ("{}", "empty space"),
    ],
)
def test_invalid_spaces_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        spaces.read(path)


def test_drawn_values_are_valid_in_a_config(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(
        "lr: {low: 1e-3, high: 10, log: true}\nsamples: {low: 20, high: 80, step: 20}\n"
        "epochs: {low: 1, high: 9, int: true}\nweight: {low: 0, high: 1, step: 0.25}\n"
        "hidden: [[4], [8, 8]]\nname: {choices: [a, '1', 1, null, true]}\n"
    )
    space = spaces.read(path)
    assert space["samples"].ends() == ["20", "80"] and space["name"].ends() == ["a", '"1"', "1", "null", "true"]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    suggestions: dict[str, set[Any]] = {name: set() for name in space}
    for _ in range(200):
        trial = study.ask()
        for name, dimension in space.items():
            suggestions[name].add(json.dumps(parse_value(dimension.suggest(trial, name))))
    assert suggestions["samples"] == {"20", "40", "60", "80"}
    assert suggestions["epochs"] == set(map(str, range(1, 10)))
    assert suggestions["weight"] == {"0.0", "0.25", "0.5", "0.75", "1.0"}
    assert suggestions["hidden"] == {"[4]", "[8, 8]"}
    assert suggestions["name"] == {'"a"', '"1"', "1", "null", "true"}
    values = sorted(map(float, suggestions["lr"]))
    assert values[0] >= 1e-3 and values[-1] <= 10
    assert 0.05 < values[100] < 0.2, "the median of a logarithmic range is its geometric mean, 0.1"


def test_the_example_space_fits_its_config() -> None:
    path = ROOT / "configs" / "spaces" / "labels_nce.yaml"
    search = Sweep(CONFIG, path, {"data": "cal500", "method": "nce"}, 1, Path("unused"))
    assert sweeps.check_space(search, spaces.read(path)) == 100


def test_mistakes_are_reported_before_anything_starts(make_sweep, space: Path, tmp_path: Path) -> None:
    space.write_text("trainer.net.lrr: [1, 2]")
    with pytest.raises(ConfigError, match=r"'trainer\.net\.lrr'.*Did you mean 'lr'"):
        sweep(make_sweep(1))
    space.write_text("trainer.epochs: {low: 0.5, high: 3}")
    with pytest.raises(ConfigError, match="both as an argument and in"):
        sweep(make_sweep(1))
    space.write_text("trainer.batch_size: [4, -1]")  # the second choice alone is wrong
    with pytest.raises(ConfigError, match="batch_size"):
        sweep(make_sweep(1))
    assert not (tmp_path / "sweep").exists()


# Trials


def test_a_real_sweep_leaves_the_test_part_alone(make_sweep, monkeypatch, tmp_path: Path) -> None:
    requested = []
    read_part, evaluate_run = MultiLabel.part, finishing.evaluate
    monkeypatch.setattr(MultiLabel, "part", lambda self, name: (requested.append(name), read_part(self, name))[1])
    evaluated = []
    monkeypatch.setattr(
        finishing,
        "evaluate",
        lambda m, t, examples, *rest: (evaluated.append(examples), evaluate_run(m, t, examples, *rest))[1],
    )
    lines: list[str] = []
    best = sweep(make_sweep(2), lines.append)
    assert "test" not in requested and set(requested) == {"train", "validation"} and len(evaluated) == 2
    runs = [RunFolder.open(tmp_path / "sweep" / f"trial-{i}") for i in range(2)]
    assert all("test" not in run.metrics() and not run.checkpoint.exists() for run in runs)
    scores = [max(record["score"] for record in run.history()) for run in runs]
    assert [float(row["score"]) for row in read_trials(tmp_path / "sweep")] == scores
    assert [run.metrics()["validation"]["example_f1"] for run in runs] == pytest.approx(scores)
    # best.json trains to the trial's score, and now the test part is scored.
    metrics = RunFolder.open(trained(best, tmp_path / "again")).metrics()
    assert metrics["validation"]["example_f1"] == pytest.approx(max(scores)) and "test" in metrics
    # The printed command gives the same config.
    command = lines[-1].splitlines()[-1]
    config = shlex.quote(str(CONFIG))
    assert command.startswith(f"spen-run {config} method=cross_entropy trainer.epochs=2 trainer.net.lr=")
    words = dict(word.split("=") for word in shlex.split(command)[2:])
    assert evaluate(CONFIG, words) == evaluate(best)


def test_tpe_finds_the_good_end_and_every_trial_has_a_line(make_sweep, space: Path, fake_run, tmp_path: Path) -> None:
    space.write_text("trainer.net.lr: {low: 0.001, high: 1}")
    fake_run(lambda config: [1 - abs(config["trainer"]["net"]["lr"] - 0.7)])
    lines: list[str] = []
    best = sweep(make_sweep(25, storage=MEMORY), lines.append)
    assert abs(evaluate(best)["trainer"]["net"]["lr"] - 0.7) < 0.05
    assert len(lines) == 27 and all(line.startswith(f"trial {i:3d}  ") for i, line in enumerate(lines[:25]))
    table = read_trials(tmp_path / "sweep")
    top = max(table, key=lambda row: float(row["score"]))
    assert f"best {float(top['score']):.4f} (trial {top['trial']})" in lines[24]


def test_a_search_depends_on_its_seed_and_not_on_interruptions(make_sweep, fake_run, tmp_path: Path) -> None:
    fake_run(lambda config: [config["trainer"]["net"]["lr"]])
    for trials in (4, 11):
        sweep(make_sweep(trials, folder=tmp_path / "cut"), lambda _: None)
    sweep(make_sweep(11, folder=tmp_path / "whole", storage=MEMORY), lambda _: None)
    sweep(make_sweep(3, folder=tmp_path / "other", storage=MEMORY, seed=1), lambda _: None)
    rates = {
        name: [row["trainer.net.lr"] for row in read_trials(tmp_path / name)] for name in ("cut", "whole", "other")
    }
    assert rates["cut"] == rates["whole"] and len(set(rates["whole"])) == 11
    assert not set(rates["other"]) & set(rates["whole"])


def test_a_failing_trial_does_not_end_the_sweep(make_sweep, space: Path, fake_run, tmp_path: Path) -> None:
    def scores(config):
        if config["trainer"]["net"]["lr"] > 0.5:
            raise NonFiniteLoss("the loss is nan\nmore")
        return [0.25]

    space.write_text("trainer.net.lr: [0.1, 0.9]")
    fake_run(scores)
    lines: list[str] = []
    sweep(make_sweep(8, storage=MEMORY), lines.append)
    states = [row["state"] for row in read_trials(tmp_path / "sweep")]
    assert set(states) == {"complete", "fail"} and len(states) == 8
    assert any("failed: the loss is nan  " in line and "more" not in line for line in lines)

    fake_run(lambda config: [float("nan")])
    with pytest.raises(RunError, match=r"no trial reached a score.*no epoch improved the net"):
        sweep(make_sweep(2, folder=tmp_path / "none", storage=MEMORY), lambda _: None)


def test_wrong_data_end_the_sweep_at_once(make_sweep, tmp_path: Path) -> None:
    search = make_sweep(5, arguments={"data": str(tmp_path / "absent.arff"), "split": str(tmp_path / "absent.json")})
    with pytest.raises(Exception, match="absent") as caught:
        sweep(search, lambda _: None)
    assert caught.value.exit_status == 2
    study = load_study(tmp_path / "sweep")
    assert len(study.trials) == 1 and not studies.list_counted(study), "after the data are there all five are run"


@pytest.mark.parametrize("pruner", ["median", "hyperband", "none"])
def test_hopeless_trials_are_pruned(make_sweep, space: Path, fake_run, tmp_path: Path, pruner: Any) -> None:
    """12 trials with constant scores: most of those below the median of the others are pruned."""
    space.write_text("trainer.net.lr: {low: 0.01, high: 1, step: 0.01}")
    fake_run(lambda config: [config["trainer"]["net"]["lr"]] * 10)
    sweep(make_sweep(12, pruner=pruner, arguments={"trainer.epochs": "10"}, storage=MEMORY), lambda _: None)
    table = read_trials(tmp_path / "sweep")
    pruned = [row for row in table if row["state"] == "pruned"]
    if pruner == "none":
        assert not pruned and all(row["epochs"] == "10" for row in table)
        return
    assert pruned and all(int(row["epochs"]) < 10 for row in pruned)
    best = max(table, key=lambda row: float(row["score"]))
    assert best["state"] == "complete"
    if pruner == "median":  # by its rule: n_startup_trials=5, then below the median of the completed, after 10 // 10
        first = pruned[0]
        scores = sorted(float(row["score"]) for row in table[: int(first["trial"])])
        median = (scores[(len(scores) - 1) // 2] + scores[len(scores) // 2]) / 2
        assert len(scores) >= 5 and float(first["score"]) < median and first["epochs"] == "1"


def test_a_folder_that_cannot_be_created_is_reported(make_sweep, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file can't be created"):
        sweep(make_sweep(1, folder=tmp_path / "file"))


def test_a_study_is_one_experiment(make_sweep, fake_run) -> None:
    fake_run(lambda config: [0.5])
    sweep(make_sweep(1), lambda _: None)
    with pytest.raises(ConfigError, match=r"another config \(trainer\.batch_size: none, now 3\)"):
        sweep(make_sweep(1, arguments={"trainer.batch_size": "3"}), lambda _: None)
    with pytest.raises(ConfigError, match="storage nonsense://x"):
        sweep(make_sweep(1, storage="nonsense://x", name="other"), lambda _: None)


# Killed and concurrent processes


@pytest.fixture(scope="module")
def processes() -> Any:
    """Processes with torch and optuna imported: one server imports them, the others are its forks."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["optuna", "spen_plugins.runs.many.sweep", "spen_plugins.runs.train.runner", "torch._dynamo", "scipy.optimize"]
    )
    return context


def run_command(words: Sequence[str], out: Path, dies_in: Path | None, meeting: Any) -> None:
    """`spen sweep` in a separate process; its output goes to a file.

    It is killed after the first epoch of the run `dies_in`, and begins its first trial when another process begins one.
    """
    torch.set_num_threads(1)
    append, train = RunFolder.append_history, runner.run

    def append_and_die(self: RunFolder, *record: Any) -> None:
        append(self, *record)
        if self.path == dies_in:
            os.kill(os.getpid(), signal.SIGKILL)

    def meet_and_train(*arguments: Any, **options: Any) -> Any:
        runner.run = train
        meeting.wait(600)
        return train(*arguments, **options)

    RunFolder.append_history = append_and_die
    if meeting:
        runner.run = meet_and_train
    with out.open("w", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        app(["sweep", str(CONFIG), *words, "--device", "cpu"])


def start(processes: Any, out: Path, space: Path, folder: Path, trials: int, *words: str, **options: Any) -> Any:
    line = [str(space), "method=cross_entropy", *words, "--trials", str(trials), "--out", str(folder)]
    process = processes.Process(target=run_command, args=(line, out, options.get("dies_in"), options.get("meeting")))
    process.start()
    return process


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
def test_a_sweep_resumes_after_sigkill(processes, space: Path, fake_run, tmp_path: Path, storage: str) -> None:
    folder, log = tmp_path / "sweep", tmp_path / "said"
    address = str(tmp_path / "sweep.log") if storage == "journal" else f"sqlite:///{folder / 'study.db'}"
    words = ("trainer.epochs=9", "trainer.patience=null", "--storage", address)
    killed = start(processes, log, space, folder, 3, *words, dies_in=folder / "trial-1")
    killed.join(600)
    assert killed.exitcode == -signal.SIGKILL, log.read_text()
    assert not (folder / "best.json").exists()

    fake_run(lambda config: [0.5])
    arguments = {"method": "cross_entropy", "trainer.epochs": "9", "trainer.patience": "null"}
    search = Sweep(CONFIG, space, arguments, 3, folder, address, device="cpu")
    messages: list[str] = []
    sweep(search, messages.append)
    assert messages[0] == "trial 1 was killed; retrying its parameters"
    table = read_trials(folder)
    assert [row["state"] for row in table] == ["complete", "fail", "complete", "complete"]
    assert [table[2][name] for name in ("trainer.net.lr", "features.hidden")] == [
        table[1][name] for name in ("trainer.net.lr", "features.hidden")
    ]
    assert len({row["trainer.net.lr"] for row in table}) == 3

    messages.clear()
    sweep(search, messages.append)
    assert len(messages) == 2 and read_trials(folder) == table, "nothing is left to do"


def test_two_processes_share_a_storage(processes, space: Path, tmp_path: Path) -> None:
    folder, logs = tmp_path / "sweep", [tmp_path / "one", tmp_path / "two"]
    meeting = processes.Barrier(2)
    workers = [start(processes, out, space, folder, 6, "trainer.epochs=2", meeting=meeting) for out in logs]
    for process in workers:
        process.join(600)
    outputs = [out.read_text() for out in logs]
    assert [process.exitcode for process in workers] == [0, 0], outputs
    trials = [sum(line.startswith("trial ") for line in text.splitlines()) for text in outputs]
    assert all(trials) and sum(trials) == 6, "both worked"
    study = load_study(folder)
    assert len(studies.list_counted(study)) == 6
    assert len({trial.params["trainer.net.lr"] for trial in study.trials}) == len(study.trials), (
        "and on different things"
    )
    best = max(float(row["score"]) for row in read_trials(folder) if row["state"] == "complete")
    assert any(f", {best:.4f} on the validation part" in text for text in outputs), "the last one to end knows the best"


def test_a_living_process_keeps_its_trials(tmp_path: Path) -> None:
    study = optuna.create_study(direction="maximize")
    with studies.hold_worker(tmp_path) as name:
        trial = studies.ask(study, 0, name)
        trial.suggest_float("x", 0, 1)
        assert studies.reclaim(study, tmp_path) == []
        assert study.trials[0].state == optuna.trial.TrialState.RUNNING
    (tmp_path / f"{name}.lock").touch()  # as a killed process leaves it: present, but not locked
    assert studies.reclaim(study, tmp_path) == [0]
    assert studies.reclaim(study, tmp_path) == []
    assert [t.state.name for t in study.trials] == ["FAIL", "WAITING"] and studies.list_counted(study) == []
    retried = studies.ask(study, 0, "other")
    assert retried.suggest_float("x", 0, 1) == trial.params["x"]
    assert [t.number for t in studies.list_counted(study)] == [1]


def test_a_full_disk_costs_no_trial(make_sweep, fake_run, monkeypatch, tmp_path: Path) -> None:
    fake_run(lambda config: [0.5])
    train, is_full = runner.run, True

    def run_on_full_disk(*arguments: Any, **options: Any) -> Any:
        with monkeypatch.context() as patch:
            if is_full:
                patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
            return train(*arguments, **options)

    monkeypatch.setattr(runner, "run", run_on_full_disk)
    with pytest.raises(RunError, match=r"No space left.*The same command resumes and repeats trial 0"):
        sweep(make_sweep(2), lambda _: None)
    is_full = False
    sweep(make_sweep(2), lambda _: None)
    assert [row["state"] for row in read_trials(tmp_path / "sweep")] == ["fail", "complete", "complete"]


@pytest.mark.parametrize("damage", ["garbage", "half", "empty", "missing", "folder", "torn journal"])
def test_a_damaged_study_is_reported(make_sweep, fake_run, tmp_path: Path, damage: str) -> None:
    fake_run(lambda config: [0.5])
    journal = "journal" in damage
    file = tmp_path / "trials.log" if journal else tmp_path / "sweep/study.db"
    storage = {"storage": str(file)} if journal else {}
    sweep(make_sweep(2, **storage), lambda _: None)
    config = (tmp_path / "sweep/trial-0/config.json").read_bytes()
    data = file.read_bytes()
    file.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage != "missing":
        file.write_bytes({"garbage": b"trials " * 99, "empty": b""}.get(damage, data[: len(data) // 2]))
    with pytest.raises((ConfigError, RunError), match="not empty" if damage in ("empty", "missing") else "damaged"):
        sweep(make_sweep(3, **storage), lambda _: None)
    assert (tmp_path / "sweep/trial-0/config.json").read_bytes() == config


def test_a_pipe_in_place_of_the_lock_is_rejected(make_sweep, tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    os.mkfifo(tmp_path / "sweep" / LOCK)
    with pytest.raises(ConfigError, match="not our lock file: it is not a regular file"):
        sweep(make_sweep(1), lambda _: None)


def test_an_interrupted_trial_is_repeated(make_sweep, monkeypatch, tmp_path: Path) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise Interrupted("stopped by the user")

    monkeypatch.setattr(runner, "run", stop)
    with pytest.raises(Interrupted, match="the same command resumes"):
        sweep(make_sweep(3), lambda _: None)
    states = [trial.state.name for trial in load_study(tmp_path / "sweep").trials]
    assert states == ["FAIL", "WAITING"]
