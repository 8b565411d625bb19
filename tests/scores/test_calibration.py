"""Temperatures, calibration errors and the probability of a span: closed forms, brute force, and whole runs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torchmetrics.functional.classification import binary_calibration_error

import spen_plugins as sp
from spen_plugins.builtin.nets.crf import CrfProposal
from spen_plugins.builtin.tasks.labels.text import TextLabels
from spen_plugins.builtin.tasks.roles.srl import SemanticRoles
from spen_plugins.builtin.tasks.tags.tagging import Tagging
from spen_plugins.console import Console
from spen_plugins.errors import ConfigError, DataError, RunError
from spen_plugins.runs.folder.summary import print_scores
from spen_plugins.scores.calibration import (
    BINS,
    Decisions,
    LabelConfidences,
    TagConfidences,
    calibrate,
    expected_calibration_error,
    fit_temperature,
    span_confidences,
)
from spen_plugins.scores.spans import SpanTable, chunks
from spen_plugins.spaces.chain import Chain
from tests import loaded

pytestmark = pytest.mark.usefixtures("whole_samples")

WORDS = ("Ann", "Lee", "met", "Bo", "Oslo", "in", "Rome")


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def draw_tags(scale: float, n: int = 20_000, k: int = 5) -> Decisions:
    """Tags drawn from a softmax, and a net whose logits are `scale` times those of the softmax."""
    source = np.random.default_rng(0)
    logits = 2 * source.normal(size=(n, k))
    gold = (softmax(logits).cumsum(1) > source.random((n, 1))).argmax(1)
    best = logits.argmax(1)
    return Decisions("tags", TagConfidences(softmax(scale * logits).astype(np.float32), best), best == gold)


def draw_labels(scale: float, n: int = 20_000) -> Decisions:
    source = np.random.default_rng(0)
    logits = 2 * source.normal(size=n)
    holds = source.random(n) < 1 / (1 + np.exp(-logits))
    return Decisions("labels", LabelConfidences((1 / (1 + np.exp(-scale * logits))).astype(np.float32)), holds)


@pytest.mark.parametrize("draw", [draw_tags, draw_labels])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_the_scale_of_logits_is_the_temperature(draw: Any, scale: float) -> None:
    calibration = calibrate({"validation": [draw(scale)]})
    assert calibration["temperature"] == pytest.approx(scale, rel=0.05)
    errors = calibration["validation"]
    assert errors["ece"] < 0.015 and errors["decisions"] == 20_000
    assert scale == 1.0 or errors["ece_uncalibrated"] > 3 * errors["ece"]


def test_the_error_of_a_few_decisions_by_hand() -> None:
    p = np.array([0.5, 0.52, 0.9, 0.92, 1.0, 0.0])
    right = np.array([True, False, True, True, False, False])
    # Fifteen bins: 0.5 and 0.52 in the eighth, 0.9 and 0.92 in the fourteenth, 1.0 in the last, 0.0 in the first.
    batches = [Decisions("labels", LabelConfidences(p[rows]), right[rows]) for rows in (slice(0, 4), slice(4, 6))]
    assert expected_calibration_error(batches) == pytest.approx((abs(1 - 1.02) + abs(2 - 1.82) + 1 + 0) / 6)
    assert expected_calibration_error([]) == 0
    all_right = Decisions("labels", LabelConfidences(p), np.ones(6, bool))  # nothing to fit: T = 1
    [bins] = [calibrate({"validation": [all_right]})["validation"]["bins"]]
    assert bins == [[1, 0.0, 1.0], [2, 0.51, 1.0], [2, 0.91, 1.0], [1, 1.0, 1.0]]


@pytest.mark.parametrize("draw", [draw_tags, draw_labels])
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_the_error_equals_that_of_torchmetrics(draw: Any, temperature: float) -> None:
    decisions = draw(3.0)
    p, right = torch.from_numpy(decisions.confidences.at(temperature)), torch.from_numpy(decisions.right).long()
    expected = binary_calibration_error(p.double(), right, n_bins=BINS, norm="l1").item()
    assert expected_calibration_error([decisions], temperature) == pytest.approx(expected, abs=1e-6) and expected > 0.02


def test_batches_do_not_matter() -> None:
    whole = draw_labels(2.0, 3000)
    p = whole.confidences.at(1.0)
    parts = [Decisions("labels", LabelConfidences(p[i::3]), whole.right[i::3]) for i in range(3)]
    calibration, expected = (calibrate({"validation": batches, "test": []}) for batches in (parts, [whole]))
    for fit in (calibration, expected):
        bins = np.array(fit["validation"].pop("bins"))
        assert (
            bins[:, 0].sum() == 3000 and len(bins) == BINS and (np.ceil(bins[:, 1] * BINS) == 1 + np.arange(BINS)).all()
        )
        error = np.average(np.abs(bins[:, 1] - bins[:, 2]), weights=bins[:, 0])
        assert error == pytest.approx(fit["validation"]["ece"], abs=1e-4)
    assert calibration["temperature"] == pytest.approx(expected["temperature"], abs=2e-4)
    assert calibration["validation"] == pytest.approx(expected["validation"], abs=1e-4)
    assert calibration["test"] == {"ece": 0.0, "ece_uncalibrated": 0.0, "decisions": 0, "bins": []}


def test_all_right_all_wrong_or_no_decisions_leave_nothing_to_fit() -> None:
    decisions = draw_tags(3.0, 50)
    for right in (np.ones(50, bool), np.zeros(50, bool)):
        assert fit_temperature([decisions._replace(right=right)]) == 1.0
    empty = Decisions("spans", TagConfidences(np.empty((0, 3), np.float32), np.empty(0, int)), np.empty(0, bool))
    assert calibrate({"validation": [empty], "test": [decisions]})["temperature"] == 1.0
    assert calibrate({"validation": []}) is None


def test_temperatures_are_bounded_where_nets_are_overconfident() -> None:
    p = np.array([[1.0, 0.0]] * 4, dtype=np.float32)
    decisions = Decisions("tags", TagConfidences(p, np.zeros(4, int)), np.array([True, False, False, False]))
    assert 0.05 <= fit_temperature([decisions]) <= 20
    assert np.isfinite(decisions.confidences.at(0.05)).all() and np.isfinite(decisions.confidences.at(20)).all()


def make_tagging(tags: list[str], encoding: str | None) -> Tagging:
    task = Tagging(Tagging.Config(train="-", validation="-", scheme="none" if encoding is None else encoding))
    task.restore({"words": list(WORDS), "columns": {}, "tags": tags})
    return task


def temper(p: list[float], tag: int, temperature: float) -> float:
    powers = [value ** (1 / temperature) for value in p]
    return powers[tag] / sum(powers)


@pytest.mark.parametrize("temperature", [1.0, 0.6, 2.5])
@pytest.mark.parametrize("encoding", ["bio", "bioes"])
def test_a_spans_probability_against_brute_force(encoding: str, temperature: float) -> None:
    kinds = ("LOC", "PER")
    prefixes = "BI" if encoding == "bio" else "BIES"
    tags = ["O", *(f"{prefix}-{kind}" for kind in kinds for prefix in prefixes)]
    task = make_tagging(tags, encoding)
    task.temperature = temperature
    torch.manual_seed(0)
    examples = [task.parse({"words": WORDS[:n]}) for n in (7, 3, 1, 5)]
    batch = task.collate(examples)
    proposal = task.space.independent(2 * torch.randn(4, 1, 7, len(tags)), batch.x.mask)
    long_spans = 0
    for i, answer in enumerate(task.predictions(proposal, batch, examples)):
        for entity in answer["entities"]:
            start, end = entity["start"], entity["end"]
            marginals = proposal.mean[i, 0].double().tolist()
            probabilities = [
                temper(marginals[t], tags.index(answer["tags"][t]), temperature) for t in range(start, end)
            ]
            if encoding == "bio" and end < len(answer["words"]):
                probabilities.append(1 - temper(marginals[end], tags.index(f"I-{entity['type']}"), temperature))
            assert entity["score"] == pytest.approx(min(probabilities), abs=1e-4)
            long_spans += end - start > 1
    assert long_spans, "no span of several words was looked at"


def test_an_argument_in_pieces_has_one_probability() -> None:
    task = SemanticRoles(SemanticRoles.Config(train="-", validation="-"))
    tags = ["O", "B-A1", "I-A1", "B-C-A1", "B-V"]
    task.restore({"words": list(WORDS), "tags": tags})
    predicted = ("B-A1", "I-A1", "B-V", "B-C-A1")
    whole = {"words": WORDS[:4], "predicate": 2, "tags": predicted}
    first = {"words": WORDS[:4], "predicate": 2, "tags": ("B-A1", "I-A1", "B-V", "O")}
    examples = [task.parse(whole), task.parse(first), task.parse({"words": WORDS[:4], "predicate": 2})]
    batch = task.collate(examples)
    logits = torch.zeros(3, 1, 4, len(tags))
    for t, (tag, height) in enumerate(zip(predicted, (9.0, 8.0, 1.0, 2.0), strict=True)):
        logits[:, 0, t, tags.index(tag)] = height
    proposal = task.space.independent(logits, batch.x.mask)
    lowest = float(proposal.mean[0, 0, 3, tags.index("B-C-A1")])
    for answer in task.predictions(proposal, batch, examples):
        assert [(a["role"], a["score"]) for a in answer["arguments"]] == [
            ("A1", pytest.approx(lowest, abs=1e-4)),
            ("C-A1", pytest.approx(lowest, abs=1e-4)),
        ]
    decisions = task.decisions(proposal, batch)
    assert decisions.kind == "arguments" and decisions.right.tolist() == [True, False]
    assert decisions.confidences.at(1.0) == pytest.approx([lowest, lowest])


def test_predictions_equal_to_gold_are_right() -> None:
    task = make_tagging(["O", "B-PER", "I-PER", "B-LOC"], "bio")
    gold = {"words": WORDS[:4], "tags": ["B-PER", "I-PER", "O", "B-LOC"]}
    examples = [task.parse({"words": WORDS[:2]}), task.parse(gold)]
    batch = task.collate(examples)
    predicted = torch.tensor([[1, 2, 0, 0], [1, 2, 0, 1]])
    proposal = task.space.independent(5.0 * torch.nn.functional.one_hot(predicted, 4).unsqueeze(1), batch.x.mask)
    decisions = task.decisions(proposal, batch)
    assert decisions.kind == "spans" and decisions.right.tolist() == [True, False], "unlabelled sentences don't count"
    assert task.decisions(proposal, task.collate(examples[:1])) is None

    task = make_tagging(["DET", "NOUN"], None)
    examples = [task.parse({"words": WORDS[:2], "tags": ["NOUN", "UNSEEN"]}), task.parse({"words": WORDS[:3]})]
    batch = task.collate(examples)
    logits = torch.randn(2, 1, 3, 2)
    logits[0, 0, :, 1] = 9
    proposal = task.space.independent(logits, batch.x.mask)
    decisions = task.decisions(proposal, batch)
    assert decisions.kind == "tags" and decisions.right.tolist() == [True, False]
    assert decisions.confidences.at(1.0) == pytest.approx(proposal.mean[0, 0, :2, 1].numpy())


def drop_scores(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {k: drop_scores(v) for k, v in answer.items() if k not in ("score", "scores", "probabilities")}
    return [drop_scores(value) for value in answer] if isinstance(answer, list) else answer


def list_scores(answer: Any) -> list[float]:
    """All probabilities of a prediction, in its order."""
    if isinstance(answer, dict):
        scores = [answer[name] for name in ("score",) if name in answer] + answer.get("scores", [])
        scores += list(answer.get("probabilities", {}).values())
        return scores + [p for value in answer.values() for p in list_scores(value)]
    return [p for value in answer for p in list_scores(value)] if isinstance(answer, list) else []


def test_labels_are_chosen_before_calibration_and_shown_after() -> None:
    task = TextLabels(TextLabels.Config(corpus="sample", threshold=0.7))
    flags = {"numbered": False, "unspaced": False}
    task.restore({"words": ["a"], "labels": list("vwxyz"), **flags, "threshold": 0.7, "split": ""})
    p = torch.tensor([[0.9, 0.6, 0.71, 0.01, 0.5]])
    examples = [task.parse({"text": "a", "labels": ["v"]})]
    batch = task.collate(examples)
    proposal = task.space.independent(torch.logit(p).unsqueeze(1), None)
    task.temperature = 2.0
    [answer] = task.predictions(proposal, batch, examples)
    assert answer["labels"] == ["v", "x"], "0.71 is above the threshold, though 0.61 is shown"
    by_hand = [1 / (1 + np.exp(-np.log(q / (1 - q)) / 2)) for q in (0.9, 0.71, 0.6, 0.5, 0.01)]
    assert list(answer["probabilities"].values()) == pytest.approx(by_hand, abs=1e-5)
    assert task.decisions(proposal, batch).right.tolist() == [True, False, False, False, False]


def test_a_crf_tempers_its_marginals() -> None:
    task = make_tagging(["O", "B-PER", "I-PER"], "bio")
    examples = [task.parse({"words": WORDS[:n]}) for n in (5, 2)]
    batch = task.collate(examples)
    torch.manual_seed(1)
    chain = Chain(torch.randn(3, 3), torch.randn(3), torch.randn(3))
    proposal = CrfProposal(task.space, 3 * torch.randn(2, 1, 5, 3), batch.x.mask, chain=chain)
    answers = task.predictions(proposal, batch, examples)
    assert list_scores(answers)
    marginals = task.space.independent(torch.log(proposal.mean), batch.x.mask)
    best, lengths, table = proposal.mode[:, 0].argmax(-1).numpy(), np.array([5, 2]), SpanTable(task.space.tags)
    spans = table.spans(best, lengths)
    confidences = [span_confidences(q.mean[:, 0], best, spans, lengths, table.goes_on) for q in (proposal, marginals)]
    assert confidences[0].at(1.7) == pytest.approx(confidences[1].at(1.7), abs=1e-5)
    assert list_scores(answers) == pytest.approx(confidences[0].at(1.0), abs=1e-4)


RUNS: dict[str, tuple[str, dict[str, str], Any, str]] = {
    "pos": ("tags", {"trainer.epochs": "1"}, {"words": ["The", "garden", "grows"]}, "tags"),
    "ner": ("names", {"trainer.epochs": "3"}, {"words": ["Florence", "Weber", "left", "Oslo"]}, "spans"),
    "srl": (
        "srl_seal",
        {"trainer.epochs": "3"},
        {"words": ["Anna", "sent", "a", "letter"], "predicate": 1},
        "arguments",
    ),
    "mlc": ("labels", {"trainer.epochs": "1"}, {"features": {}}, "labels"),
    "text": ("texts", {"trainer.epochs": "1"}, {"text": "What a day!"}, "labels"),
}


@pytest.fixture(scope="module")
def train_once(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns the folder of a run by name; trains the run on first use."""
    folders: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in folders:
            config, arguments, _, _ = RUNS[name]
            folder = tmp_path_factory.mktemp("runs") / name
            folders[name] = loaded.trained(config, folder, **({"method": "cross_entropy"} | arguments))
        return folders[name]

    return get


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_calibrated_on_its_validation_part(train_once: Any, name: str, tmp_path: Path) -> None:
    run = Path(shutil.copytree(train_once(name), tmp_path / "run"))
    calibration = json.loads((run / "calibration.json").read_text())
    *_, item, kind = RUNS[name]
    assert list(calibration) == ["temperature", "decisions", "validation", "test"] and calibration["decisions"] == kind
    assert calibration["validation"]["decisions"] > 50 and set(calibration["test"]) == {
        "ece",
        "ece_uncalibrated",
        "decisions",
        "bins",
    }
    predictor = sp.load(run)
    assert predictor.task.temperature == calibration["temperature"]
    (run / "calibration.json").unlink()
    plain = sp.load(run)
    assert plain.task.temperature == 1.0
    items = [item, *([item] * 3)]
    [calibrated, *_], [uncalibrated, *_] = predictor.predict(items), plain.predict(items)
    assert drop_scores(calibrated) == drop_scores(uncalibrated), "no decision depends on the temperature"
    assert all(0 <= p <= 1 for p in list_scores(calibrated))
    if kind in ("tags", "labels"):
        assert list_scores(calibrated) and (
            list_scores(calibrated) != list_scores(uncalibrated) or calibration["temperature"] == 1.0
        )
    refitted = plain.calibrate()
    assert refitted["temperature"] == pytest.approx(calibration["temperature"], rel=1e-3)
    assert json.loads((run / "calibration.json").read_text()) == refitted
    assert refitted["validation"]["ece"] == pytest.approx(calibration["validation"]["ece"], abs=1e-3)
    assert plain.task.temperature == refitted["temperature"]


@pytest.mark.parametrize("name", ["ner", "pos", "srl"])
def test_scores_do_not_depend_on_the_rest_of_the_batch(train_once: Any, name: str) -> None:
    predictor = sp.load(train_once(name))
    item = RUNS[name][2]
    longer = {**item, "words": item["words"] * 4}
    [batched, _], [single] = predictor.predict([item, longer]), predictor.predict([item])
    assert drop_scores(batched) == drop_scores(single)
    assert list_scores(batched) == pytest.approx(list_scores(single), abs=2e-4)


def test_spen_calibrate(train_once: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Path(shutil.copytree(train_once("pos"), tmp_path / "run"))
    file = tmp_path / "gold.conll"
    file.write_text("The\tDET\nold\tADJ\ntrain\tVERB\n\nThey\tPRON\ntrain\tVERB\n")
    calibration = json.loads(loaded.spen("calibrate", run, file).stdout)
    assert calibration == json.loads((run / "calibration.json").read_text())
    assert calibration["file"] == str(file) and calibration["validation"]["decisions"] == 5
    (run / "calibration.json").write_text(json.dumps(calibration | {"temperature": 0.05}))
    console = Console(record=True)
    print_scores(console, sp.RunFolder(run))
    assert "warning: temperature 0.05 is an end of its range, 0.05 to 20: the 5 decisions on" in console.export_text()
    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="temperature 0.05 is an end of its range"):
        patch.setattr("spen_plugins.scores.calibration.fit_temperature", lambda decisions: 0.05)
        sp.load(run).calibrate(file)
    assert calibration == json.loads(loaded.spen("calibrate", run, file).stdout)
    file.write_text("The\nold\ntrain\n")
    result = loaded.spen("calibrate", run, file, status=DataError.exit_status)
    assert "found no gold outputs" in result.output
    assert json.loads((run / "calibration.json").read_text()) == calibration


def test_runs_that_cannot_be_calibrated_are_reported(
    train_once: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(train_once("pos"), tmp_path / "run"))
    predictor = sp.load(run)
    monkeypatch.setattr(predictor.task, "decisions", lambda proposal, batch: None)
    with pytest.raises(ConfigError, match="'tagging' reports no probabilities"):
        predictor.calibrate()
    facts = json.loads((run / "vocabulary.json").read_text())
    facts["words"] = facts["words"][::-1]
    (run / "vocabulary.json").write_text(json.dumps(facts))
    with pytest.raises(RunError, match=rf"^words changed since {re.escape(str(run))} was trained\. "):
        sp.load(run).calibrate()
    (run / "calibration.json").write_text("[]")
    with pytest.raises(RunError, match=r"calibration\.json is damaged"):
        sp.load(run)


def test_spans_of_bioes_tables_equal_those_of_single_sentences() -> None:
    tags = ["O", *(f"{prefix}-{kind}" for kind in ("LOC", "PER") for prefix in "BIES")]
    source = np.random.default_rng(0)
    numbers, lengths = source.integers(len(tags), size=(200, 9)), source.integers(1, 10, 200)
    table = SpanTable(tags)
    spans_by_row: list[set] = [set() for _ in numbers]
    for row, kind, first, last in table.spans(numbers, lengths).tolist():
        spans_by_row[row].add((table.roles[kind], first, last + 1))
    for row, length, spans in zip(numbers, lengths, spans_by_row, strict=True):
        assert spans == chunks([tags[i] for i in row[:length]])
