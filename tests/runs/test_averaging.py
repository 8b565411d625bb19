"""The mean of several runs: `spen decode RUNS OUT --mean`, greedy selection, and folders that predict with a mean."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import spen_plugins as sp
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.runs.folder.folder import MEAN, RunFolder
from spen_plugins.runs.many import means
from spen_plugins.runs.train import averaging
from spen_plugins.runs.train.averaging import average_runs, name_runs, select
from spen_plugins.runs.train.decoding import check_decodes
from tests.loaded import QUIET, spen, spen_run, trained

LABELS = ["trainer.epochs=1", "trainer.epoch_updates=8", "trainer.batch_size=128", "features.hidden=[8]"]
LABELS += ["task.threshold=validation", "--device", "cpu"]
VECTORS = [{"vector": np.random.default_rng(i).integers(0, 2, 300).tolist()} for i in range(5)]
SENTENCES = [{"words": ["Anna", "lives", "in", "New", "York", "."]}, {"words": ["Rain"]}]


@pytest.fixture(scope="module")
def methods_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods with two seeds."""
    out = tmp_path_factory.mktemp("means") / "both"
    spen_run("labels", *LABELS, "methods=cross_entropy,nce", "seeds=0..1", "--out", out, "--quiet", "--best")
    return out


@pytest.fixture(scope="module")
def tag_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A net and a CRF with word vectors, whose file is gone."""
    folder = tmp_path_factory.mktemp("names")
    vectors = folder / "vectors.txt"
    vectors.write_text("anna 0.1 0.2\nyork 0.3 0.4\n")
    runs = [
        trained("names", folder / method, method=method, vectors=str(vectors), **{"trainer.epochs": "1"})
        for method in ("cross_entropy", "crf")
    ]
    vectors.unlink()
    return runs


def list_runs(methods_folder: Path) -> list[Path]:
    return [methods_folder / method / f"seed-{seed}" for method in ("cross_entropy", "nce") for seed in (0, 1)]


def compute_probabilities(run: Path, items: list | None = None) -> list[np.ndarray]:
    """The mean of each item's proposal."""
    predictor = sp.load(run)
    examples = [predictor.task.parse(item) for item in items or VECTORS]
    means = {}
    for proposal, batch, rows in predictor.proposals(examples):
        for i, row in enumerate(rows):
            mask = ... if batch.x.mask is None else batch.x.mask[i]
            means[row] = proposal.mean[i, 0].detach().numpy()[mask]
    return [means[row] for row in sorted(means)]


def test_the_mean_of_one_run_is_that_run(methods_folder: Path, tmp_path: Path) -> None:
    run = methods_folder / "cross_entropy/seed-1"
    average_runs([run], tmp_path / "x", options=QUIET)
    assert sp.load(tmp_path / "x").predict(VECTORS) == sp.load(run).predict(VECTORS)
    mean, member = RunFolder(tmp_path / "x"), RunFolder(run)
    for part in ("validation", "test"):
        assert mean.metrics()[part] == member.metrics()[part]
    assert mean.calibration() == member.calibration() and mean.facts() == member.facts()


def test_probabilities_are_the_mean_of_the_runs_own(methods_folder: Path, tmp_path: Path) -> None:
    runs = list_runs(methods_folder)[1:]
    spen("decode", methods_folder / "cross_entropy/seed-1", methods_folder / "nce", tmp_path / "x", "--mean")
    expected = np.mean([compute_probabilities(run) for run in runs], axis=0)
    np.testing.assert_allclose(compute_probabilities(tmp_path / "x"), expected, atol=1e-6)
    folder = RunFolder(tmp_path / "x")
    names = ["cross_entropy-seed-1", "nce-seed-0", "nce-seed-1"]
    assert {name.split(".")[2] for name in folder.weights()} == set(names)
    assert folder.metrics()["protocol"]["mean_of"] == ", ".join(names)
    seconds = [sum(time["seconds"] for time in RunFolder(run).times()) for run in (*runs, tmp_path / "x")]
    assert seconds[-1] == pytest.approx(sum(seconds[:-1]))
    assert folder.config()["task"]["decode"] == "validation"


def test_a_mean_is_a_run_like_any_other(tag_runs: list[Path], tmp_path: Path) -> None:
    """The mean of a CRF and a net predicts, is scored, calibrated, exported and averaged again without its runs."""
    runs = [Path(shutil.copytree(run, tmp_path / run.name)) for run in tag_runs]
    expected_probabilities = [
        np.mean(pair, 0) for pair in zip(*(compute_probabilities(run, SENTENCES) for run in runs), strict=True)
    ]
    spen("decode", *runs, tmp_path / "x", "--mean")
    for run in runs:
        shutil.rmtree(run)
    for actual, expected in zip(compute_probabilities(tmp_path / "x", SENTENCES), expected_probabilities, strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-6)
    mean = sp.load(tmp_path / "x")
    assert mean.evaluate_file(part="test")["scores"] == RunFolder(tmp_path / "x").metrics()["test"]
    calibration = RunFolder(tmp_path / "x").calibration()
    assert mean.calibrate()["validation"] == calibration["validation"]
    mean.save(tmp_path / "small", energy=False, half=False)
    assert sp.load(tmp_path / "small").predict(SENTENCES) == mean.predict(SENTENCES)
    average_runs([tmp_path / "x"], tmp_path / "again", options=QUIET)
    assert sp.load(tmp_path / "again").predict(SENTENCES) == mean.predict(SENTENCES)
    with pytest.raises(ConfigError, match="no energy to score outputs with: name one of its runs"):
        mean.predict(SENTENCES, energy=True)


def test_greedy_selection_follows_its_definition() -> None:
    """Against all ensembles of three, with scores drawn at random."""
    rng = random.Random(0)
    for _ in range(50):
        scores = {
            frozenset(members): rng.random() for n in (1, 2, 3) for members in itertools.combinations(range(3), n)
        }
        order: list[int] = []
        for _ in range(3):
            order.append(max(set(range(3)) - {*order}, key=lambda i: scores[frozenset([*order, i])]))
        path = [scores[frozenset(order[: n + 1])] for n in range(3)]
        chosen, chosen_scores = select(3, lambda members, scores=scores: scores[frozenset(members)])
        assert chosen == order[: path.index(max(path)) + 1] and chosen_scores == path[: len(chosen)]
        assert chosen_scores[-1] >= max(scores[frozenset([i])] for i in range(3))
    assert select(3, lambda members: 1.0) == ([0], [1.0])


def test_the_mean_of_chosen_runs_scores_as_selection_reported(methods_folder: Path, tmp_path: Path) -> None:
    members = averaging.open_members(list_runs(methods_folder))
    task = averaging.load_own_data(members[0].experiment, members[0].folder, "Train again")
    chosen, scores = averaging.choose_members(members, task, QUIET)
    assert max(scores) == scores[-1] >= max(run.folder.metrics()["validation"]["example_f1"] for run in members)
    spen("decode", methods_folder, tmp_path / "x", "--mean", "--choose", "--by", "threshold")
    folder = RunFolder(tmp_path / "x")
    assert folder.metrics()["validation"]["example_f1"] == pytest.approx(scores[-1])
    assert list(folder.config()["inference_net"]["nets"]) == [member.name for member in chosen]
    assert len(folder.environment()["mean"]["candidates"]) == 4


def test_names_of_runs_are_keys() -> None:
    assert name_runs([Path("a/b.c/seed-0"), Path("a/d/seed-0")]) == ["b-c-seed-0", "d-seed-0"]
    assert name_runs([Path("x/train"), Path("x/a.b"), Path("x/a b")]) == ["run-train", "a-b", "a-b-2"]


def test_runs_of_other_data_or_with_an_energy_that_predicts_are_rejected(
    methods_folder: Path, tag_runs, tmp_path: Path
) -> None:
    run = methods_folder / "cross_entropy/seed-0"
    message = spen("decode", run, tag_runs[0], tmp_path / "x", "--mean", status=2).stderr
    assert "can't be averaged, as they differ in task" in message and "expected runs of one task" in message
    other = Path(shutil.copytree(run, tmp_path / "other"))
    facts = json.loads((other / "vocabulary.json").read_text())
    (other / "vocabulary.json").write_text(json.dumps({**facts, "labels": facts["labels"][::-1], "threshold": 0.9}))
    message = spen("decode", run, other, tmp_path / "x", "--mean", status=2).stderr
    assert "differ in labels;" in message
    descent = trained("labels", tmp_path / "spen", method="spen", **{"trainer.epochs": "1", "features.hidden": "[8]"})
    assert "Gbi predicts with an energy" in spen("decode", run, descent, tmp_path / "x", "--mean", status=2).stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--choose"], "add --mean"),
        (["--mean", "--refine", "rerank"], "omit --refine or --mean"),
        ([], "found 2 runs and OUT"),
    ],
)
def test_options_that_exclude_each_other(methods_folder: Path, tmp_path: Path, words: list[str], message: str) -> None:
    runs = list_runs(methods_folder)[: 1 if words else 2]
    assert message in spen("decode", *runs, tmp_path / "x", *words, status=2).stderr


def test_a_mean_of_tags_has_no_threshold_decoder(tag_runs: list[Path], tmp_path: Path) -> None:
    message = spen("decode", *tag_runs, tmp_path / "x", "--mean", "--by", "threshold", status=2).stderr
    assert "'task.decode'" in message and 'expected "viterbi" | "expected_f1" | "validation"' in message


def test_tags_without_spans_have_one_decoder(tmp_path: Path) -> None:
    small = {"method": "cross_entropy", "trainer.epochs": "1"}
    runs = [trained("tags", tmp_path / seed, seed=seed, **small) for seed in "01"]
    spen("decode", *runs, tmp_path / "x", "--mean")
    assert RunFolder(tmp_path / "x").metrics()["protocol"]["decoding"] == "the net's best, of all sequences"
    assert "decode" not in RunFolder(tmp_path / "x").facts()


def test_a_decoder_that_is_not_fitted_cannot_be_replaced() -> None:
    experiment = SimpleNamespace(task=SimpleNamespace(type="trees", cls=object))
    with pytest.raises(sp.ConfigError, match=r"whose decoder isn't fitted on validation.*train again"):
        check_decodes(Path("run"), experiment)


def test_a_folder_of_methods_and_seeds_predicts_with_a_mean(methods_folder: Path, tmp_path: Path, monkeypatch) -> None:
    folder = Path(shutil.copytree(methods_folder, tmp_path / "both"))
    best = json.loads((folder / "methods.json").read_text())["run"]
    assert sp.load(folder).folder.path == folder / best and not (folder / MEAN).exists()

    def choose_all(members, task, options):
        calls.append(len(members))
        return list(members), [0.1, 0.2, 0.3, 0.4]

    calls: list[int] = []
    monkeypatch.setattr(means, "choose_members", choose_all)
    message = " ".join(spen_run("--resume", folder, "--device", "cpu").stdout.split())
    assert (
        "predicts with the mean of 4 of 4 runs, chosen on the validation part: " in message and " (40.00; " in message
    )
    record = json.loads((folder / "methods.json").read_text())
    assert record["run"] == best == record["mean"]["candidates"][0]
    seconds = sum(time["seconds"] for run in list_runs(folder) for time in RunFolder(run).times())
    assert record["mean"]["seconds"] == pytest.approx(seconds) and f"training took {seconds:.0f} s in total" in message
    assert sp.load(folder).folder.path == folder / MEAN and len(sp.load(folder).model.inference_net.nets) == 4
    assert RunFolder.open(folder).path == folder / best
    assert f"| {MEAN} |" in spen("compare", folder).stdout
    spen_run("--resume", folder, "--device", "cpu")  # not computed again
    assert calls == [4]
    spen("decode", folder, tmp_path / "again", "--mean")
    assert len(sp.load(tmp_path / "again").model.inference_net.nets) == 4
    spen_run("--resume", folder, "--device", "cpu", "--best")
    assert sp.load(folder).folder.path == folder / best


def test_a_folder_whose_runs_have_no_mean_predicts_with_its_best(
    methods_folder: Path, tmp_path: Path, monkeypatch
) -> None:
    folder = Path(shutil.copytree(methods_folder, tmp_path / "both"))
    best = json.loads((folder / "methods.json").read_text())["run"]

    def fail(*arguments):
        raise RunError("the data changed")

    for choose, message in (
        (fail, "can't be averaged: the data changed"),
        (lambda m, *_: (m[:1], [0.5]), f"no mean of its runs scores better on validation than {best} alone"),
    ):
        monkeypatch.setattr(means, "choose_members", choose)
        assert message in " ".join(spen_run("--resume", folder, "--device", "cpu").stdout.split())
        assert sp.load(folder).folder.path == folder / best and not (folder / MEAN).exists()


def test_best_requires_several_methods(tmp_path: Path) -> None:
    assert "--best requires several methods" in spen_run("labels", "--best", "--out", tmp_path / "x", status=2).stderr
