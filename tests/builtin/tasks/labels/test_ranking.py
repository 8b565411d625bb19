"""Scores of labels in order, against scikit-learn, and where they are shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from sklearn.metrics import average_precision_score, ndcg_score

from spen_plugins.builtin.tasks.labels.label_metric import LabelMetric
from spen_plugins.builtin.tasks.labels.multilabel import MultiLabel
from spen_plugins.errors import ConfigError
from spen_plugins.report.group_scores import find_score
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.folder.summary import print_scores
from spen_plugins.scores.ranking import at_k, average_precision
from tests.loaded import parsed


@pytest.fixture
def made() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    p, gold = rng.random((60, 12)), rng.random((60, 12)) < 0.2
    gold[3], gold[:, 5] = False, False  # an example without labels, a label without examples
    return torch.tensor(p), torch.tensor(gold)


def test_scores_of_the_first_k_by_hand() -> None:
    p = torch.tensor([[0.9, 0.5, 0.7, 0.1], [0.2, 0.8, 0.4, 0.3], [0.1, 0.2, 0.3, 0.4]])
    gold = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
    found = at_k(p, gold, [1, 2, 3, 5])
    assert list(found) == ["1", "2", "3"]  # there are four labels
    assert found["1"] == {"precision": 1, "recall": (1 / 3 + 1) / 2, "ndcg": 1, "r_precision": 1}
    assert found["2"] == pytest.approx(
        {"precision": 0.5, "recall": 2 / 3, "ndcg": (1 / (1 + 1 / np.log2(3)) + 1) / 2, "r_precision": 0.75}
    )
    assert found["3"]["precision"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert at_k(p, torch.zeros_like(gold), [1]) == {}


def test_scores_equal_scikit_learns(made) -> None:
    p, gold = made
    some = gold.any(1)
    for k, found in at_k(p, gold, [1, 3, 5]).items():
        assert found["ndcg"] == pytest.approx(ndcg_score(gold[some].numpy(), p[some].numpy(), k=int(k)))
    for scores in (p, p.mul(4).round().div(4)):  # many equal ones, too
        kept = gold.any(0)
        by_label = average_precision_score(gold[:, kept].numpy(), scores[:, kept].numpy(), average="macro")
        assert average_precision(scores.T, gold.T) == pytest.approx(by_label)
        by_example = average_precision_score(gold[some].numpy(), scores[some].numpy(), average="samples")
        assert average_precision(scores, gold) == pytest.approx(by_example)
    assert average_precision(p, torch.zeros_like(gold)) is None


def test_they_come_at_the_end_and_do_not_crowd_the_table(tmp_path: Path) -> None:
    task = MultiLabel(MultiLabel.Config(corpus="sample", at=[1, 2]))
    task.load()
    metric, batch = task.metric(), task.collate(task.part("validation"))
    assert isinstance(metric, LabelMetric)
    metric.update(task.space.independent(torch.randn(batch.gold.shape), None), batch)
    assert not metric.compute().keys() & {"ranking", "example_ap"}
    details = metric.details()
    assert set(details) == {"ranking", "example_ap", "label_ap"} and list(details["ranking"]) == ["1", "2"]
    assert set(details) <= set(task.protocol())
    constant = {"score": "example_f1", "validation": 0.29666666666666663}
    scores = {"validation": {**metric.compute(), **details}, "protocol": {"constant_predictor": constant}}
    (tmp_path / "metrics.json").write_text(json.dumps(scores))
    (tmp_path / "config.json").write_text("{}")
    console = Console(width=200, record=True)
    print_scores(console, RunFolder(tmp_path))
    printed = console.export_text()
    assert printed.count("precision") == 2  # precision and r_precision, in one line
    assert "constant_predictor: score example_f1, validation 0.2967\n" in printed
    assert "the 1, 2 likeliest labels, validation: precision 0." in printed and "│ label_ap" in printed
    assert find_score(scores["validation"], "ranking.2.ndcg") == details["ranking"]["2"]["ndcg"]
    assert find_score(scores["validation"], "ranking.7.ndcg") is None
    with pytest.raises(ConfigError, match=r"task\.at\.0': found 0"):
        parsed("task", "multilabel", corpus="sample", at=[0])
