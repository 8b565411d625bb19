"""Task `srl`: batches, scores, predictions, and facts."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from tests.builtin.tasks.tags.test_tagging import propose_tags
from tests.loaded import loaded

pytestmark = pytest.mark.usefixtures("whole_samples")

TRAIN = """0\tAnn\tNNP\t*\t-\t-\t(A0*)\t(A0*)
1\tcame\tVBD\t*\tcome\t-\t(V*)\t*
2\tand\tCC\t*\t-\t-\t*\t*
3\tsaw\tVBD\t*\tsee\t-\t*\t(V*)
4\t27\tCD\t*\t-\t-\t*\t(A1*
5\tShips\tNNS\t*\t-\t-\t*\t*)

0\tShe\tPRP\t*\t-\t-\t(A0*)
1\tsaw\tVBD\t*\tsee\t-\t(V*)
2\tships\tNNS\t*\t-\t-\t(A1*)
"""
TEST = """0\tBo\tNNP\t*\t-\t-\t(A0*)
1\tsaw\tVBD\t*\tsee\t-\t(V*)
2\t14\tCD\t*\t-\t-\t(A1*
3\tships\tNNS\t*\t-\t-\t*)
4\ttoday\tNN\t*\t-\t-\t(AM-TMP*)
"""


@pytest.fixture
def task(tmp_path: Path) -> sp.SemanticRoles:
    (tmp_path / "train").write_text(TRAIN)
    (tmp_path / "test").write_text(TEST)
    (tmp_path / "dev").write_text(TRAIN)
    paths = {part: str(tmp_path / name) for part, name in zip(sp.PARTS, ("train", "dev", "test"), strict=True)}
    return loaded("srl", **paths)


@pytest.fixture(scope="module")
def sample() -> sp.SemanticRoles:
    return loaded("srl", corpus="sample")


def test_one_example_per_predicate(task):
    assert [(e.entry.words[e.predicate], e.names[e.predicate]) for e in task.part("train")] == [
        ("came", "B-V"),
        ("saw", "B-V"),
        ("saw", "B-V"),
    ]
    first, second, _ = task.part("train")
    assert first.entry is second.entry and task.length(first) == 6
    assert len(task.part("validation")) == 3


def test_vocabulary(task):
    assert task.space.tags == ["O", "B-A0", "I-A0", "B-A1", "I-A1", "B-V", "I-V"]  # an A0 has one word
    assert list(task.inputs.words) == ["<pad>", "<unk>", "saw", "ships", "00", "and", "ann", "came", "she"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"min_count": 2}, ["saw", "ships"]),
        ({"min_count": 2, "lowercase": False}, ["saw"]),
        ({"digits": False, "lowercase": False}, ["saw", "27", "Ann", "She", "Ships", "and", "came", "ships"]),
    ],
)
def test_vocabulary_options(task, options, words):
    variant = loaded("srl", train=task.config.train, validation=task.config.validation, **options)
    assert list(variant.inputs.words[2:]) == words


def test_collate(task):
    batch = task.collate([task.part("train")[1], task.part("train")[2]], [7, 3])
    assert batch.rows.tolist() == [7, 3] and batch.labelled.tolist() == [True, True]
    assert batch.x.mask.tolist() == [[True] * 6, [True] * 3 + [False] * 3]
    assert batch.x.inputs["words"].tolist() == [[6, 7, 5, 2, 4, 3], [8, 2, 3, 0, 0, 0]]
    assert batch.x.inputs["predicate"].tolist() == [[0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 0]]
    assert batch.gold.shape == (2, 1, 6, 7) and batch.gold.dtype == torch.float
    assert batch.gold.sum(-1).tolist() == [[[1.0] * 6], [[1.0] * 3 + [0.0] * 3]]
    assert batch.gold.argmax(-1)[0, 0].tolist() == [1, 0, 0, 5, 3, 4]
    assert batch.to("cpu").examples == batch.examples


def test_gold_is_none_or_zero_where_unknown(task):
    labelled, unlabelled = task.part("train")[0], task.parse({"words": ["He", "came"], "predicate": 1})
    assert task.collate([unlabelled]).gold is None
    batch = task.collate([labelled, unlabelled])
    assert batch.labelled.tolist() == [True, False] and batch.gold[1].sum() == 0
    metric = task.metric()
    metric.update(propose_tags(task, batch, "B-A0 B-V O O O O", "B-A0 B-V"), batch)
    assert metric.compute()["span_f1"] == 1.0 and metric.compute()["accuracy"] == 1.0


def test_unseen_gold_roles_count_as_missed(task):
    (example,) = task.part("test")
    batch = task.collate([example], [0])
    assert batch.gold[0, 0, 4].tolist() == [1, 0, 0, 0, 0, 0, 0]
    metric = task.metric()
    metric.update(propose_tags(task, batch, "B-A0 B-V B-A1 I-A1 O"), batch)
    scores = metric.compute()
    assert (scores["span_precision"], scores["span_recall"]) == (1.0, pytest.approx(2 / 3))
    assert scores["accuracy"] == pytest.approx(4 / 5) and scores["exact_match"] == 0
    assert scores["roles"]["AM-TMP"]["gold"] == 1


UNSEEN = "warning: no training example has 1 of the 3 roles (AM-TMP): they can't be learned"


def test_roles_missing_in_training_are_reported(task):
    assert task.notes()[-1] == UNSEEN
    reversed_task = loaded("srl", train=task.config.test, validation=task.config.validation)
    assert not any("no training example" in note for note in reversed_task.notes())


def test_scores_over_batches(task):
    first, second, third = task.part("train")
    metric = task.metric()
    batch = task.collate([first, third])
    metric.update(propose_tags(task, batch, "B-A0 B-V B-A0 O O O", "B-A1 B-V B-A1"), batch)
    batch = task.collate([second])
    metric.update(propose_tags(task, batch, "B-A0 O O B-V I-A1:5 I-A1"), batch)
    scores = metric.compute()
    # Viterbi repairs the last sequence where it is least certain: I-A1 becomes B-A1.
    assert scores["invalid_bio"] == pytest.approx(1 / 3)
    assert scores["ucr"] == pytest.approx(2 / 3) and scores["ucr_gold"] == 0
    assert scores["span_recall"] == pytest.approx(4 / 5) and scores["span_precision"] == pytest.approx(4 / 6)


def test_core_roles_are_unique_if_required(task):
    unique = type(task)(task.config.model_copy(update={"unique_roles": True}))
    unique.restore(task.facts())
    assert not task.protocol()["unique_roles"]
    [first, *_] = task.part("train")
    batch = task.collate([first])
    output = propose_tags(task, batch, "B-A0:5 B-V B-A0 O O O")
    for decoding_task, tags in ((task, "B-A0 B-V B-A0 O O O"), (unique, "O B-V B-A0 O O O")):
        proposal = decoding_task.space.independent(output.logits, output.mask)
        assert decoding_task.predictions(proposal, batch, [first])[0]["tags"] == tags.split()
        metric = decoding_task.metric()
        metric.update(proposal, batch)
        assert metric.compute()["ucr"] == float(decoding_task is task)


def test_gold_has_perfect_scores_on_the_sample(sample):
    metric = sample.metric()
    part = sample.part("test")
    for i in range(0, len(part), 50):
        batch = sample.collate(part[i : i + 50])
        metric.update(sample.space.independent(batch.gold * 20, batch.x.mask), batch)
    scores = metric.compute()
    assert scores["span_f1"] == scores["exact_match"] == scores["accuracy"] == 1.0
    assert scores["ucr"] == scores["ucr_gold"] == scores["invalid_bio"] == 0.0


def test_predictions(task):
    examples = task.part("test")
    batch = task.collate(examples)
    (prediction,) = task.predictions(propose_tags(task, batch, "B-A0 B-V B-A1 I-A1 O"), batch, examples)
    scores = [argument.pop("score") for argument in prediction["arguments"]]
    assert all(0.9 < score <= 1 for score in scores)
    assert json.loads(json.dumps(prediction)) == {
        "words": ["Bo", "saw", "14", "ships", "today"],
        "predicate": {"index": 1, "word": "saw"},
        "arguments": [
            {"role": "A0", "start": 0, "end": 1, "text": "Bo"},
            {"role": "A1", "start": 2, "end": 4, "text": "14 ships"},
        ],
        "tags": ["B-A0", "B-V", "B-A1", "I-A1", "O"],
    }


def test_restore_needs_no_files(task):
    facts = json.loads(json.dumps(task.facts()))
    restored = sp.SemanticRoles(sp.SemanticRoles.Config(train="gone", test="gone"))
    restored.restore(facts)
    assert restored.space.tags == task.space.tags and list(restored.inputs.words) == list(task.inputs.words)
    (example,) = restored.read(task.config.test)
    assert torch.equal(restored.collate([example]).gold, task.collate(task.part("test")).gold)
    assert task.checksums().keys() == {task.config.train, task.config.validation, task.config.test}


@pytest.mark.parametrize(
    "item",
    [
        "Ann came",
        {"words": "Ann came", "predicate": 1},
        {"words": [], "predicate": 0},
        {"words": ["Ann", ""], "predicate": 0},
        {"words": ["Ann", "came"]},
        {"words": ["Ann", "came"], "predicate": 2},
        {"words": ["Ann", "came"], "predicate": True},
        {"words": ["Ann", "came"], "predicate": 1, "tags": ["O"]},
        {"words": ["Ann", "came"], "predicate": 1, "tags": "OO"},
        {"words": ["Ann", "came"], "predicate": 1, "tags": 2},
        {"words": ["Ann", "came"], "predicate": 1, "tags": [["O"], ["O"]]},
    ],
)
def test_invalid_items_are_rejected(task, item):
    with pytest.raises(sp.DataError):
        task.parse(item)


@pytest.mark.parametrize("part", sp.PARTS)
def test_files_without_predicates_are_rejected(task, tmp_path, part):
    (tmp_path / "none").write_text("0\tAnn\tNNP\t*\t-\t-\n")
    paths = {name: getattr(task.config, name) for name in sp.PARTS} | {part: str(tmp_path / "none")}
    if part == "train":  # the layout can't be detected in a file without brackets
        paths["layout"] = "propbank"
    with pytest.raises(sp.DataError, match=rf"none: found no predicate \(task\.{part}\)"):
        loaded("srl", **paths)


def test_a_metric_accepts_batches_without_gold(task):
    example, unknown = task.part("train")[0], task.parse({"words": ["He", "came"], "predicate": 1})
    labelled, metric = task.collate([example]), task.metric()
    unlabelled = task.collate([unknown])
    proposal = task.space.independent(torch.zeros(1, 1, 2, len(task.space.tags)), unlabelled.x.mask)
    metric.update(proposal, unlabelled)
    zero = torch.zeros(1, 1, 2, len(task.space.tags))
    metric.update(proposal, dataclasses.replace(unlabelled, gold=zero))
    with pytest.raises(sp.DataError, match="no predicate with gold"):
        metric.compute()
    metric.update(propose_tags(task, labelled, "B-A0 B-V O O O O"), labelled)
    metric.update(proposal, unlabelled)
    assert metric.compute()["span_f1"] == metric.compute()["accuracy"] == 1.0


def test_files_are_found_below_the_home_folder(task, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    home_task = loaded("srl", train="~/train", validation="~/dev")
    assert len(home_task.part("train")) == 3 and len(home_task.read("~/test")) == 1


def test_indexers_see_each_sentence_once(task):
    sentences = []

    class Lengths(sp.Indexer):
        def index(self, words):
            sentences.append(words)
            return [len(word) for word in words]

        def collate(self, items):
            return {"lengths": torch.tensor([sum(item) for item in items])}

    task.indexers["lengths"] = Lengths()
    for _ in range(2):
        batch = task.collate(task.part("train"))
    assert batch.x.inputs["lengths"].tolist() == [20, 20, 11] and len(sentences) == 2


def test_scoring_five_thousand_predicates_takes_seconds(sample):
    """Counts calls, of which a processor does millions per second: tables do the work, not loops over tokens."""
    part = list(sample.part("train"))[:500]
    batches = [sample.collate(part[i : i + 50]) for i in range(0, 500, 50)]
    proposals = [sample.space.independent(torch.randn(b.gold.shape), b.x.mask) for b in batches]
    metric, calls = sample.metric(), Counter()
    sys.setprofile(lambda frame, event, argument: calls.update([event]))
    try:
        for proposal, batch in zip(proposals, batches, strict=True):
            metric.update(proposal, batch)
        metric.compute()
    finally:
        sys.setprofile(None)
    assert calls["call"] + calls["c_call"] < 400 * len(part)


def test_only_some_training_sentences_have_roles(task: sp.SemanticRoles, tmp_path: Path) -> None:
    (tmp_path / "more").write_text("0\tSnow\tNN\t*\t-\t-\n1\tfell\tVBD\t*\tfall\t-\n")
    fields = {**task.config.model_dump(), "labelled": 1, "repeat": 2, "unlabelled": str(tmp_path / "more")}

    def load_few(**options: object) -> sp.SemanticRoles:
        return loaded("srl", **{**fields, **options})

    few_task = load_few()
    assert any(note.startswith(f"{tmp_path / 'more'}: read as ") for note in few_task.notes())
    train = few_task.part("train")
    assert [(e.entry.words[e.predicate], e.tags is not None) for e in train] == [
        *[("came", True), ("saw", True)],
        *[("saw", False), ("fell", False)],
        *[("came", True), ("saw", True)],
    ]
    assert load_few(min_count=2).facts()["words"] == load_few(min_count=2, repeat=1).facts()["words"]
    assert str(tmp_path / "more") in few_task.checksums() and "snow" in few_task.facts()["words"]
    assert few_task.protocol()["labelled"] == "the first 1 training sentences" and "labelled" not in task.protocol()
    batch = few_task.collate(train[1:3])
    assert batch.labelled.tolist() == [True, False] and not batch.gold[1].any()
    assert [len(other.part("train")) for other in (load_few(rest=False), load_few(unlabelled=None, repeat=1))] == [5, 3]
    with pytest.raises(sp.DataError, match=r"expected at least task\.labelled=3"):
        load_few(labelled=3)
    (tmp_path / "more").write_text("0\tSnow\tNN\t*\t-\t-\n")
    with pytest.raises(sp.DataError, match=r"no predicate \(task\.unlabelled\)"):
        load_few()
    (tmp_path / "train").write_text("0\tSnow\tNN\t*\t-\t-\n\n" + TRAIN)
    with pytest.raises(sp.DataError, match=r"no predicate with roles \(task\.train\)"):
        load_few(unlabelled=None)
