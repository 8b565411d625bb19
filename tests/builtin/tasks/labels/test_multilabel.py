"""The multi-label task: parts, batches, scaling, scores, predictions, and coming back from its facts."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn import metrics
from torchmetrics.functional import classification as tm

import spen_plugins as sp
from spen_plugins.builtin.tasks.labels.label_metric import LabelMetric
from spen_plugins.builtin.tasks.labels.multilabel import MultiLabel
from spen_plugins.builtin.tasks.labels.vector_parts import Scaling, Size
from spen_plugins.console import Console
from spen_plugins.data.parts.split import split_file
from spen_plugins.report.group_scores import find_score
from spen_plugins.runs.folder.summary import print_scores
from spen_plugins.samples import labels as sample
from spen_plugins.scores.label_decoding import GRID, LabelDecoder
from spen_plugins.scores.label_scores import at_k, average_precision, scores
from tests.loaded import in_memory, loaded, parquet_file

task = partial(loaded, "multilabel")
MIXED = """@relation r
@attribute id string
@attribute age numeric
@attribute still numeric
@attribute colour {red,green,blue}
@attribute smokes {no,yes}
@attribute a {0,1}
@attribute b {0,1}
@data
p1,10,7,red,yes,1,0
p2,20,7,green,no,0,1
p3,?,7,?,?,1,1
p4,40,7,blue,no,0,0
p5,1000,9,blue,yes,0,1
"""


@pytest.fixture
def mixed(tmp_path):
    (tmp_path / "x.arff").write_text(MIXED)
    (tmp_path / "split.json").write_text(json.dumps({"train": [0, 1, 2, 3], "valid": [4]}))
    return {"file": str(tmp_path / "x.arff"), "split": str(tmp_path / "split.json"), "label_count": 2, "drop": ["id"]}


def test_reals_are_standardised_by_training_statistics(mixed):
    it = task(**mixed)
    assert not it.inputs.binary and it.inputs.size == 6 and it.space.labels == ["a", "b"]
    batch = it.collate(it.part("train"))
    known = np.array([10, 20, 40.0])
    age = (known - known.mean()) / known.std()
    expected = [
        [age[0], 0, 1, 0, 0, 1],  # a constant column's deviation counts as 1
        [age[1], 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 0],  # missing: the training mean, and no value of a nominal
        [age[2], 0, 0, 0, 1, 0],
    ]
    np.testing.assert_allclose(batch.x.inputs["vector"], expected, rtol=1e-6)
    test = it.collate(it.part("validation")).x.inputs["vector"][0]
    np.testing.assert_allclose(test, [(1000 - known.mean()) / known.std(), 2, 0, 0, 1, 1], rtol=1e-6)
    assert batch.x.inputs["vector"].dtype == torch.float32
    torch.testing.assert_close(batch.gold[:, 0], torch.tensor([[1.0, 0], [0, 1], [1, 1], [0, 0]]))
    assert batch.gold.shape == (4, 1, 2) and batch.labelled.all()


def test_scaling_ignores_what_is_missing():
    scaling = Scaling.fit(np.array([[1.0, np.nan], [3.0, np.nan]]), np.array([True, True]))
    np.testing.assert_allclose(scaling.mean, [2, 0])
    np.testing.assert_allclose(scaling.std, [1, 1])
    assert (Scaling.fit(np.full((3, 1), 0.1), np.array([True])).std == 1).all()


@pytest.mark.parametrize("corpus", ["sample", None])
def test_facts_bring_a_task_back(mixed, corpus):
    fields = {"corpus": "sample"} if corpus else mixed
    one = task(**fields)
    two = MultiLabel(one.config)
    two.restore(json.loads(json.dumps(one.facts())))
    assert two.facts() == one.facts() and two.inputs == one.inputs and two.space.labels == one.space.labels
    assert two.protocol() == one.protocol() and not two.part("train")
    if not corpus:
        for left, right in zip(one.read(fields["file"]), two.read(fields["file"]), strict=True):
            np.testing.assert_array_equal(left.features, right.features)
            np.testing.assert_array_equal(left.gold, right.gold)
        np.testing.assert_array_equal(two.read(fields["file"])[0].features, one.part("train")[0].features)


def test_bags_are_the_rows_of_the_file():
    it = task(corpus="sample")
    examples = [it.part("train")[i] for i in (3, 0, 5)]
    examples[1] = dataclasses.replace(examples[1], features=np.empty(0, np.int32))  # nothing seen at all
    batch = it.collate(examples, [3, 0, 5])
    indices, offsets = batch.x.inputs["indices"], batch.x.inputs["offsets"]
    assert indices.dtype == offsets.dtype == torch.int64 and offsets[0] == 0 and offsets[1] == offsets[2]
    for i, example in enumerate(examples):
        end = offsets[i + 1] if i < 2 else len(indices)
        assert indices[offsets[i] : end].tolist() == example.features.tolist()
        assert batch.gold[i, 0].nonzero().flatten().tolist() == example.gold.tolist()
    assert batch.rows.tolist() == [3, 0, 5] and batch.x.mask is None and len(batch) == 3


def test_batches_without_gold():
    it = task(corpus="sample")
    one, two = it.part("test")[:2]
    batch = it.collate([one, dataclasses.replace(two, gold=None)])
    assert batch.labelled.tolist() == [True, False] and not batch.gold[1].any()
    assert it.collate([dataclasses.replace(one, gold=None)]).gold is None


def test_parse(mixed):
    it = task(**mixed)
    row = it.part("train")[0]
    by_name = it.parse({"features": {"age": 10, "still": 7, "colour": "red", "smokes": "yes"}, "labels": ["a"]})
    np.testing.assert_array_equal(by_name.features, row.features)
    np.testing.assert_array_equal(by_name.gold, row.gold)
    np.testing.assert_array_equal(it.parse({"vector": [10, 7, 1, 0, 0, 1]}).features, row.features)
    np.testing.assert_array_equal(it.parse({"features": {"smokes": True}}).features, [0, 0, 0, 0, 0, 1])
    words = task(corpus="sample")
    some = sample.words()[4:6]
    assert words.parse({"features": some}).features.tolist() == [4, 5]
    assert words.parse({"features": dict.fromkeys(some, 1)}).gold is None
    assert words.parse({"vector": [0, 1, *[0] * 298]}).features.tolist() == [1]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"features": {"agge": 1}}, "feature 'agge'.*Did you mean 'age'"),
        ({"features": {"age": "old"}}, "'old' for feature 'age'; expected a finite number"),
        ({"features": {"age": float("nan")}}, "nan for feature 'age'"),
        ({"features": {"colour": "pink"}}, "'pink' for feature 'colour'; expected one of red, green, blue"),
        ({"features": {"smokes": 3}}, "3 for feature 'smokes'"),
        ({"features": "age"}, "expected {name: value}"),
        ({"vector": [1, 2]}, r"a vector \[1, 2\]; expected 6 numbers"),
        ({"vector": [1, 2, 0.5, 0, 0, 0]}, "0.5 for feature 'colour=red'; expected 0 or 1"),
        ({"vector": ["x"] * 6}, "expected 6 numbers"),
        ({"vector": [0] * 6, "labels": ["c"]}, "label 'c'"),
        ({"text": "hello"}, "keys 'text'"),
        ({"vector": [0] * 6, "labels": "ab"}, "labels 'ab'; expected a list of label names"),
        ({"vector": [0] * 6, "labels": {"a": 1}}, "expected a list of label names"),
        ({"vector": [0] * 6, "labels": 1}, "labels 1; expected a list of label names"),
        ({"vector": [0] * 6, "labels": [["a"]]}, r"label \['a'\]"),
        ({"features": [["age"]]}, r"feature \['age'\]"),
        ([1, 2], "list"),
    ],
)
def test_bad_items(mixed, item, message):
    with pytest.raises(sp.DataError, match=message):
        task(**mixed).parse(item)


def test_separate_files(tmp_path, mixed):
    head, _, rows = MIXED.partition("@data\n")
    rows = rows.splitlines()
    for name, some in (("tr", rows[:3]), ("va", rows[3:]), ("te", rows[4:])):
        (tmp_path / f"{name}.arff").write_text(head + "@data\n" + "\n".join(some))
    paths = {part: str(tmp_path / f"{part[:2]}.arff") for part in sp.PARTS}
    it = task(**paths, label_count=2, drop=["id"])
    assert [len(it.part(name)) for name in sp.PARTS] == [3, 2, 1]
    assert it.scaling.mean[0] == 15  # of the training file alone
    assert set(it.checksums()) == set(paths.values()) and all(len(s) == 64 for s in it.checksums().values())


def test_labels_beside_the_file(tmp_path, mixed):
    (tmp_path / "x.xml").write_text("<labels><label name='b'/></labels>")
    it = task(**{k: v for k, v in mixed.items() if k != "label_count"})
    assert it.space.labels == ["b"] and it.inputs.size == 7
    assert str(tmp_path / "x.xml") in it.checksums()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, r"found no data; expected one of task\.corpus, task\.in_memory alone"),
        ({"corpus": "sample", "file": "x"}, r"task\.corpus, task\.file; expected one of"),
        ({"corpus": "sample", "split": "x"}, r"task\.corpus, task\.split;"),
        ({"corpus": "sample", "labels": "x"}, r"task\.corpus, task\.labels;"),
        ({"corpus": "sample", "label_count": 2}, r"task\.corpus, task\.label_count;"),
        ({"corpus": "sample", "test": "x"}, r"task\.corpus, task\.test;"),
        ({"corpus": "sample", "drop": ["a"]}, r"task\.drop: .* no effect"),
        ({"corpus": "sample", "train": "x", "validation": "y", "test": "z"}, "data=files"),
        ({"file": "x", "split": "y", "test": "z"}, r"task\.file, task\.split, task\.test;"),
        ({"file": "x", "validation": "z"}, r"task\.file, task\.validation;"),
        ({"file": "x", "split": "y", "labels": "z", "label_count": 2}, "found labels and label_count"),
        ({"train": "x", "validation": "y", "split": "z"}, r"task\.split, task\.train, task\.validation;"),
        ({"validation": "x", "test": "y"}, r"found task\.validation, task\.test; expected one of"),
        ({"train": "x.arff"}, "validation="),
        ({"corpus": "sample", "threshold": 2.0}, "threshold"),
    ],
)
def test_configs_that_describe_no_data(fields, message):
    with pytest.raises(sp.ConfigError, match=message):
        task(**fields)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"drop": ["idd"]}, sp.ConfigError, "'idd' of .* is not a column. Did you mean 'id'"),
        ({"drop": []}, sp.DataError, "attribute 'id' of type text"),
        ({"label_count": 9}, sp.ConfigError, "label_count"),
        ({"label_count": None}, sp.ConfigError, "which of them are labels"),
        ({"drop": ["id", "a"]}, sp.ConfigError, "'a' of .* is a label"),
    ],
)
def test_configs_that_do_not_fit_the_data(mixed, change, error, message):
    with pytest.raises(error, match=message):
        task(**mixed | change)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("[0, 1]", "no JSON object"),
        ("{", "no JSON object"),
        ('{"train": [0], "dev": [1]}', "the parts train"),
        ('{"train": [0, 5], "valid": [1]}', "row 5 in train; expected numbers from 0 to 4"),
        ('{"train": [0, -1], "valid": [1]}', "row -1"),
        ('{"train": [0, 1], "valid": [1]}', "row 1 in train and in validation"),
        ('{"train": [0, 1], "valid": []}', r"no labelled example in the validation part \(task\.split\)"),
        ('{"train": 5, "valid": [1]}', "5 as the rows of train; expected a list"),
        ('{"train": "01", "valid": [1]}', "'01' as the rows of train; expected a list"),
        ('{"train": [0], "valid": {"1": 1}}', "as the rows of validation; expected a list"),
        ('{"train": [[0]], "valid": [1]}', r"row \[0\] in train"),
        ('{"train": [true], "valid": [1]}', "row True in train"),
        ('{"train": [0], "valid": [1], "validation": [2]}', "train, valid, validation; expected the parts train"),
        ("{}", "no parts"),
    ],
)
def test_bad_splits(tmp_path, mixed, split, message):
    (tmp_path / "split.json").write_text(split)
    with pytest.raises(sp.DataError, match=message):
        task(**mixed)


def test_rows_without_labels_may_be_trained_on_but_not_scored(tmp_path, mixed):
    (tmp_path / "x.arff").write_text(MIXED.replace("?,?,1,1", "?,?,?,?"))
    it = task(**mixed)
    assert it.collate(it.part("train")).labelled.tolist() == [True, True, False, True]
    (tmp_path / "split.json").write_text('{"train": [0], "valid": [1], "test": [2]}')
    with pytest.raises(sp.DataError, match="1 rows without labels in the test part"):
        task(**mixed)


def proposal(p: torch.Tensor, gold: torch.Tensor, labelled=None) -> tuple[sp.Proposal, sp.Batch]:
    space = sp.LabelSet([f"l{i}" for i in range(p.shape[1])])
    x = sp.X({}, None, len(p))
    labelled = torch.ones(len(p), dtype=torch.bool) if labelled is None else labelled
    return space.independent(torch.logit(p).unsqueeze(1)), sp.Batch(
        x, torch.arange(len(p)), gold.float().unsqueeze(1), labelled
    )


def drawn(rows: int = 57, labels: int = 11) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(rows, labels, generator=generator)
    gold = torch.rand(rows, labels, generator=generator) < 0.3
    gold[:3], p[2:5] = False, 0.1  # empty gold, empty prediction, both
    gold[:, 4], p[:, 4] = False, 0.2  # a label in neither
    return p, gold


def test_scores_by_hand():
    predicted = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 0, 1], [0, 0, 0]]).bool()
    gold = torch.tensor([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 0, 0]]).bool()
    # examples: 2/3, 0 (empty prediction), 1, 0 (both empty); labels: 1, 0, 1; together tp 3, fp 1, fn 1
    assert scores(predicted, gold) == pytest.approx(
        {"example_f1": (2 / 3 + 1) / 4, "micro_f1": 6 / 8, "macro_f1": 2 / 3, "accuracy": 0.5, "hamming": 2 / 12}
    )


def test_scores_equal_scikit_learns_and_torchmetrics():
    p, gold = drawn()
    got = scores(p > 0.5, gold)
    y, z = gold.numpy(), (p > 0.5).numpy()
    for average, name in (("samples", "example_f1"), ("micro", "micro_f1"), ("macro", "macro_f1")):
        assert got[name] == pytest.approx(metrics.f1_score(y, z, average=average, zero_division=0))
    assert got["accuracy"] == pytest.approx(metrics.accuracy_score(y, z))
    assert got["hamming"] == pytest.approx(metrics.hamming_loss(y, z))
    given = (p, gold.long(), p.shape[1])
    assert got["micro_f1"] == pytest.approx(tm.multilabel_f1_score(*given, average="micro").item())
    assert got["macro_f1"] == pytest.approx(tm.multilabel_f1_score(*given, average="macro").item())
    assert got["accuracy"] == pytest.approx(tm.multilabel_exact_match(*given).item())
    assert got["hamming"] == pytest.approx(tm.multilabel_hamming_distance(*given).item(), abs=1e-6)
    metric = LabelMetric(average_precision=True)
    metric.update(*proposal(p, gold))
    assert metric.compute()["micro_ap"] == pytest.approx(
        metrics.average_precision_score(y.ravel(), p.numpy().ravel()), abs=1e-12
    )


def test_metric_adds_batches_up_and_leaves_rows_without_gold_out():
    p, gold = drawn()
    metric, labelled = LabelMetric(LabelDecoder(0.4)), torch.arange(len(p)) % 3 > 0
    for rows in torch.arange(len(p)).split(10):
        metric.update(*proposal(p[rows], gold[rows], labelled[rows]))
    assert metric.compute() == pytest.approx(scores(p[labelled] > 0.4, gold[labelled]))


def test_a_metric_takes_batches_without_gold():
    p, gold = drawn()
    metric, none = LabelMetric(), torch.zeros(len(p), dtype=torch.bool)
    made, batch = proposal(p, gold, none)
    metric.update(made, dataclasses.replace(batch, gold=None))
    metric.update(made, batch)
    with pytest.raises(sp.DataError, match="no example with gold"):
        metric.compute()
    metric.update(*proposal(p, gold))
    assert metric.compute() == scores(p > 0.5, gold)


def test_the_threshold_is_the_best_of_the_grid():
    p, gold = drawn()
    it = task(corpus="sample", threshold="validation")
    assert it.threshold == 0.5
    metric = it.metric()
    metric.update(*proposal(p, gold))
    it.fit_threshold(metric)
    by_hand = {t: scores(p > t, gold)["example_f1"] for t in GRID}
    assert by_hand[it.threshold] == max(by_hand.values()) > by_hand[0.5]
    assert metric.compute()["example_f1"] == by_hand[it.threshold] and it.facts()["threshold"] == it.threshold
    assert it.protocol()["threshold"] == f"{it.threshold:g}, picked on validation by example_f1 from 0.05 to 0.95"
    fixed = task(corpus="sample")
    fixed.fit_threshold(metric)
    assert fixed.threshold == 0.5 and fixed.protocol()["threshold"] == "0.5, fixed"


def test_predictions():
    it = task(corpus="sample")
    names = it.space.labels
    p = torch.full((2, 40), 0.01)
    p[0, 7], p[0, 3], p[1, :12] = 0.9, 0.6, 0.8
    batch = it.collate(it.part("test")[:2])
    first, second = it.predictions(it.space.independent(torch.logit(p).unsqueeze(1)), batch, it.part("test")[:2])
    assert first["labels"] == [names[7], names[3]]
    assert list(first["probabilities"])[:2] == first["labels"] and len(first["probabilities"]) == 10
    assert first["probabilities"][names[7]] == pytest.approx(0.9, abs=1e-5)
    assert sorted(second["labels"]) == sorted(names[:12]) and len(second["probabilities"]) == 12
    json.dumps([first, second])


def test_what_is_decoded_is_what_is_predicted():
    it = task(corpus="sample", threshold=0.7)
    p = torch.full((2, 40), 0.01)
    p[0, 7], p[0, 3], p[1, 5] = 0.9, 0.6, 0.7 - 1e-4
    examples = it.part("test")[:2]
    made = it.space.independent(torch.logit(p).unsqueeze(1))
    decoded = it.decode(made)
    assert decoded.shape == (2, 1, 40) and decoded.nonzero().tolist() == [[0, 0, 7]]
    labels = [answer["labels"] for answer in it.predictions(made, it.collate(examples), examples)]
    assert labels == [[it.space.labels[7]], []]
    assert made.mode.sum() == 3


def test_the_root_of_a_hierarchy_can_be_a_label(tmp_path):
    text = "@relation r\n@attribute a numeric\n@attribute c hierarchical 1,1/2\n@data\n1,1\n2,1/2\n"
    for part in ("train", "validation"):
        (tmp_path / f"{part}.arff").write_text(text)
    files = {part: str(tmp_path / f"{part}.arff") for part in ("train", "validation")}
    it = task(**files, root=True)
    assert it.space.labels == ["root", "1", "1/2"]
    assert [example.gold.tolist() for example in it.part("train")] == [[0, 1], [0, 1, 2]]
    again = MultiLabel(it.config)
    again.restore(it.facts())
    assert [example.gold.tolist() for example in again.read(files["train"])] == [[0, 1], [0, 1, 2]]
    flat = tmp_path / "flat.arff"
    flat.write_text("@relation r\n@attribute a numeric\n@attribute c {0,1}\n@data\n1,1\n2,0\n")
    with pytest.raises(sp.ConfigError, match=r"task\.root"):
        task(train=str(flat), validation=str(flat), label_count=1, root=True)


def test_test_rows_that_repeat_a_training_row_can_be_left_out(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,tag_x\n1,0,1\n0,1,0\n1,0,1\n1,0,0\n0,1,0\n1,1,1\n")
    (tmp_path / "s.json").write_text('{"train": [0, 1], "validation": [2], "test": [3, 4, 5]}')
    given = {"file": str(tmp_path / "x.csv"), "split": str(tmp_path / "s.json"), "labels": "tag_*"}
    assert len(task(**given).part("test")) == 3
    unseen = task(**given, unseen=True)
    assert [example.gold.tolist() for example in unseen.part("test")] == [[], [0]]  # rows 3 (another label) and 5
    assert len(unseen.part("validation")) == 1
    said = "the train part also has {} of the {} test inputs"
    assert any(said.format(2, 3) in note for note in task(**given).notes())
    assert any(said.format(1, 2) in note for note in unseen.notes())
    assert unseen.protocol()["split"].endswith("1 of 3 test rows repeat a training row and are left out")


def test_only_some_training_rows_have_labels(mixed, tmp_path):
    (tmp_path / "more.arff").write_text(MIXED)
    some = {**mixed, "labelled": 2, "repeat": 3}
    it = task(**some, unlabelled=[str(tmp_path / "more.arff")])
    train = it.part("train")
    assert [example.gold is not None for example in train] == [True, True] * 3 + [False] * 7
    assert train[2] is train[0] and len(it.part("validation")) == 1
    assert f"{tmp_path / 'more.arff'}: read as ARFF (5 rows)" in it.notes()
    batch = it.collate(train[5:7])
    assert batch.labelled.tolist() == [True, False] and batch.gold[:, 0].tolist() == [[0, 1], [0, 0]]
    assert it.collate(train[6:]).gold is None
    every = task(**mixed)
    assert it.scaling.facts() == every.scaling.facts()  # features of rows without labels are looked at, too
    more = it.collate(train[-5:]).x.inputs["vector"]
    torch.testing.assert_close(more, it.collate([*every.part("train"), *every.part("validation")]).x.inputs["vector"])
    assert it.protocol()["split"].endswith("; 2 training examples with gold, 7 without")
    assert str(tmp_path / "more.arff") in it.checksums() and "without" not in every.protocol()["split"]
    assert len(task(**some, rest=False).part("train")) == 6
    with pytest.raises(sp.DataError, match=r"found 4 training examples; expected at least task\.labelled=5"):
        task(**mixed, labelled=5)
    parts = {name: (np.eye(8), np.eye(8)[:, :2]) for name in ("train", "validation")}
    given = in_memory("multilabel", parts, labelled=3, selection="micro_f1")
    assert [example.gold is not None for example in given.part("train")] == [True] * 3 + [False] * 5
    assert all(example.gold is not None for example in given.part("validation"))


@pytest.mark.parametrize("sparse", [False, True])
def test_scaling_is_of_the_rows_that_are_trained_on(sparse, tmp_path):
    values = np.array([[1.0, 8.0], [3.0, 6.0], [100.0, 90.0], [50.0, 70.0]])
    given, labels = csr_array(values) if sparse else values, np.ones((4, 1), dtype=int)
    lines = [f"{a},{b},1\n" for a, b in values]
    for name in ("x.csv", "y.csv"):
        (tmp_path / name).write_text("".join(["a,b,tag_x\n", *lines]))
    files = {"train": str(tmp_path / "x.csv"), "validation": str(tmp_path / "y.csv"), "labels": "tag_*"}
    for few, rows in (({"labelled": 2, "rest": False}, 2), ({"labelled": 2}, 4), ({"rest": False}, 4)):
        it = in_memory("multilabel", dict.fromkeys(("train", "validation"), (given, labels)), **few)
        if sparse:
            assert it.scaling.size == pytest.approx(Size.fit(values[:rows].ravel()).size)
        else:
            for scaling in (it.scaling, task(**files, **few).scaling):
                np.testing.assert_allclose(scaling.mean, values[:rows].mean(0))


def test_labels_of_a_hierarchical_attribute_are_its_paths(tmp_path):
    text = "@relation r\n@attribute a numeric\n@attribute c hierarchical 1,1/2\n@data\n1,1\n2,1/2\n"
    (tmp_path / "x.arff").write_text(text)
    (tmp_path / "s.json").write_text('{"train": [0], "validation": [1]}')
    given = {"file": str(tmp_path / "x.arff"), "split": str(tmp_path / "s.json")}
    assert task(**given).space.labels == ["1", "1/2"]
    for unused in ({"labels": "x.xml"}, {"label_count": 1}):
        with pytest.raises(sp.ConfigError, match=f"{next(iter(unused))}=.*hierarchical"):
            task(**given, **unused)
    with pytest.raises(sp.ConfigError, match=r"'c' of .* is a label"):
        task(**given, drop=["c"])


@pytest.mark.skipif(not os.environ.get("SPEN_DATA"), reason="$SPEN_DATA is not set")
def test_genbase_is_binary_and_split():
    it = task(
        file="data:multilabel/genbase/genbase.arff", split="data:multilabel/splits/genbase.json", drop=["protein"]
    )
    assert it.inputs.binary and it.inputs.size == 1185 and len(it.space.labels) == 27
    assert [len(it.part(name)) for name in sp.PARTS] == [397, 132, 133]


LISTS = [["rain", "wind"], ["rain"], ["wind"], [], ["sun"]] * 6


def lists_file(folder: Path, form: str, names: str = "age,tags,seen,day", separator: str = ";") -> str:
    """Rows of features with a column of label lists, the second one."""
    path = folder / f"lists.{form}"
    columns = [[n * 7 % 30 for n in range(30)], LISTS, [n % 2 for n in range(30)], [f"d{n % 3}" for n in range(30)]]
    if form == "parquet":
        parquet_file(path, dict(zip(names.split(","), columns, strict=True)))
    else:
        rows = zip(columns[0], map(separator.join, LISTS), *columns[2:], strict=True)
        path.write_text("\n".join([names, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_labels_in_one_column_of_lists(tmp_path, form):
    path = lists_file(tmp_path, form)
    it = task(file=path, labels="tags", separator=";", drop="day")
    assert it.space.labels == ["rain", "sun", "wind"] and it.columns.names == ["age", "seen"]
    assert [len(it.part(part)) for part in ("train", "validation", "test")] == [18, 6, 6]
    assert any("feature columns: age, seen" in note for note in it.notes())
    restored = MultiLabel(it.config)
    restored.restore(json.loads(json.dumps(it.facts())))
    gold = [[restored.space.labels[i] for i in example.gold] for example in restored.read(path)]
    assert gold == LISTS
    rows = restored.read_inputs(path)
    assert all(example.gold is None for example in rows)
    found = [{"labels": ["rain", "wind"], "probabilities": dict.fromkeys(it.space.labels, 0.5)}] * len(rows)
    head, first, *_ = restored.formats()["csv"](found, rows).splitlines()
    assert head == "age,tags,seen,day,predicted,p_rain,p_sun,p_wind" and first.endswith(",rain;wind,0.5,0.5,0.5")
    split = split_file(path, labels="tags", separator=";", drop="day")
    by_split = task(file=path, labels="tags", separator=";", drop="day", split=str(split))
    for part in ("train", "validation", "test"):
        ours, theirs = ([(e.features.tolist(), e.gold.tolist()) for e in one.part(part)] for one in (it, by_split))
        assert ours == theirs


def test_a_column_of_lists_of_another_file(tmp_path):
    it = task(file=lists_file(tmp_path, "csv"), labels="tags", separator=";")
    other = lists_file(tmp_path, "csv", "age,kinds,seen,day", "|")
    plain = tmp_path / "plain.csv"
    plain.write_text("age,seen,day\n1,0,d1\n")
    assert [example.gold for example in it.read(str(plain))] == [None]
    with pytest.raises(sp.DataError, match="column 'kinds'"):
        it.read(other)
    it.config = it.config.model_copy(update={"labels": "kinds", "separator": "|"})
    assert [len(example.gold) for example in it.read(other)] == [len(labels) for labels in LISTS]
    with pytest.raises(sp.DataError, match=r"label 'rain\|wind'; expected one of the 3 labels"):
        it.config = it.config.model_copy(update={"separator": ";"})
        it.read(other)


def test_another_separator_in_a_column_of_lists_is_an_error(tmp_path):
    path = lists_file(tmp_path, "csv", separator="|")
    found = r"lists\.csv:2: found label 'rain\|wind' beside 'rain' and 'wind'; .* pass \"separator=\|\" to split it"
    for load in (lambda: task(file=path, labels="tags"), lambda: split_file(path, labels="tags")):
        with pytest.raises(sp.DataError, match=found):
            load()
    with pytest.raises(sp.ConfigError, match=r"task\.labels: found 3; .* label_count="):
        task(file=path, labels=3)


def test_a_pattern_of_labels_does_not_take_what_is_dropped(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("n,tag_a,tag_b,tag_c\n" + "".join(f"{n}.5,{n % 2},1,{n % 5}\n" for n in range(20)))
    it = task(file=str(path), labels="tag_*", drop="tag_c")
    assert it.space.labels == ["tag_a", "tag_b"] and it.columns.names == ["n"]


def test_a_column_that_was_learned_from_cannot_be_dropped_later(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("x,y,a\n1,2.5,1\n2,1.5,0\n")
    it = task(train=str(path), validation=str(path), labels="a")
    it.config = it.config.model_copy(update={"drop": ["x"]})
    with pytest.raises(sp.ConfigError, match="drop=: found 'x', a feature of the run"):
        it.read(str(path))


# Labels in order


@pytest.fixture
def ranked() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    p, gold = rng.random((60, 12)), rng.random((60, 12)) < 0.2
    gold[3], gold[:, 5] = False, False  # an example without labels, a label without examples
    return torch.tensor(p), torch.tensor(gold)


def test_scores_of_the_first_k_by_hand():
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


def test_scores_of_labels_in_order_equal_scikit_learns(ranked):
    p, gold = ranked
    some = gold.any(1)
    for k, found in at_k(p, gold, [1, 3, 5]).items():
        assert found["ndcg"] == pytest.approx(metrics.ndcg_score(gold[some].numpy(), p[some].numpy(), k=int(k)))
    for values in (p, p.mul(4).round().div(4)):  # many equal ones, too
        kept = gold.any(0)
        by_label = metrics.average_precision_score(gold[:, kept].numpy(), values[:, kept].numpy(), average="macro")
        assert average_precision(values.T, gold.T) == pytest.approx(by_label)
        by_example = metrics.average_precision_score(gold[some].numpy(), values[some].numpy(), average="samples")
        assert average_precision(values, gold) == pytest.approx(by_example)
    assert average_precision(p, torch.zeros_like(gold)) is None


def test_they_come_at_the_end_and_do_not_crowd_the_table(tmp_path):
    it = task(corpus="sample", at=[1, 2])
    metric, batch = it.metric(), it.collate(it.part("validation"))
    assert isinstance(metric, LabelMetric)
    metric.update(it.space.independent(torch.randn(batch.gold.shape), None), batch)
    assert not metric.compute().keys() & {"ranking", "example_ap"}
    details = metric.details()
    assert set(details) == {"ranking", "example_ap", "label_ap"} and list(details["ranking"]) == ["1", "2"]
    assert set(details) <= set(it.protocol())
    constant = {"score": "example_f1", "validation": 0.29666666666666663}
    found = {"validation": {**metric.compute(), **details}, "protocol": {"constant_predictor": constant}}
    (tmp_path / "metrics.json").write_text(json.dumps(found))
    (tmp_path / "config.json").write_text("{}")
    console = Console(width=200, record=True, force_terminal=True)
    print_scores(console, sp.RunFolder(tmp_path))
    printed = console.export_text()
    assert printed.count("precision") == 2  # precision and r_precision, in one line
    assert "constant_predictor: score example_f1, validation 0.2967\n" in printed
    assert "the 1, 2 likeliest labels, validation: precision 0." in printed and "│ label_ap" in printed
    assert find_score(found["validation"], "ranking.2.ndcg") == details["ranking"]["2"]["ndcg"]
    assert find_score(found["validation"], "ranking.7.ndcg") is None
    with pytest.raises(sp.ConfigError, match=r"task\.at\.0': found 0"):
        task(corpus="sample", at=[0])


def test_example_f1_as_a_misleading_choice(tmp_path, recwarn):
    rows, empty = np.eye(10), np.vstack([np.zeros((2, 2)), np.ones((8, 2))])
    said = r"20% of the validation examples have no label\. .* set task\.selection=micro_f1"
    with pytest.warns(UserWarning, match=said):
        assert in_memory("multilabel", dict.fromkeys(("train", "validation"), (rows, empty))).selection == "example_f1"
    lines = [f"{i},{a:g},{b:g}\n" for i, (a, b) in enumerate(empty)]
    for name in ("x.csv", "y.csv"):
        (tmp_path / name).write_text("".join(["number,tag_a,tag_b\n", *lines]))
    files = {"train": str(tmp_path / "x.csv"), "validation": str(tmp_path / "y.csv"), "labels": "tag_*"}
    assert any(re.match(f"warning: {said}", note) for note in task(**files).notes())
    fuller = in_memory("multilabel", {"train": (rows, empty), "validation": (rows[1:], empty[1:])})
    assert fuller.selection == "example_f1" and not recwarn.list
    for chosen in ("example_f1", "accuracy"):  # asked for
        assert not any("no label." in note for note in task(**files, selection=chosen).notes())
    one = task(**{**files, "labels": "tag_a", "drop": ["tag_b"]}, decode="validation", threshold="validation")
    again = MultiLabel(one.config)
    again.restore(json.loads(json.dumps(one.facts())))
    for it in (one, again):
        assert it.selection == it.metric().selection == "micro_f1" and " by micro_f1" in it.protocol()["threshold"]
    assert not any("no label." in note for note in one.notes())


@pytest.mark.parametrize(("income", "warns"), [(90.0, False), (50_000.0, True)])
def test_sparse_columns_of_very_different_size_are_a_warning(income, warns, recwarn):
    values = np.column_stack([np.eye(4), np.full(4, income)])
    for form in (csr_array, np.array):  # dense columns are scaled one by one
        matrix = form(values)
        matrix[0, 0] = 0  # in a sparse matrix a 0 that is stored
        in_memory("multilabel", dict.fromkeys(("train", "validation"), (matrix, np.ones((4, 1)))))
    said = [str(warning.message) for warning in recwarn]
    assert len(said) == warns
    assert not warns or said[0].startswith("the values of feature 'x4' are 50,000 times as large as those of 'x1'")
