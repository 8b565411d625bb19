"""Data files that change after a run: comparing with the run or fitting to it reports the change."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from spen_plugins.errors import ConfigError
from spen_plugins.runs.many.plans import check_same_data
from tests.loaded import spen, spen_run

PARTS = ("train", "validation", "test")


def write(path: Path, seed: int, rows: int = 40) -> None:
    x = np.random.default_rng(seed).normal(size=(rows, 3)).round(3)
    lines = [",".join(map(str, [*row, *(row[:2] > 0).astype(int)])) for row in x]
    path.write_text("\n".join(["a,b,c,tag_x,tag_y", *lines]) + "\n")


DATA_FILES = ("data=train.csv", "validation=validation.csv", "test=test.csv")


def run(seeds: str, *files: str, status: int = 0) -> Result:
    small = ("method=cross_entropy", "trainer.epochs=1", "features.hidden=[4]", f"seeds={seeds}")
    words = ("labels", *(files or DATA_FILES), "labels=tag_*", *small, "--out", "runs", "--device", "cpu")
    return spen_run(*words, status=status)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for seed, part in enumerate(PARTS):
            write(folder / f"{part}.csv", seed)
        run("0")
    return folder


@pytest.fixture(autouse=True)
def work_in_a_copy(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")


@pytest.mark.parametrize("part", PARTS)
def test_no_seed_is_added(part: str) -> None:
    write(Path(f"{part}.csv"), 9, 20)
    assert f"{part}.csv changed since" in run("0,1", status=2).output
    assert not Path("runs/seed-1").exists()
    run("0")  # nothing is left to run


def test_a_seed_is_added_where_nothing_changed() -> None:
    run("0,1")
    assert "did not read the same" not in spen("compare", "runs").output
    environment = Path("runs/seed-1/environment.json")
    environment.write_text(
        environment.read_text().replace(json.loads(environment.read_text())["data_sha256"]["test.csv"], "0" * 64)
    )
    assert "WARNING: runs of runs did not read the same" in spen("compare", "runs").output


def test_nothing_is_fitted_to_another_validation_part() -> None:
    spen("decode", "runs/seed-0", "as_it_was", "--by", "threshold")
    calibration = Path("runs/seed-0/calibration.json").read_bytes()
    write(Path("validation.csv"), 9)
    for words in (("decode", "runs/seed-0", "other", "--by", "threshold"), ("calibrate", "runs/seed-0")):
        assert "validation.csv changed since" in spen(*words, status=1).output
    assert not Path("other").exists() and Path("runs/seed-0/calibration.json").read_bytes() == calibration


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("decode", "runs/seed-0", "other", "--by", "expected_f1", "--threshold", "0.5"), "omit --threshold"),
        (("decode", "runs/seed-0", "other", "--by", "threshold", "--temperature", "2"), "omit --temperature"),
        (("decode", "runs/seed-0", "other", "--by", "threshold", "--threshold", "1.5"), "spen decode runs/seed-0: "),
    ],
)
def test_no_option_is_ignored(words: tuple[str, ...], message: str) -> None:
    assert message in spen(*words, status=2).output
    assert not Path("other").exists()


def test_a_sweep_has_one_set_of_data(tmp_path: Path) -> None:
    runs = [Path("runs/seed-0")]
    check_same_data(runs)
    Path("train.csv").unlink()
    check_same_data(runs)  # the next trial reports the missing file
    write(Path("test.csv"), 9)
    with pytest.raises(ConfigError, match=r"^test\.csv changed since runs/seed-0"):
        check_same_data(runs)


def test_probabilities_are_not_fitted_to_the_test_part() -> None:
    shutil.copy("test.csv", "copy.csv")
    for file in ("test.csv", "copy.csv"):
        assert "is the run's test part" in spen("calibrate", "runs/seed-0", file, status=2).output
    write(Path("other.csv"), 9)
    spen("calibrate", "runs/seed-0", "other.csv")


def evaluate(*words: object) -> tuple[dict, str, str]:
    """The scores, the split that they belong to, and the messages on standard error."""
    result = spen("evaluate", *words)
    output = json.loads(result.stdout)
    return output["scores"], output["protocol"]["split"], result.stderr


def test_scoring_rows_that_a_run_has_seen_raises_a_warning() -> None:
    """Whatever the file's name, also when the steps of inference are scored."""
    shutil.copy("validation.csv", "copy.csv")
    for file, setting in (("train.csv", "task.train"), ("copy.csv", "task.validation")):
        _, split, messages = evaluate("runs/seed-0", file)
        assert split == f"all 40 examples of {file}, which the run trained or validated on"
        assert f"warning: {file} is the run's {setting}, on whose rows it trained" in messages
        assert "use `spen evaluate runs/seed-0 --part test`" in messages
    result = spen("evaluate", "runs/seed-0", "train.csv", "--refine", "gbi", "--trajectory", status=2)
    assert "without an energy" in result.output
    write(Path("other.csv"), 9)
    for file in ("test.csv", "other.csv"):
        _, split, messages = evaluate("runs/seed-0", file)
        assert split == f"all 40 examples of {file}" and "warning" not in messages
    shutil.copy("train.csv", "test.csv")  # since the run was trained
    assert "task.train" in evaluate("runs/seed-0", "test.csv")[2]


def test_a_part_is_scored_by_the_runs_own_split() -> None:
    file_scores = [evaluate("runs/seed-0", f"{part}.csv")[0] for part in PARTS]
    for part, expected in zip(PARTS, file_scores, strict=True):
        assert evaluate("runs/seed-0", "--part", part) == (expected, f"all 40 examples of the run's {part} part", "")
    for words in ((), ("test.csv", "--part", "test")):
        assert "expected either a FILE or --part" in spen("evaluate", "runs/seed-0", *words, status=2).output
    write(Path("validation.csv"), 9)
    assert "validation.csv changed since" in spen("evaluate", "runs/seed-0", "--part", "test", status=1).output
    Path("test.csv").unlink()
    assert "test.csv" in spen("evaluate", "runs/seed-0", "--part", "test", status=2).output


def test_the_error_for_a_missing_file_names_the_folder_of_training(trained: Path, tmp_path: Path) -> None:
    run_folder = tmp_path / "copy/runs/seed-0"
    Path("elsewhere").mkdir()
    os.chdir("elsewhere")
    for words in (("evaluate", run_folder, "--part", "test"), ("calibrate", run_folder), ("decode", run_folder, "new")):
        message = " ".join(spen(*words, status=2).output.split())
        assert f"train.csv: found no such file; expected a file that exists: {run_folder} was trained on it" in message
        assert message.endswith(f"its path is relative to {trained}")


def test_a_part_of_one_file() -> None:
    shutil.rmtree("runs")
    spen("data", "split", "train.csv", "labels=tag_*")
    run("0", "data=train.csv", "split=train.split.json")
    _, split, messages = evaluate("runs/seed-0", "train.csv")
    assert split.startswith("all 40 examples") and "is the run's task.file" in messages
    rows = {part: len(indices) for part, indices in json.loads(Path("train.split.json").read_text()).items()}
    part_scores, split, messages = evaluate("runs/seed-0", "--part", "test")
    assert split == f"all {rows['test']} examples of the run's test part" and not messages
    stored = json.loads(Path("runs/seed-0/metrics.json").read_text())["test"]
    assert part_scores["example_f1"] == pytest.approx(stored["example_f1"])
    assert "holds the run's test part" in spen("calibrate", "runs/seed-0", "train.csv", status=2).output


def test_a_part_that_a_run_lacks() -> None:
    shutil.rmtree("runs")
    run("0", *DATA_FILES[:2])
    result = spen("evaluate", "runs/seed-0", "--part", "test", status=2)
    assert "has no test part; give a file with gold" in result.output
    assert ", use a file of other rows" in evaluate("runs/seed-0", "train.csv")[2]
