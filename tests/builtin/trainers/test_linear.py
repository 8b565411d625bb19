"""The linear baseline of label sets is scikit-learn's one-vs-rest logistic regression, as a run like any other."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import spen_plugins as sp
from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import build, parse_experiment
from tests.loaded import built, in_memory, trained

build_linear = partial(built, method="linear")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4))
    y = np.column_stack([x @ [1, 2, 0, 0] > 0.3, x @ [0, -1, 1, 0] > 0, np.ones(90), np.zeros(90)]).astype(int)
    rows = "".join(",".join(f"{v:g}" for v in [*a, *b]) + "\n" for a, b in zip(x, y, strict=True))
    (tmp_path / "x.csv").write_text("a,b,c,d,y1,y2,y3,y4\n" + rows)
    (tmp_path / "s.json").write_text(
        json.dumps({"train": [*range(60)], "validation": [*range(60, 75)], "test": [*range(75, 90)]})
    )
    return {"data": str(tmp_path / "x.csv"), "split": str(tmp_path / "s.json"), "labels": "y*"}


def test_weights_equal_those_of_scikit_learn(files: dict[str, str]) -> None:
    experiment = build_linear("labels", **files, **{"trainer.c": "[0.5, 1]"})
    assert experiment.task.config.threshold == "validation"
    first, second = experiment.trainer.stages(experiment.model, experiment.task)
    assert (first.name, first.goes_on, second.name, second.goes_on) == ("C=0.5", False, "C=1", True)
    batch = experiment.task.collate(experiment.task.part("train"))
    x, gold = batch.x.inputs["vector"].double().numpy(), batch.gold[:, 0].numpy()
    for stage, c in ((first, 0.5), (second, 1.0)):
        stage.start(experiment.model)
        expected = OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear")).fit(x, gold[:, :2])
        with torch.no_grad():
            p = experiment.model.propose(batch.x).mean[:, 0].numpy()
        np.testing.assert_allclose(p[:, :2], expected.predict_proba(x), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(p[:, 2:], np.tile([60.5 / 61, 0.5 / 61], (60, 1)), rtol=1e-5)


def test_texts_are_tf_idf(tmp_path: Path) -> None:
    texts = ["a good day", "a bad day a day", "good good news", "no news is good news", "day"]
    text = "".join(f"{example}\t{'x' if 'good' in example else ''}\n" for example in texts)
    (tmp_path / "a.tsv").write_text(text)
    file = str(tmp_path / "a.tsv")
    arguments = {"data": file, "validation": file, "features.words": "1", "features.buckets": "0"}
    experiment = build_linear("texts", **arguments)
    experiment.trainer.stages(experiment.model, experiment.task)[0].start(experiment.model)
    batch = experiment.task.collate(experiment.task.part("train"))
    words = list(experiment.task.inputs.words)
    tf_idf = TfidfVectorizer(sublinear_tf=True, vocabulary=words, token_pattern=r"\w+").fit_transform(texts).toarray()
    with torch.no_grad():
        features = experiment.model.inference_net.features(batch.x)
        logits = experiment.model.propose(batch.x).logits[:, 0, 0].numpy()
    np.testing.assert_allclose(features.numpy(), tf_idf, rtol=1e-5, atol=1e-7)
    expected = LogisticRegression(C=0.1, solver="liblinear").fit(tf_idf, ["good" in example for example in texts])
    np.testing.assert_allclose(logits, expected.decision_function(tf_idf), rtol=1e-3, atol=1e-4)


def test_a_linear_run_is_like_any_other(files: dict[str, str], tmp_path: Path) -> None:
    out = trained("labels", tmp_path / "run", method="linear", **files)
    folder = sp.RunFolder.open(out)
    scores = folder.metrics()
    assert scores["test"]["micro_f1"] > 0.7  # easy rows: chance is 0.5
    assert "one-vs-rest logistic regression" in scores["protocol"]["training"]
    history = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    assert [record["stage"] for record in history] == ["C=0.1", "C=1", "C=10"]
    [answer] = sp.load(out).predict([{"features": {"a": 3.0, "b": 3.0, "c": 0.0, "d": 0.0}}])
    assert {"y1", "y3"} <= set(answer["labels"]) and "y4" not in answer["labels"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": {"type": "mlp"}}, "found Independent over Mlp"),
        ({"inference_net": {"type": "independent"}}, "requires inference_net.bias=true"),
        ({"trainer": {"type": "one_vs_rest", "c": [1, 1]}}, r"trainer\.c: found \[1\.0, 1\.0\]"),
        ({"trainer": {"type": "one_vs_rest", "c": [0]}}, r"trainer\.c\.0': found 0"),
    ],
)
def test_configs_that_cannot_be_fitted_are_rejected(change: dict, message: str) -> None:
    with pytest.raises(sp.ConfigError, match=message):
        experiment = built(evaluate("labels", {"method": "linear"}) | change)
        experiment.trainer.stages(experiment.model, experiment.task)


@pytest.mark.parametrize("weights", ["balanced", '{"y1": 3}'])
def test_class_weights_work_as_in_scikit_learn(files: dict[str, str], weights: str) -> None:
    experiment = build_linear("labels", **files, **{"trainer.c": "[1]", "class_weight": weights})
    experiment.trainer.stages(experiment.model, experiment.task)[0].start(experiment.model)
    batch = experiment.task.collate(experiment.task.part("train"))
    x, gold = batch.x.inputs["vector"].double().numpy(), batch.gold[:, 0].numpy()
    by_label = ["balanced"] * 2 if weights == "balanced" else [{0: 1, 1: 3}, None]
    for label, class_weight in enumerate(by_label):
        fitted = LogisticRegression(C=1, solver="liblinear", class_weight=class_weight).fit(x, gold[:, label])
        with torch.no_grad():
            logits = experiment.model.propose(batch.x).logits[:, 0, label].numpy()
        np.testing.assert_allclose(logits, fitted.decision_function(x), rtol=1e-3, atol=1e-3)


def test_weights_of_examples_work_as_in_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(60, 4)), rng.uniform(0.5, 2, 60)
    y = (x @ rng.normal(size=(4, 2)) > 0).astype(int)
    table = evaluate("labels", {"method": "linear", "trainer.c": "[1]"})
    task = in_memory("multilabel", {"train": (x, y, weights), "validation": (x, y)})
    experiment = build(
        parse_experiment(table | {"task": {"type": "multilabel", "in_memory": True}}, "test", sp.Registry()), task
    )
    experiment.trainer.stages(experiment.model, task)[0].start(experiment.model)
    batch = task.collate(task.part("train"))
    scaled = batch.x.inputs["vector"].double().numpy()
    for label in range(2):
        fitted = LogisticRegression(C=1, solver="liblinear").fit(scaled, y[:, label], weights / weights.mean())
        with torch.no_grad():
            logits = experiment.model.propose(batch.x).logits[:, 0, label].numpy()
        np.testing.assert_allclose(logits, fitted.decision_function(scaled), rtol=1e-3, atol=1e-3)
