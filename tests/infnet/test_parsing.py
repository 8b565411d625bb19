"""Task `parsing` and its config."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import spen_plugins as sp
from spen_infnet.parsing import trees
from spen_infnet.parsing.scores import BracketF1
from spen_infnet.parsing.tags import Tag, decode, encode
from spen_plugins.config.shipped import find
from tests.infnet.test_trees import TREES
from tests.loaded import built, experiment, loaded, parsed, spen, trained, written

METHODS = ("cross_entropy", "margin", "perceptron", "contrastive", "slack", "compound", "nce")


@pytest.fixture(scope="module")
def task() -> sp.Task:
    return loaded("infnet.parsing", corpus="sample", min_tag_count=1)


def predict(task: sp.Task, examples: list[Any], tags: torch.Tensor) -> dict[str, Any]:
    """Scores of these tags, `(example, token)`, which the net itself chooses."""
    batch = task.collate(examples)
    y = task.space.one_hot(tags.unsqueeze(1), batch.x.mask)
    proposal = replace(task.space.independent(9.0 * y, batch.x.mask), chosen=y)
    metric = task.metric()
    metric.update(proposal, batch)
    numerator, denominator = metric.ratios()
    assert metric.compute()["bracket_f1"] == pytest.approx(float(numerator.sum() / denominator.sum()))
    return metric.compute() | {"predictions": task.predictions(proposal, batch, examples)}


def test_gold_tags_are_gold_trees(task: sp.Task) -> None:
    examples = task.part("train")
    found = predict(task, examples, task.collate(examples).gold[:, 0].argmax(-1))
    assert [found[name] for name in ("bracket_f1", "precision", "recall", "exact_match", "repaired")] == [1, 1, 1, 1, 0]
    for example, prediction in zip(examples, found["predictions"], strict=True):
        assert trees.parse(prediction["tree"]).tree == example.sentence.tree
        spans = [(one["start"], one["end"], one["label"]) for one in prediction["constituents"]]
        assert spans == trees.spans(example.sentence.tree)


def test_scores_of_any_tags(task: sp.Task) -> None:
    examples = task.part("validation")
    length = max(len(example.entry.words) for example in examples)
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randint(len(task.space.tags), (len(examples), length), generator=generator)
    found = predict(task, examples, numbers)
    metric, repaired = BracketF1(), 0
    for example, row in zip(examples, numbers.tolist(), strict=True):
        n = len(example.entry.words)
        tags = [Tag.parse(task.space.tags[number]) for number in row[:n]]
        metric.add(trees.build(decode(tags), n), example.sentence.tree, example.sentence.tags)
        repaired += encode(decode(tags), n) != tags
    assert {name: found[name] for name in metric.compute()} == metric.compute()
    assert 0 < found["repaired"] == repaired / len(examples)


def test_decoded_tags_are_a_trees_and_their_probabilities_are_reported(task: sp.Task) -> None:
    examples = task.part("validation")
    batch = task.collate(examples)
    gold = task.space.one_hot(batch.gold.argmax(-1), batch.x.mask)
    logits = 6.0 * gold
    wrong = task.space.tags.index("+1:VP:")
    first = batch.gold[:, 0, 0].argmax(-1)
    logits[torch.arange(len(examples)), 0, 0, first] = 1.0
    logits[:, 0, 1, wrong] += 6.5  # better than gold, but no tree's
    proposal = task.space.independent(logits, batch.x.mask)
    metric = task.metric()
    metric.update(proposal, batch)
    decoded = task.decode(proposal)
    p = (proposal.mean * decoded).sum(-1)[:, 0]
    for one, row in zip(task.predictions(proposal, batch, examples), p.tolist(), strict=True):
        assert one["scores"] == pytest.approx(row[: len(one["words"])], abs=1e-3)
    assert not (proposal.mode == decoded).all()
    assert metric.compute()["repaired"] == 0


def test_a_task_is_restored(task: sp.Task) -> None:
    cls, config = parsed("task", "infnet.parsing", corpus="sample")
    other = cls(config)
    other.restore(task.facts())
    assert other.space.tags == task.space.tags
    item = {"tree": "(TOP (S (NP (NNP Anna)) (VP (VBZ sees) (NP (NNP Ben))) (. .)))"}
    assert other.parse(item).names == task.parse(item).names == ("+1:S:NP", "+1:VP:", "-1:S:NP", "::")


def test_rare_tags_are_replaced() -> None:
    task = loaded("infnet.parsing", corpus="sample", min_tag_count=30)
    known = set(task.space.tags)
    examples = [example for part in sp.PARTS for example in task.part(part)]
    assert all(set(example.names) <= known for example in examples)
    assert any("tags are learned" in note for note in task.notes())


def test_inputs_of_files_and_texts(task: sp.Task, tmp_path: Path) -> None:
    with_trees = written(tmp_path / "some.trees", "\n".join(TREES))
    assert [e.sentence.words for e in task.read(with_trees)] == [trees.parse(text).words for text in TREES]
    for example in task.read_inputs(with_trees):
        assert example.sentence is None and example.tags is None
    columns = written(tmp_path / "some.conll", "The\tDT\ncat\tNN\n\nGo\tVB\n")
    assert [e.entry.words for e in task.read_inputs(columns)] == [("The", "cat"), ("Go",)]
    assert task.parse("The cat").entry.words == ("The", "cat")
    broken = written(tmp_path / "broken.trees", f"{TREES[0]}\n{TREES[0][:-1]}\n")
    with pytest.raises(sp.DataError, match="trees:2: found an unclosed bracket"):
        task.read_inputs(broken)
    with pytest.raises(sp.DataError, match=r"no sentence with a tree"):
        task.metric().compute()


@pytest.mark.parametrize("method", METHODS)
def test_methods(method: str) -> None:
    assert experiment("parsing", method=method, data="ewt")["task"]["train"] == "data:parsing/ewt/train.trees"
    assert built("parsing", method=method).task.selection == "bracket_f1"


def test_the_config_has_no_crf() -> None:
    with pytest.raises(sp.ConfigError, match=r'unknown method "crf"; known: .*compound'):
        experiment(find(Path("parsing")), method="crf")


def test_a_run_parses_text(tmp_path: Path) -> None:
    run = trained("parsing", tmp_path / "run", **{"trainer.epochs": "1", "features.hidden": "4"})
    text = written(tmp_path / "text.txt", "Anna sees the old cat. Go!\n")
    lines = spen("predict", run, text, "--format", "trees").stdout.splitlines()
    words = [word for line in lines for word in trees.parse(line).words]
    assert words == ["Anna", "sees", "the", "old", "cat", ".", "Go", "!"]
