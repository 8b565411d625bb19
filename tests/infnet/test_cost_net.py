"""`spen cost-net`: the scores of both nets, and where they differ."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.nn.functional import one_hot

import spen_plugins as sp
from spen_infnet.cost_net_report import NetComparison, compare_nets, count_differences, write_markdown
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.predict.own_data import load_task
from spen_plugins.spaces import LabelSet, TagSequence
from tests.infnet.toys import tagging_run
from tests.loaded import spen, trained

pytestmark = pytest.mark.usefixtures("whole_samples")


def train(folder: Path, loss: str, **trainer: object) -> RunFolder:
    trainer |= {"epochs": 1, "batch_size": 64, "energy": {"type": "adam", "weight_decay": 0.0}}
    trainer["net"] = {"type": "adam", "lr": 0.03, "weight_decay": 0.0}
    return RunFolder(trained(tagging_run(8, {"type": "linear_chain"}, loss, **trainer), folder))


@pytest.fixture(scope="module")
def compound(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run whose F predicts gold, but "VERB" for "NOUN": its weights on A's output are 0."""
    run = train(tmp_path_factory.mktemp("runs") / "run", "infnet.compound")
    tags = run.facts()["tags"]
    predictor = sp.load(run.path)
    layer = predictor.model.energy_loss.cost_net.output
    with torch.no_grad():
        layer.bias.zero_()
        weights = torch.eye(len(tags))
        weights[:, tags.index("NOUN")] = weights[:, tags.index("VERB")]
        layer.weight.copy_(torch.cat([torch.zeros(len(tags), len(tags)), weights], 1))
    run.save_weights(predictor.model)
    return run


def test_both_nets_and_their_differences(compound):
    comparison = compare_nets(compound)
    task = load_task(compound, Registry())
    gold = Counter(tag for example in task.part("validation") for tag in example.names)
    tokens = gold.total()
    assert comparison.title == "accuracy on the validation part"
    assert comparison.test_time == pytest.approx(compound.metrics()["validation"]["accuracy"])
    assert comparison.cost_augmented == pytest.approx((tokens - gold["NOUN"]) / tokens)
    predicted = sp.load(compound.path).predict_examples(task.part("validation"))
    pairs = [
        pair
        for item, e in zip(predicted, task.part("validation"), strict=True)
        for pair in zip(item["tags"], e.names, strict=True)
    ]
    count = sum(tag == gold_tag == "NOUN" for tag, gold_tag in pairs)
    assert count and comparison.differences == {("NOUN", "VERB"): count}


def test_a_file_stands_for_the_validation_part(compound, tmp_path):
    path = tmp_path / "two.txt"
    path.write_text("the DET\nbooks NOUN\n\nshe PRON\nreads VERB\n")
    comparison = compare_nets(compound, str(path))
    assert comparison.title == f"accuracy on {path}" and comparison.cost_augmented == 0.75
    output = spen("cost-net", compound.path, path, "--top", "3").stdout
    assert output.startswith("| score | A | F | A − F |") and "| 75.00 |" in output
    path.write_text("the\nbooks\n")
    with pytest.raises(DataError):
        compare_nets(compound, str(path))


def test_a_single_net_before_and_after_fine_tuning(tmp_path):
    run = train(tmp_path / "run", "infnet.margin", finetune={"epochs": 2})
    scores = [record["score"] for record in run.history()]
    comparison = compare_nets(run)
    assert (comparison.test_time, comparison.cost_augmented) == (
        max(scores[1:]),
        scores[0],
    ) and comparison.differences is None
    assert write_markdown(comparison).count("\n") == 3
    with pytest.raises(ConfigError, match="no weights from before fine-tuning"):
        compare_nets(run, "some.txt")
    history = run.path / "history.jsonl"
    history.write_text(history.read_text().splitlines()[0] + "\n")
    with pytest.raises(ConfigError, match=r"no cost-augmented net.*infnet\.compound"):
        compare_nets(run)


def count_by_hand(space: sp.OutputSpace, a: list, f: list, gold: list, mask: list | None = None) -> Counter:
    """Differences of outputs `(batch, *variables)`; the last example has no gold."""
    a, f, gold = (torch.tensor(y, dtype=torch.float).unsqueeze(1) for y in (a, f, gold))
    labelled = torch.arange(len(a)) < len(a) - 1
    gold = gold * labelled.view(-1, *[1] * (gold.ndim - 1))
    x = sp.X({}, None if mask is None else torch.tensor(mask), len(a))
    batch = sp.Batch(x, torch.arange(len(a)), gold, labelled)
    return count_differences(space, a, f, batch)


def test_differences_of_tags_by_hand():
    """A is right and F differs at the first and sixth tokens; elsewhere A is wrong, both agree, or gold is missing."""
    one, two, none = [1, 0], [0, 1], [0, 0]
    a = [[one, one, none], [two, one, two], [one, one, one]]
    f = [[two, two, none], [two, two, one], [two, two, two]]
    gold = [[one, two, none], [two, none, two], [one, one, one]]
    mask = [[True, True, False], [True] * 3, [True] * 3]
    assert count_by_hand(TagSequence(["x", "y"]), a, f, gold, mask) == {("x", "y"): 1, ("y", "x"): 1}


def test_a_gold_tag_unseen_in_training_is_predicted_by_no_net():
    task = sp.Tagging(sp.Tagging.Config(corpus="pos"))
    task.restore({"words": [], "columns": {}, "tags": ["x", "y"]})
    batch = task.collate([task.parse({"words": ["a", "b"], "tags": ["x", "new"]})])
    a, f = (one_hot(torch.tensor([[[i, i]]]), 2) for i in (0, 1))
    assert count_differences(task.space, a, f, batch) == {("x", "y"): 1}


def test_differences_of_label_sets_by_hand():
    a, f, gold = [[1, 0, 1], [1, 0, 0]], [[0, 1, 1], [0, 1, 1]], [[1, 0, 0], [1, 0, 0]]
    differences = count_by_hand(LabelSet(["a", "b", "c"]), a, f, gold)
    assert differences == {("a", "not a"): 1, ("not b", "b"): 1}


def test_the_table():
    differences = Counter({("^", "N"): 2, ("N", "^"): 5, ("|", "~"): 2, ("A", "R"): 1})
    lines = write_markdown(NetComparison("accuracy on x", 0.9, 0.755, differences), top=3).splitlines()
    assert lines[2] == "| accuracy on x | 90.00 | 75.50 | 14.50 |"
    assert lines[4].startswith("A is right and F differs 10 times")
    assert lines[8:] == ["| N | ^ | 5 |", "| ^ | N | 2 |", r"| \| | \~ | 2 |"]
