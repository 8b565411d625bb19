"""Decoding of spans by their posteriors: decoders chosen on validation, stored in runs, scored and reported."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import spen_plugins as sp
from spen_plugins.errors import ConfigError
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.scores.span_decoding import THRESHOLDS, SpanDecoder, SpanFit
from tests.loaded import in_memory, loaded, spen

NAMES = {"corpus": "ner", "scheme": "bio"}
ROLES = {"corpus": "sample"}


def make_noisy_proposal(task: Any, part: str, noise: float) -> tuple[Any, Any]:
    """A proposal near the gold of a part, and the batch."""
    torch.manual_seed(0)
    batch = task.collate(task.part(part)[:60])
    logits = 3 * batch.gold + noise * torch.randn_like(batch.gold)
    return task.space.independent(logits, batch.x.mask), batch


@pytest.mark.parametrize(("name", "fields"), [("tagging", NAMES), ("srl", ROLES)], ids=["names", "roles"])
def test_the_validation_part_chooses_the_best_decoder(name: str, fields: dict[str, Any]) -> None:
    tasks = {}
    for decode in ("viterbi", "expected_f1", "validation"):
        task = loaded(name, decode=decode, **fields)
        proposal, batch = make_noisy_proposal(task, "validation", 1.5)
        metric = task.metric()
        metric.update(proposal, batch)
        task.fit_threshold(metric)
        scores = {}
        for decoder in SpanFit("validation").decoders():
            fixed = loaded(name, **{**make_settings(decoder), **fields})
            fixed_metric = fixed.metric()
            fixed_metric.update(proposal, batch)
            scores[decoder] = fixed_metric.compute()[task.selection]
        decoders = SpanFit(decode).decoders()
        assert task.decoder in decoders and metric.compute()[task.selection] == max(scores[d] for d in decoders)
        assert torch.equal(task.decode(proposal), task.decoder(proposal))
        tasks[decode] = task
    assert tasks["viterbi"].decoder == SpanDecoder() and tasks["viterbi"].protocol()["threshold"] is None
    assert "picked on validation" in tasks["validation"].protocol()["threshold"]
    task = tasks["expected_f1"]
    restored = loaded(name, decode="expected_f1", **fields)
    restored.restore(json.loads(json.dumps(task.facts())))
    assert restored.decoder == task.decoder and restored.protocol()["threshold"] == task.protocol()["threshold"]
    assert loaded(name, **{**fields, **task.decoder_settings()}).decoder == task.decoder


def make_settings(decoder: SpanDecoder) -> dict[str, Any]:
    return {} if decoder.threshold is None else {"decode": "expected_f1", "threshold": decoder.threshold}


def test_an_output_chosen_by_the_net_is_kept() -> None:
    task = loaded("tagging", decode="validation", **NAMES)
    proposal, batch = make_noisy_proposal(task, "validation", 1.0)
    chosen = replace(proposal, chosen=batch.gold)
    metric = task.metric()
    metric.update(chosen, batch)
    task.fit_threshold(metric)
    assert task.decoder == SpanDecoder() and metric.compute()["f1"] == 1.0
    task.decoder = SpanDecoder(0.1)
    assert torch.equal(task.decode(chosen), batch.gold)


def test_confidences_are_posteriors() -> None:
    task = in_memory(
        "tagging",
        {"train": ([["Ann", "Lee"], ["x"]], [["B-P", "I-P"], ["O"]])},
        scheme="bio",
        decode="expected_f1",
        threshold=0.3,
    )
    batch = task.collate([task.parse(["Ann", "Lee"])])
    p = torch.tensor([[[[0.1, 0.8, 0.1], [0.3, 0.1, 0.6]]]])
    proposal = task.space.independent(p.log(), batch.x.mask)
    [prediction] = task.predictions(proposal, batch, batch.examples)
    assert prediction["tags"] == ["B-P", "I-P"] and prediction["entities"][0]["score"] == pytest.approx(0.48)
    task.temperature = 2.0
    [prediction] = task.predictions(proposal, batch, batch.examples)
    odds = (0.48 / 0.52) ** 0.5
    assert prediction["entities"][0]["score"] == pytest.approx(odds / (1 + odds), abs=1e-4)


def test_pieces_of_an_argument_have_the_lowest_of_their_posteriors() -> None:
    task = loaded("srl", decode="expected_f1", threshold=0.05, **ROLES)
    proposal, batch = make_noisy_proposal(task, "validation", 1.5)
    decisions = task.decisions(proposal, batch)
    posteriors = task.decoder.posteriors(proposal)
    p = decisions.confidences.at(1.0)
    assert len(p) == len(decisions.right) and np.isin(p, posteriors.p.numpy()).all()
    assert (p > 0.05).all()


def test_core_roles_are_unique_if_required() -> None:
    fields = {"decode": "expected_f1", "threshold": 0.05, **ROLES}
    unlimited, unique = loaded("srl", **fields), loaded("srl", unique_roles=True, **fields)
    for task in (unlimited, unique):
        proposal, batch = make_noisy_proposal(task, "validation", 2.5)
        metric = task.metric()
        metric.update(proposal, batch)
        assert (metric.compute()["ucr"] > 0) == (task is unlimited)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"threshold": 0.3}, "requires task.decode=expected_f1"),
        ({"decode": "expected_f1", "scheme": "none", "corpus": "pos"}, "a task.scheme of spans"),
        ({"decode": "expected_f1", "constrained": False}, "task.constrained=true"),
    ],
)
def test_settings_without_effect_are_errors(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loaded("tagging", **{**NAMES, **fields})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "crf"
    settings = {"trainer.epochs": 2, "features.hidden": 8}
    sp.train("names", method="crf", out=path, quiet=True, device="cpu", **settings)
    return path


def test_a_run_can_be_decoded_again(run: Path, tmp_path: Path) -> None:
    spen("decode", run, tmp_path / "f1", "--by", "expected_f1")
    decoded = RunFolder.open(tmp_path / "f1")
    assert decoded.config()["task"]["decode"] == "expected_f1" and decoded.facts()["threshold"] in THRESHOLDS
    assert "without overlap" in decoded.metrics()["protocol"]["threshold"]
    predictor = sp.load(tmp_path / "f1")
    assert predictor.evaluate_file(part="test")["scores"]["f1"] == decoded.metrics()["test"]["f1"]
    assert (
        predictor.calibrate()["temperature"]
        == json.loads((tmp_path / "f1/calibration.json").read_text())["temperature"]
    )
    spen("decode", run, tmp_path / "viterbi", "--by", "viterbi")
    assert RunFolder.open(tmp_path / "viterbi").metrics()["test"] == RunFolder.open(run).metrics()["test"]
    for arguments, message in (
        (("--by", "threshold"), "task.decode"),
        (("--by", "viterbi", "--threshold", "0.2"), "omit --threshold"),
        (("--by", "expected_f1", "--temperature", "2"), "omit --temperature"),
    ):
        assert message in spen("decode", run, tmp_path / "other", *arguments, status=2).output
        assert not (tmp_path / "other").exists()


def test_a_run_chooses_its_decoder_during_training(tmp_path: Path) -> None:
    settings = {"trainer.epochs": 2, "task.decode": "validation"}
    sp.train("roles", method="crf", out=tmp_path / "run", quiet=True, device="cpu", **settings)
    folder = RunFolder.open(tmp_path / "run")
    assert "picked on validation" in folder.metrics()["protocol"]["threshold"]
    scores = sp.load(tmp_path / "run").evaluate_file(part="test")["scores"]
    assert scores["span_f1"] == folder.metrics()["test"]["span_f1"]
