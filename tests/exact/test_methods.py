"""The methods of the configs, from training to prediction: commands, estimators, spaCy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import spen_plugins as sp
from spen_plugins.errors import ConfigError
from spen_plugins.runs.folder.folder import RunFolder
from tests.loaded import loaded, spen

FEW = {"trainer.epochs": 1, "features.hidden": [8], "features.dropout": 0}
LABELS = loaded("multilabel", corpus="sample").space.labels


@pytest.mark.parametrize("decode", ["threshold", "expected_f1"])
@pytest.mark.parametrize("method", ["counts", "star", "mixture"])
def test_a_run_predicts_as_it_was_scored(method: str, decode: str, tmp_path: Path) -> None:
    sp.train("labels", method=method, out=tmp_path / "run", quiet=True, device="cpu", **{"task.decode": decode, **FEW})
    folder, predictor = RunFolder.open(tmp_path / "run"), sp.load(tmp_path / "run")
    task = loaded("multilabel", corpus="sample")
    gold = [{task.space.labels[i] for i in example.gold.tolist()} for example in task.part("test")]
    answers = predictor.predict_examples(task.part("test"))
    f1 = [2 * len(g & {*a["labels"]}) / max(1, len(g) + len(a["labels"])) for a, g in zip(answers, gold, strict=True)]
    assert np.mean(f1) == pytest.approx(folder.metrics()["test"]["example_f1"])
    law = " under the exact law of labels and sizes" if decode == "expected_f1" else ""
    assert (law or "0.5, fixed") in folder.metrics()["protocol"]["threshold"]
    assert predictor.task.protocol()["threshold"] == folder.metrics()["protocol"]["threshold"]


def test_a_run_is_redecoded(tmp_path: Path) -> None:
    sp.train("labels", method="counts", out=tmp_path / "run", quiet=True, device="cpu", **FEW)
    spen("decode", tmp_path / "run", tmp_path / "f1", "--by", "expected_f1")
    assert "under the exact law" in RunFolder.open(tmp_path / "f1").metrics()["protocol"]["threshold"]
    spen("decode", tmp_path / "run", tmp_path / "same", "--by", "threshold", "--threshold", "0.5")
    assert RunFolder.open(tmp_path / "same").metrics() == RunFolder.open(tmp_path / "run").metrics()


def test_a_hierarchy_from_a_file_is_stored(tmp_path: Path) -> None:
    """The sample has no hierarchy, so it gets one edge that no training example breaks."""
    task = loaded("multilabel", corpus="sample")
    gold = torch.zeros(len(task.part("train")), len(LABELS), dtype=torch.bool)
    for row, example in enumerate(task.part("train")):
        gold[row, example.gold] = True
    implies = ~(gold.T.unsqueeze(1) & ~gold.T.unsqueeze(0)).any(2)
    pairs = [(i, j) for i, j in implies.nonzero().tolist() if i != j]
    if not pairs:
        pytest.skip("no label of the sample implies another")
    child, parent = pairs[0]
    path = tmp_path / "parents"
    path.write_text(f"{LABELS[child]}\t{LABELS[parent]}\n")
    settings = {"task.hierarchy": str(path), **FEW}
    sp.train("labels", method="hierarchy", out=tmp_path / "run", quiet=True, device="cpu", **settings)
    path.unlink()
    assert RunFolder.open(tmp_path / "run").metrics()["test"]["incoherent"] == 0
    assert sp.load(tmp_path / "run").task.space.forest.parents[child] == parent


def test_a_hierarchy_is_required(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"requires a label hierarchy.* task\.hierarchy=FILE"):
        sp.train("labels", method="hierarchy", out=tmp_path / "run", quiet=True, device="cpu", **FEW)
    for name, message in ((LABELS[1], "its own ancestor"), ("x", "found label 'x'")):
        settings = {"task.hierarchy": {LABELS[1]: name}, **FEW}
        with pytest.raises(ConfigError, match=message):
            sp.train("labels", method="cross_entropy", out=tmp_path / "run", quiet=True, device="cpu", **settings)


@pytest.mark.parametrize("config", ["labels", "texts"])
def test_several_methods_are_compared(config: str, tmp_path: Path) -> None:
    arguments = ("methods=counts,star,mixture", "trainer.epochs=1", "--out", tmp_path / "runs", "--device", "cpu")
    from typer.testing import CliRunner

    from spen_plugins.cli.run import app

    result = CliRunner().invoke(app, [config, *map(str, arguments)])
    assert result.exit_code == 0, result.output
    runs = [json.loads(path.read_text()) for path in (tmp_path / "runs").rglob("config.json")]
    assert {run["inference_net"]["type"] for run in runs} == {"exact.counts", "exact.star", "exact.mixture"}


def test_the_estimator_takes_a_hierarchy() -> None:
    from spen_plugins.sklearn import MultiLabelClassifier

    rng = np.random.default_rng(0)
    x = (rng.random((200, 12)) < 0.4).astype(np.float32)
    y = np.stack([x[:, 0] + x[:, 1] > 0, x[:, 0] > 0, x[:, 0] * x[:, 2] > 0, x[:, 3] > 0], 1).astype(int)
    small = {"trainer.epochs": 3, "features.hidden": [8]}
    for decode in ("validation", "expected_f1"):
        classifier = MultiLabelClassifier("hierarchy", hierarchy={1: 0, 2: 1}, decode=decode, **small).fit(x, y)
        p, predicted = classifier.predict_proba(x), classifier.predict(x)
        assert (p[:, 1] <= p[:, 0]).all() and (p[:, 2] <= p[:, 1]).all()
        assert (predicted[:, 1] <= predicted[:, 0]).all() and (predicted[:, 2] <= predicted[:, 1]).all()
    classifier = MultiLabelClassifier("counts", decode="expected_f1", **small).fit(x, y)
    assert ((classifier.decision_function(x) > 0) == (classifier.predict(x) > 0)).all()
    with pytest.raises(ValueError, match="found label '9'"):
        MultiLabelClassifier("hierarchy", hierarchy={9: 0}, **small).fit(x, y)


def test_spacy_predicts_the_sets_of_the_run(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    small = {"trainer.epochs": 1, "task.decode": "expected_f1", "inference_net.components": 3}
    sp.train("texts", method="mixture", out=tmp_path / "run", quiet=True, device="cpu", **small)
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("spen_multilabel", config={"model": str(tmp_path / "run")})
    texts = [example.text for example in loaded("text", corpus="sample").part("test")[:20]]
    answers = sp.load(tmp_path / "run").predict([{"text": text} for text in texts])
    docs = list(nlp.pipe(texts))
    assert [set(pipe.predicted(doc)) for doc in docs] == [set(answer["labels"]) for answer in answers]
    restored = spacy.tokens.Doc(nlp.vocab).from_bytes(docs[0].to_bytes())
    assert pipe.predicted(restored) == pipe.predicted(docs[0])
