"""The methods of the configs, from training to prediction."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.nets.choosers import Reweight
from spen_plugins.errors import ConfigError
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.testing import ToyLabels
from tests.decoders.test_sequences import proposed
from tests.exact.toys import all_sets
from tests.loaded import experiment, loaded
from tests.seal.toys import Table

WRITER = {"inference_net.dim": 8, "inference_net.embedding": 4, "inference_net.samples": 4}
READER = {"features.longest": 8, "features.reader.hidden": 4, "features.reader.word_dim": 8}
FEW = {"trainer.epochs": 1, "trainer.epoch_updates_at_most": 5}


def train(config: str, out: Path, **settings: object) -> tuple[RunFolder, sp.Predictor]:
    sp.train(config, out=out, quiet=True, device="cpu", **FEW, **settings)
    return RunFolder.open(out), sp.load(out)


@pytest.mark.parametrize("method", ["seq2seq", "ocd", "seqtag_crf", "laco"])
def test_a_run_predicts_as_it_was_scored(method: str, tmp_path: Path) -> None:
    settings = {**READER, **(WRITER if method in ("seq2seq", "ocd") else {})}
    folder, predictor = train("texts", tmp_path / "run", method=method, **settings)
    task = loaded("text", corpus="sample")
    gold = [{task.space.labels[i] for i in example.gold.tolist()} for example in task.part("test")]
    answers = predictor.predict_examples(task.part("test"))
    f1 = [2 * len(g & {*a["labels"]}) / max(1, len(g) + len(a["labels"])) for a, g in zip(answers, gold, strict=True)]
    assert sum(f1) / len(f1) == pytest.approx(folder.metrics()["test"]["example_f1"])
    assert ("net" in folder.metrics()["test"].get("nll", {})) == (method != "ocd")


def test_vectors_are_texts_of_one_word(tmp_path: Path) -> None:
    settings = {"features.hidden": [8], "inference_net.predicts": "mode", **WRITER}
    folder, predictor = train("labels", tmp_path / "run", method="sgm", **settings)
    task = loaded("multilabel", corpus="sample")
    examples = task.part("test")[:20]
    with torch.no_grad():
        proposal = predictor.model.propose(task.collate(examples).x)
    assert torch.equal(proposal.chosen, proposal.mode)
    assert [len(answer["labels"]) for answer in predictor.predict_examples(examples)] == proposal.mode.sum(
        (1, 2)
    ).tolist()
    assert folder.metrics()["test"]["nll"]["net"] > 0


@pytest.mark.slow
def test_sets_of_highest_expected_f1_are_those_of_samples(tmp_path: Path) -> None:
    settings = {"features.hidden": [8], "task.decode": "expected_f1", "task.decode_temperature": 1.0, **WRITER}
    folder, _ = train("labels", tmp_path / "run", method="seq2seq", **settings)
    assert "1000 samples" in folder.metrics()["protocol"]["threshold"]


@pytest.mark.slow
def test_sequences_are_the_noise_of_nce(tmp_path: Path) -> None:
    folder, predictor = train(
        "texts",
        tmp_path / "run",
        method="nce_seq2seq",
        **{**READER, **WRITER, "energy.hidden": 4, "energy_loss.samples": 3},
    )
    assert folder.config()["energy"]["features"]["pooling"] == "max"
    assert {"net", "energy"} <= folder.metrics()["test"]["nll"].keys()
    assert predictor.predict(["some text"])[0].keys() == {"labels", "probabilities"}


def test_samples_weighted_by_an_energy_decide() -> None:
    """They choose the sets of highest expected F1 under exp(−E), as all sets with exact probabilities do."""
    from spen_plugins.scores.expected_f1 import find_best_set

    _, batch, net = proposed(3)
    task = ToyLabels(labels=3)
    energy = Table(task, examples=4)
    chooser = Reweight(Reweight.Config(samples=4000, weight=1.0), task, net=net)
    chosen = chooser(batch.x, energy.at(batch.x)).chosen[:, 0] > 0.5
    y = all_sets(3).expand(4, -1, -1)
    assert torch.equal(chosen, find_best_set(y, torch.softmax(-energy.at(batch.x)(y).detach(), 1)))
    chooser.choose({"weight": 0.0, "temperature": 1.0})
    log_q = net(batch.x).log_prob(y).detach()
    assert torch.equal(chooser(batch.x, energy.at(batch.x)).chosen[:, 0] > 0.5, find_best_set(y, log_q.exp()))
    unordered = proposed(3, order="none")[2]
    with pytest.raises(ConfigError, match="only a bound"):
        Reweight(Reweight.Config(), task, net=unordered)(batch.x, energy.at(batch.x))


def test_each_method_gets_its_reader() -> None:
    pooled = experiment("texts", method="cross_entropy", encoder="bilstm")["features"]
    assert (pooled["type"], pooled["pooling"], pooled["reader"]["type"]) == ("decoders.words", "max", "bilstm")
    assert experiment("texts", method="sgm")["features"]["pooling"] == "none"
    assert experiment("texts", method="sgm", encoder="ngrams")["features"]["type"] == "ngrams"
    assert experiment("texts", method="laco")["features"]["type"] == "decoders.labels_as_words"
    large = experiment("texts", method="seqtag", encoder="minilm")
    assert large["features"]["reader"]["model"] == "minilm" and large["task"]["words"] == "blanks"
    assert experiment("texts", method="cross_entropy", encoder="minilm")["features"]["pooling"] == "mean"
    with pytest.raises(ConfigError, match="method=laco requires an encoder that reads words"):
        experiment("texts", method="laco", encoder="ngrams")
