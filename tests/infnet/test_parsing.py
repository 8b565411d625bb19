"""Task `parsing` and its config."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

import spen_plugins as sp
from spen_infnet.parsing import trees
from spen_infnet.parsing.scores import TreeMetric
from spen_infnet.parsing.tags import Tag, decode, encode, is_tree
from spen_plugins.config.shipped import find
from tests.infnet.test_trees import TREES
from tests.loaded import built, experiment, loaded, parsed, spen, trained, written

METHODS = ("cross_entropy", "margin", "perceptron", "contrastive", "slack", "compound", "nce")


@pytest.fixture(scope="module")
def task() -> sp.Task:
    return loaded("infnet.parsing", corpus="sample", min_tag_count=1)


def score_tags(task: sp.Task, examples: list[Any], tags: torch.Tensor) -> dict[str, Any]:
    """Scores and predictions for tags `(example, token)` that the net itself chooses."""
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
    scores = score_tags(task, examples, task.collate(examples).gold[:, 0].argmax(-1))
    assert [scores[name] for name in ("bracket_f1", "precision", "recall", "exact_match", "repaired")] == [
        1,
        1,
        1,
        1,
        0,
    ]
    for example, prediction in zip(examples, scores["predictions"], strict=True):
        assert trees.parse(prediction["tree"]).tree == example.sentence.tree
        spans = [
            (constituent["start"], constituent["end"], constituent["label"])
            for constituent in prediction["constituents"]
        ]
        assert spans == trees.spans(example.sentence.tree)


def test_scores_of_any_tags(task: sp.Task) -> None:
    examples = task.part("validation")
    length = max(len(example.entry.words) for example in examples)
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randint(len(task.space.tags), (len(examples), length), generator=generator)
    scores = score_tags(task, examples, numbers)
    metric, repaired = TreeMetric(lambda proposal, lengths: []), 0
    for example, row in zip(examples, numbers.tolist(), strict=True):
        n = len(example.entry.words)
        tags = [Tag.parse(task.space.tags[number]) for number in row[:n]]
        is_repaired = encode(decode(tags), n) != tags
        metric.add(trees.build(decode(tags), n), example.sentence, is_repaired)
        repaired += is_repaired
    assert {name: scores[name] for name in metric.compute()} == metric.compute()
    assert 0 < scores["repaired"] == repaired / len(examples)


def test_decoded_tags_are_the_most_probable_of_a_tree(task: sp.Task) -> None:
    examples = task.part("validation")
    batch = task.collate(examples)
    generator = torch.Generator().manual_seed(0)
    is_rival = torch.rand(batch.gold.shape, generator=generator) < 0.02  # about two per word
    noise = 6.0 * torch.rand(batch.gold.shape, generator=generator) * is_rival
    proposal = task.space.independent(4.5 * batch.gold + noise, batch.x.mask)
    decoded = task.decode(proposal)
    log_p = (proposal.mean.log() * batch.x.mask[:, None, :, None]).nan_to_num()
    searched = missed = 0
    for row, prediction in enumerate(task.predictions(proposal, batch, examples)):
        length = len(prediction["words"])
        mode, best = (
            [Tag.parse(task.space.tags[number]) for number in y[row, 0, :length].argmax(-1).tolist()]
            for y in (proposal.mode, decoded)
        )
        assert is_tree(best) and (best == mode) == is_tree(mode)
        assert prediction["scores"] == pytest.approx(
            (proposal.mean * decoded)[row, 0, :length].sum(-1).tolist(), abs=1e-3
        )
        searched += best != mode
        missed += bool((log_p * decoded)[row].sum() < (log_p * batch.gold)[row].sum() - 1e-4)
    assert 5 < searched < len(examples) and missed < searched / 5


def test_tags_without_a_tree_are_repaired(task: sp.Task) -> None:
    examples = task.part("validation")[:3]
    batch = task.collate(examples)
    closing = torch.tensor([(Tag.parse(tag).change or 0) < 0 for tag in task.space.tags])
    assert closing.sum() >= 8  # as many as the search tries, and no sentence begins with one
    for mask in (batch.x.mask, None):
        proposal = task.space.independent(50.0 * closing.expand(batch.gold.shape), mask)
        assert task.decode(proposal).equal(proposal.mode)
    metric = task.metric()
    metric.update(task.space.independent(proposal.logits, batch.x.mask), batch)
    assert metric.compute()["repaired"] == 1


def test_an_energy_without_weight_leaves_the_decoder_unchanged(tmp_path: Path) -> None:
    run = trained("parsing", tmp_path / "run", method="nce", **{"trainer.epochs": "1"})
    refined = sp.load(run, refine={"type": "reweight", "weight": 0.0, "temperature": 1.0})
    words = [{"words": ["The", "cat", "sleeps", "."]}, {"words": ["Anna", "sees", "the", "old", "cat", "."]}]
    assert refined.predict(words) == sp.load(run).predict(words)


def test_a_task_is_restored(task: sp.Task) -> None:
    cls, config = parsed("task", "infnet.parsing", corpus="sample")
    other = cls(config)
    other.restore(task.facts())
    assert other.space.tags == task.space.tags
    item = {"tree": "(TOP (S (NP (NNP Anna)) (VP (VBZ sees) (NP (NNP Ben))) (. .)))"}
    assert other.parse(item).names == task.parse(item).names == ("+1:S:NP", "+1:VP:", "-1:S:NP", "::")


def test_rare_tags_are_replaced() -> None:
    task = loaded("infnet.parsing", corpus="sample", min_tag_count=30)
    tags = set(task.space.tags)
    examples = [example for part in sp.PARTS for example in task.part(part)]
    assert all(set(example.names) <= tags for example in examples)
    assert any("tags are learned" in note for note in task.notes())


def test_inputs_of_files_and_texts(task: sp.Task, tmp_path: Path) -> None:
    with_trees = written(tmp_path / "some.trees", "\n".join(TREES))
    assert [e.sentence.words for e in task.read(with_trees)] == [trees.parse(text).words for text in TREES]
    for example in task.read_inputs(with_trees):
        assert example.sentence is None and example.tags is None
    columns = written(tmp_path / "some.conll", "The\tDT\ncat\tNN\n\nGo\tVB\n")
    assert [e.entry.words for e in task.read_inputs(columns)] == [("The", "cat"), ("Go",)]
    DocBin(docs=[Doc(Vocab(), words=["The", "cat"])]).to_disk(tmp_path / "some.spacy")
    assert [e.entry.words for e in task.read_inputs(str(tmp_path / "some.spacy"))] == [("The", "cat")]
    assert task.parse("The cat").entry.words == ("The", "cat")
    broken = written(tmp_path / "broken.trees", f"{TREES[0]}\n{TREES[0][:-1]}\n")
    with pytest.raises(sp.DataError, match="trees:2: found an unclosed bracket"):
        task.read_inputs(broken)
    for text in (TREES[0][:-1], f"{TREES[0]} {TREES[0]}", "(S\n  (NN a))", "( (S\n  (NN a)))"):
        with pytest.raises(sp.DataError, match=r"trees:2: found .* expected one tree per line"):
            task.read_inputs(written(tmp_path / "broken.trees", f"\n{text}\n"))
    assert all(map(trees.is_beginning, ("(TOP (S:a (NP (DT The)", "(S1 (NP", "( (S", "(3 (2 It)", "(TOP")))
    prose = ("(A (very) good cat)", "(See (Smith 2020))", "((Smith 2020) it)", "(laughs)", "(NATO (North Atlantic) is")
    assert not any(map(trees.is_beginning, ("( ( O", "(\t(\tO", "( O", "(", *prose)))
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
    file = written(tmp_path / "some.trees", f"{TREES[0]} {TREES[0]}\n")  # one line of several words, as prose is
    assert "some.trees:1: found 2 trees" in spen("predict", run, file, status=2).stderr
    assert "trees are read from a file" in spen("predict", run, "--text", TREES[0], status=2).stderr
