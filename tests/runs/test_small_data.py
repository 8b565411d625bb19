"""Few examples: several passes per epoch, and a warning if nothing useful was learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import spen_plugins as sp
from spen_plugins.config.evaluation import evaluate, parse_arguments
from spen_plugins.loop.evaluation import Constant
from spen_plugins.loop.order import Epochs, batches_of_pass, plan_epochs
from spen_plugins.report.report_data import make_score_table
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.runs.train import runner
from tests.loaded import ROOT, loaded

CONFIGS = ROOT / "configs"


def test_an_epoch_of_few_examples_passes_over_them_until_it_has_enough_batches() -> None:
    lengths = np.arange(20)
    few = Epochs(lengths, 8, 10, seed=1, stage=0)
    assert (few.batches_of_a_pass, few.passes, few.batches) == (3, 4, 12)
    order = few.order(2)
    assert len(order) == 12
    for number in range(4):
        rows = order[3 * number : 3 * number + 3]
        assert sorted(np.concatenate(rows)) == list(range(20)), "each pass has every example once"
        assert {few.find_pass(2, batch) for batch in range(3 * number, 3 * number + 3)} == {8 + number}
        expected = batches_of_pass(Epochs(lengths, 8, 1, 1, 0), 8 + number)
        assert all((a == b).all() for a, b in zip(rows, expected, strict=True))
    enough = Epochs(lengths, 8, 3, seed=1, stage=0)
    assert (enough.passes, enough.batches) == (1, 3)


def test_batches_of_few_examples_are_smaller_until_an_epoch_has_enough_of_them() -> None:
    config = sp.TrainerConfig(batch_size=32, epoch_updates=100)
    sizes = {examples: config.choose_batch_size(examples) for examples in (50, 800, 1000, 3200, 9999)}
    assert sizes == {50: 8, 800: 8, 1000: 10, 3200: 32, 9999: 32}
    assert config.model_copy(update={"epoch_updates": 1}).choose_batch_size(5) == 32
    assert config.model_copy(update={"batch_size": 4}).choose_batch_size(50) == 4
    task = loaded("tagging", corpus="pos")
    few = task.part("train")[:30]
    epochs = plan_epochs(task, few, config, seed=0, stage=0)
    assert (epochs.batch_size, epochs.batches_of_a_pass, epochs.passes) == (8, 4, 25)


def test_the_constant_of_tags_is_the_most_frequent_one() -> None:
    task = loaded("tagging", corpus="pos")
    tags = {part: [tag for example in task.part(part) for tag in task.show(example).gold] for part in sp.task.PARTS}
    most_frequent = max(sorted(set(tags["train"])), key=tags["train"].count)
    scores = Constant(task, 7).scores(["validation", "test"])
    assert scores == {
        part: pytest.approx(tags[part].count(most_frequent) / len(tags[part])) for part in ("validation", "test")
    }


def test_the_constant_of_spans_predicts_none() -> None:
    assert Constant(loaded("srl", corpus="sample"), 32).scores(["validation"]) == {"validation": 0.0}


def test_the_constant_of_labels_has_the_threshold_of_the_task() -> None:
    assert Constant(loaded("multilabel", corpus="sample", threshold=0.999), 64).scores(["validation"]) == {
        "validation": 0.0
    }
    task = loaded("multilabel", corpus="sample", threshold="validation")
    facts = task.facts()
    gold = {part: task.collate(task.part(part)).gold[:, 0] for part in ("train", "validation")}
    share, y = gold["train"].mean(0), gold["validation"]
    f1 = []
    for threshold in torch.arange(0.05, 0.96, 0.05):
        predicted = (share > threshold).float()
        f1.append((2 * (y * predicted).sum(1) / (y.sum(1) + predicted.sum()).clamp(min=1e-9)).mean().item())
    assert Constant(task, 50).validation == pytest.approx(max(f1), abs=1e-6)
    assert max(f1) > 0 and task.facts() == facts


def test_a_space_without_a_constant_has_no_score() -> None:
    assert Constant(loaded("images.denoising", corpus="sample", crop=16), 2).scores(["validation"]) == {}


def test_a_run_that_learned_nothing_says_so_and_reports_name_the_constant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Labels of probability 0.99 and more: there are none.
    words = ["method=cross_entropy", "trainer.epochs=1", "features.hidden=[8]", "trainer.net.lr=1e-9", "threshold=0.99"]
    config = evaluate(CONFIGS / "labels.jsonnet", parse_arguments(words))
    folder = runner.run(config, "labels", tmp_path / "nothing")
    message = capsys.readouterr().err
    assert (
        "learned nothing useful" in message
        and f"{RunFolder.open(folder).environment()['training_examples']} train" in message
    )
    words.append("task.labelled=50")
    runner.run(evaluate(CONFIGS / "labels.jsonnet", parse_arguments(words)), "labels", tmp_path / "few")
    assert "There are 50 training examples with gold; more" in capsys.readouterr().err
    metrics: Any = RunFolder.open(folder).metrics()
    constant = metrics["protocol"]["constant_predictor"]
    assert constant["score"] == "example_f1" and 0 <= constant["test"] <= 1
    [row] = make_score_table(read_groups([str(folder)]), "test").rows[1:]
    assert row[0] == "constant predictor" and f"{100 * constant['test']:.2f}" in row
