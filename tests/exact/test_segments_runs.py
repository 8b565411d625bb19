"""Runs by `method=segments`: names, roles, decoding, likelihood as an energy, scikit-learn's probabilities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spen_plugins as sp
from spen_exact.segments import Segments, SegmentsNet
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.sklearn import SequenceTagger
from spen_plugins.testing import ToyFeatures, ToyTags
from spen_plugins.testing.comparing import collate
from tests.loaded import built, parsed, spen

FEW = {"trainer.epochs": 2, "features.hidden": 8, "inference_net.size": 4}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "segments"
    sp.train("names", method="segments", out=path, quiet=True, device="cpu", **FEW)
    return path


def test_a_run_predicts_and_is_redecoded(run: Path, tmp_path: Path) -> None:
    [answer] = sp.load(run).predict([["Ann", "left", "for", "Rome"]])
    assert len(answer["tags"]) == 4 and all(0 <= entity["score"] <= 1 for entity in answer["entities"])
    spen("decode", run, tmp_path / "f1", "--by", "expected_f1")
    folder = RunFolder.open(tmp_path / "f1")
    scores = sp.load(tmp_path / "f1").evaluate_file(part="test")["scores"]
    assert scores["f1"] == folder.metrics()["test"]["f1"] and scores["invalid"] == folder.metrics()["test"]["invalid"]


def test_roles_have_unique_core_roles_if_asked(tmp_path: Path) -> None:
    settings = {**FEW, "task.unique_roles": True, "inference_net.longest": 2}
    sp.train("roles", method="segments", out=tmp_path / "run", quiet=True, device="cpu", **settings)
    assert RunFolder.open(tmp_path / "run").metrics()["test"]["ucr"] == 0


@pytest.mark.parametrize("config", ["names", "roles"])
def test_the_energy_learns_by_its_likelihood_and_teaches(config: str, tmp_path: Path) -> None:
    settings = {"energy.size": 4, "trainer.energy_epochs": 1, "trainer.epochs": 1, "features.hidden": 8}
    sp.train(config, method="static_segments", out=tmp_path / "run", quiet=True, device="cpu", **settings)
    assert RunFolder.open(tmp_path / "run").config()["energy"]["type"] == "exact.segments"
    history = (tmp_path / "run/history.jsonl").read_text()
    assert "distillation" in history and "NaN" not in history


def test_noise_contrast_uses_the_nets_samples() -> None:
    """The noise of NCE is q itself, so gold scores −E − ln q."""
    task = ToyTags()
    net = SegmentsNet(SegmentsNet.Config(size=4), task, ToyFeatures(task)).double()
    loss, config = parsed("energy_loss", "seal.nce", samples=3)
    energy = Segments(Segments.Config(size=4), task, ToyFeatures(task)).double()
    sentences = [(ToyTags.WORDS[2 : 2 + n], [0] * n, [1, 2, 0, 3][:n]) for n in (4, 2)]
    batch = collate(task, sentences)
    value = loss(config, task).terms(energy.at(batch.x), batch, net(batch.x))
    assert all(term.shape == (2,) and term.isfinite().all() for term in value.values())


@pytest.mark.parametrize("config", ["names", "roles", "tags"])
def test_the_configs_have_the_method(config: str) -> None:
    fields = {"task.scheme": "bio", "task.corpus": "ner"} if config == "tags" else {}
    net = built(config, method="segments", **fields).model.inference_net
    assert type(net).__name__ == "SegmentsNet"


def test_probabilities_of_words_sum_to_one() -> None:
    words = [["Ann", "Lee", "met", "Bo"], ["Bo", "left"], ["Ann", "Bo", "Lee"]] * 8
    tags = [["I-P", "I-P", "O", "I-P"], ["I-P", "O"], ["I-P", "B-P", "I-P"]] * 8
    tagger = SequenceTagger(method="segments", device="cpu", **FEW).fit(words, tags)
    assert tagger.scheme_ == "iob1"
    for row in tagger.predict_proba(words[:3]):
        np.testing.assert_allclose(row.sum(1), 1)


def test_spacy_finds_the_same_names(run: Path, tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    spen("decode", run, tmp_path / "f1", "--by", "expected_f1", "--threshold", "0.05")
    for folder in (run, tmp_path / "f1"):
        nlp = spacy.blank("en")
        nlp.add_pipe("spen_ner", config={"model": str(folder)})
        words = ["Ann", "Lee", "met", "Bob", "in", "Rome", "."]
        doc = nlp(spacy.tokens.Doc(nlp.vocab, words))
        [answer] = sp.load(folder).predict([words])
        entities = [(span.label_, span.start, span.end) for span in doc.ents]
        assert entities == [(entity["type"], entity["start"], entity["end"]) for entity in answer["entities"]]
