"""The multi-label task: parts, batches, scaling, scores, predictions, and restoring from facts."""

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

load_task = partial(loaded, "multilabel")
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
    task = load_task(**mixed)
    assert not task.inputs.binary and task.inputs.size == 6 and task.space.labels == ["a", "b"]
    batch = task.collate(task.part("train"))
    ages = np.array([10, 20, 40.0])
    age = (ages - ages.mean()) / ages.std()
    expected = [
        [age[0], 0, 1, 0, 0, 1],  # a constant column's deviation counts as 1
        [age[1], 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 0],  # missing: the training mean, and no value of a nominal
        [age[2], 0, 0, 0, 1, 0],
    ]
    np.testing.assert_allclose(batch.x.inputs["vector"], expected, rtol=1e-6)
    vector = task.collate(task.part("validation")).x.inputs["vector"][0]
    np.testing.assert_allclose(vector, [(1000 - ages.mean()) / ages.std(), 2, 0, 0, 1, 1], rtol=1e-6)
    assert batch.x.inputs["vector"].dtype == torch.float32
    torch.testing.assert_close(batch.gold[:, 0], torch.tensor([[1.0, 0], [0, 1], [1, 1], [0, 0]]))
    assert batch.gold.shape == (4, 1, 2) and batch.labelled.all()


def test_scaling_ignores_missing_values():
    scaling = Scaling.fit(np.array([[1.0, np.nan], [3.0, np.nan]]), np.array([True, True]))
    np.testing.assert_allclose(scaling.mean, [2, 0])
    np.testing.assert_allclose(scaling.std, [1, 1])
    assert (Scaling.fit(np.full((3, 1), 0.1), np.array([True])).std == 1).all()


@pytest.mark.parametrize("corpus", ["sample", None])
def test_a_task_is_restored_from_its_facts(mixed, corpus):
    fields = {"corpus": "sample"} if corpus else mixed
    original = load_task(**fields)
    restored = MultiLabel(original.config)
    restored.restore(json.loads(json.dumps(original.facts())))
    assert (
        restored.facts() == original.facts()
        and restored.inputs == original.inputs
        and restored.space.labels == original.space.labels
    )
    assert restored.protocol() == original.protocol() and not restored.part("train")
    if not corpus:
        for example, restored_example in zip(original.read(fields["file"]), restored.read(fields["file"]), strict=True):
            np.testing.assert_array_equal(example.features, restored_example.features)
            np.testing.assert_array_equal(example.gold, restored_example.gold)
        np.testing.assert_array_equal(restored.read(fields["file"])[0].features, original.part("train")[0].features)


def test_bags_are_the_rows_of_the_file():
    task = load_task(corpus="sample")
    examples = [task.part("train")[i] for i in (3, 0, 5)]
    examples[1] = dataclasses.replace(examples[1], features=np.empty(0, np.int32))  # no known feature
    batch = task.collate(examples, [3, 0, 5])
    indices, offsets = batch.x.inputs["indices"], batch.x.inputs["offsets"]
    assert indices.dtype == offsets.dtype == torch.int64 and offsets[0] == 0 and offsets[1] == offsets[2]
    for i, example in enumerate(examples):
        end = offsets[i + 1] if i < 2 else len(indices)
        assert indices[offsets[i] : end].tolist() == example.features.tolist()
        assert batch.gold[i, 0].nonzero().flatten().tolist() == example.gold.tolist()
    assert batch.rows.tolist() == [3, 0, 5] and batch.x.mask is None and len(batch) == 3


def test_batches_without_gold():
    task = load_task(corpus="sample")
    first, second = task.part("test")[:2]
    batch = task.collate([first, dataclasses.replace(second, gold=None)])
    assert batch.labelled.tolist() == [True, False] and not batch.gold[1].any()
    assert task.collate([dataclasses.replace(first, gold=None)]).gold is None


def test_parse(mixed):
    task = load_task(**mixed)
    row = task.part("train")[0]
    by_name = task.parse({"features": {"age": 10, "still": 7, "colour": "red", "smokes": "yes"}, "labels": ["a"]})
    np.testing.assert_array_equal(by_name.features, row.features)
    np.testing.assert_array_equal(by_name.gold, row.gold)
    np.testing.assert_array_equal(task.parse({"vector": [10, 7, 1, 0, 0, 1]}).features, row.features)
    np.testing.assert_array_equal(task.parse({"features": {"smokes": True}}).features, [0, 0, 0, 0, 0, 1])
    bag_task = load_task(corpus="sample")
    names = sample.words()[4:6]
    assert bag_task.parse({"features": names}).features.tolist() == [4, 5]
    assert bag_task.parse({"features": dict.fromkeys(names, 1)}).gold is None
    assert bag_task.parse({"vector": [0, 1, *[0] * 298]}).features.tolist() == [1]


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
def test_invalid_items_are_rejected(mixed, item, message):
    with pytest.raises(sp.DataError, match=message):
        load_task(**mixed).parse(item)


def test_separate_files(tmp_path, mixed):
    head, _, rows = MIXED.partition("@data\n")
    rows = rows.splitlines()
    for name, part_rows in (("tr", rows[:3]), ("va", rows[3:]), ("te", rows[4:])):
        (tmp_path / f"{name}.arff").write_text(head + "@data\n" + "\n".join(part_rows))
    paths = {part: str(tmp_path / f"{part[:2]}.arff") for part in sp.PARTS}
    task = load_task(**paths, label_count=2, drop=["id"])
    assert [len(task.part(name)) for name in sp.PARTS] == [3, 2, 1]
    assert task.scaling.mean[0] == 15  # of the training file only
    assert set(task.checksums()) == set(paths.values()) and all(len(s) == 64 for s in task.checksums().values())


def test_labels_in_a_file_beside_the_data(tmp_path, mixed):
    (tmp_path / "x.xml").write_text("<labels><label name='b'/></labels>")
    task = load_task(**{k: v for k, v in mixed.items() if k != "label_count"})
    assert task.space.labels == ["b"] and task.inputs.size == 7
    assert str(tmp_path / "x.xml") in task.checksums()


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
        load_task(**fields)


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
        load_task(**mixed | change)


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
def test_invalid_splits_are_rejected(tmp_path, mixed, split, message):
    (tmp_path / "split.json").write_text(split)
    with pytest.raises(sp.DataError, match=message):
        load_task(**mixed)


def test_rows_without_labels_may_be_trained_on_but_not_scored(tmp_path, mixed):
    (tmp_path / "x.arff").write_text(MIXED.replace("?,?,1,1", "?,?,?,?"))
    task = load_task(**mixed)
    assert task.collate(task.part("train")).labelled.tolist() == [True, True, False, True]
    (tmp_path / "split.json").write_text('{"train": [0], "valid": [1], "test": [2]}')
    with pytest.raises(sp.DataError, match="1 rows without labels in the test part"):
        load_task(**mixed)


def make_proposal(p: torch.Tensor, gold: torch.Tensor, labelled=None) -> tuple[sp.Proposal, sp.Batch]:
    space = sp.LabelSet([f"l{i}" for i in range(p.shape[1])])
    x = sp.X({}, None, len(p))
    labelled = torch.ones(len(p), dtype=torch.bool) if labelled is None else labelled
    return space.independent(torch.logit(p).unsqueeze(1)), sp.Batch(
        x, torch.arange(len(p)), gold.float().unsqueeze(1), labelled
    )


def draw_labels(rows: int = 57, labels: int = 11) -> tuple[torch.Tensor, torch.Tensor]:
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


def test_scores_equal_those_of_scikit_learn_and_torchmetrics():
    p, gold = draw_labels()
    values = scores(p > 0.5, gold)
    y, z = gold.numpy(), (p > 0.5).numpy()
    for average, name in (("samples", "example_f1"), ("micro", "micro_f1"), ("macro", "macro_f1")):
        assert values[name] == pytest.approx(metrics.f1_score(y, z, average=average, zero_division=0))
    assert values["accuracy"] == pytest.approx(metrics.accuracy_score(y, z))
    assert values["hamming"] == pytest.approx(metrics.hamming_loss(y, z))
    arguments = (p, gold.long(), p.shape[1])
    assert values["micro_f1"] == pytest.approx(tm.multilabel_f1_score(*arguments, average="micro").item())
    assert values["macro_f1"] == pytest.approx(tm.multilabel_f1_score(*arguments, average="macro").item())
    assert values["accuracy"] == pytest.approx(tm.multilabel_exact_match(*arguments).item())
    assert values["hamming"] == pytest.approx(tm.multilabel_hamming_distance(*arguments).item(), abs=1e-6)
    metric = LabelMetric(average_precision=True)
    metric.update(*make_proposal(p, gold))
    assert metric.compute()["micro_ap"] == pytest.approx(
        metrics.average_precision_score(y.ravel(), p.numpy().ravel()), abs=1e-12
    )


def test_a_metric_adds_up_batches_and_ignores_rows_without_gold():
    p, gold = draw_labels()
    metric, labelled = LabelMetric(LabelDecoder(0.4)), torch.arange(len(p)) % 3 > 0
    for rows in torch.arange(len(p)).split(10):
        metric.update(*make_proposal(p[rows], gold[rows], labelled[rows]))
    assert metric.compute() == pytest.approx(scores(p[labelled] > 0.4, gold[labelled]))


def test_a_metric_accepts_batches_without_gold():
    p, gold = draw_labels()
    metric, unlabelled = LabelMetric(), torch.zeros(len(p), dtype=torch.bool)
    output, batch = make_proposal(p, gold, unlabelled)
    metric.update(output, dataclasses.replace(batch, gold=None))
    metric.update(output, batch)
    with pytest.raises(sp.DataError, match="no example with gold"):
        metric.compute()
    metric.update(*make_proposal(p, gold))
    assert metric.compute() == scores(p > 0.5, gold)


def test_the_threshold_is_the_best_of_the_grid():
    p, gold = draw_labels()
    task = load_task(corpus="sample", threshold="validation")
    assert task.threshold == 0.5
    metric = task.metric()
    metric.update(*make_proposal(p, gold))
    task.fit_threshold(metric)
    by_hand = {t: scores(p > t, gold)["example_f1"] for t in GRID}
    assert by_hand[task.threshold] == max(by_hand.values()) > by_hand[0.5]
    assert metric.compute()["example_f1"] == by_hand[task.threshold] and task.facts()["threshold"] == task.threshold
    assert task.protocol()["threshold"] == f"{task.threshold:g}, picked on validation by example_f1 from 0.05 to 0.95"
    fixed = load_task(corpus="sample")
    fixed.fit_threshold(metric)
    assert fixed.threshold == 0.5 and fixed.protocol()["threshold"] == "0.5, fixed"


def test_predictions():
    task = load_task(corpus="sample")
    names = task.space.labels
    p = torch.full((2, 40), 0.01)
    p[0, 7], p[0, 3], p[1, :12] = 0.9, 0.6, 0.8
    batch = task.collate(task.part("test")[:2])
    first, second = task.predictions(task.space.independent(torch.logit(p).unsqueeze(1)), batch, task.part("test")[:2])
    assert first["labels"] == [names[7], names[3]]
    assert list(first["probabilities"])[:2] == first["labels"] and len(first["probabilities"]) == 10
    assert first["probabilities"][names[7]] == pytest.approx(0.9, abs=1e-5)
    assert sorted(second["labels"]) == sorted(names[:12]) and len(second["probabilities"]) == 12
    json.dumps([first, second])


def test_predictions_equal_the_decoded_sets():
    task = load_task(corpus="sample", threshold=0.7)
    p = torch.full((2, 40), 0.01)
    p[0, 7], p[0, 3], p[1, 5] = 0.9, 0.6, 0.7 - 1e-4
    examples = task.part("test")[:2]
    output = task.space.independent(torch.logit(p).unsqueeze(1))
    decoded = task.decode(output)
    assert decoded.shape == (2, 1, 40) and decoded.nonzero().tolist() == [[0, 0, 7]]
    labels = [answer["labels"] for answer in task.predictions(output, task.collate(examples), examples)]
    assert labels == [[task.space.labels[7]], []]
    assert output.mode.sum() == 3


def test_the_root_of_a_hierarchy_can_be_a_label(tmp_path):
    text = "@relation r\n@attribute a numeric\n@attribute c hierarchical 1,1/2\n@data\n1,1\n2,1/2\n"
    for part in ("train", "validation"):
        (tmp_path / f"{part}.arff").write_text(text)
    files = {part: str(tmp_path / f"{part}.arff") for part in ("train", "validation")}
    task = load_task(**files, root=True)
    assert task.space.labels == ["root", "1", "1/2"]
    assert [example.gold.tolist() for example in task.part("train")] == [[0, 1], [0, 1, 2]]
    restored = MultiLabel(task.config)
    restored.restore(task.facts())
    assert [example.gold.tolist() for example in restored.read(files["train"])] == [[0, 1], [0, 1, 2]]
    flat = tmp_path / "flat.arff"
    flat.write_text("@relation r\n@attribute a numeric\n@attribute c {0,1}\n@data\n1,1\n2,0\n")
    with pytest.raises(sp.ConfigError, match=r"task\.root"):
        load_task(train=str(flat), validation=str(flat), label_count=1, root=True)


def test_test_rows_that_repeat_a_training_row_can_be_left_out(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,tag_x\n1,0,1\n0,1,0\n1,0,1\n1,0,0\n0,1,0\n1,1,1\n")
    (tmp_path / "s.json").write_text('{"train": [0, 1], "validation": [2], "test": [3, 4, 5]}')
    files = {"file": str(tmp_path / "x.csv"), "split": str(tmp_path / "s.json"), "labels": "tag_*"}
    assert len(load_task(**files).part("test")) == 3
    unseen = load_task(**files, unseen=True)
    assert [example.gold.tolist() for example in unseen.part("test")] == [[], [0]]  # rows 3 (another label) and 5
    assert len(unseen.part("validation")) == 1
    message = "the train part also has {} of the {} test inputs"
    assert any(message.format(2, 3) in note for note in load_task(**files).notes())
    assert any(message.format(1, 2) in note for note in unseen.notes())
    assert unseen.protocol()["split"].endswith("1 of 3 test rows repeat a training row and are left out")


def test_only_some_training_rows_have_labels(mixed, tmp_path):
    (tmp_path / "more.arff").write_text(MIXED)
    options = {**mixed, "labelled": 2, "repeat": 3}
    task = load_task(**options, unlabelled=[str(tmp_path / "more.arff")])
    train = task.part("train")
    assert [example.gold is not None for example in train] == [True, True] * 3 + [False] * 7
    assert train[2] is train[0] and len(task.part("validation")) == 1
    assert f"{tmp_path / 'more.arff'}: read as ARFF (5 rows)" in task.notes()
    batch = task.collate(train[5:7])
    assert batch.labelled.tolist() == [True, False] and batch.gold[:, 0].tolist() == [[0, 1], [0, 0]]
    assert task.collate(train[6:]).gold is None
    full_task = load_task(**mixed)
    assert task.scaling.facts() == full_task.scaling.facts()  # includes the features of rows without labels
    vectors = task.collate(train[-5:]).x.inputs["vector"]
    torch.testing.assert_close(
        vectors, task.collate([*full_task.part("train"), *full_task.part("validation")]).x.inputs["vector"]
    )
    assert task.protocol()["split"].endswith("; 2 training examples with gold, 7 without")
    assert str(tmp_path / "more.arff") in task.checksums() and "without" not in full_task.protocol()["split"]
    assert len(load_task(**options, rest=False).part("train")) == 6
    with pytest.raises(sp.DataError, match=r"found 4 training examples; expected at least task\.labelled=5"):
        load_task(**mixed, labelled=5)
    parts = {name: (np.eye(8), np.eye(8)[:, :2]) for name in ("train", "validation")}
    memory_task = in_memory("multilabel", parts, labelled=3, selection="micro_f1")
    assert [example.gold is not None for example in memory_task.part("train")] == [True] * 3 + [False] * 5
    assert all(example.gold is not None for example in memory_task.part("validation"))


@pytest.mark.parametrize("sparse", [False, True])
def test_scaling_is_fitted_on_the_training_rows(sparse, tmp_path):
    values = np.array([[1.0, 8.0], [3.0, 6.0], [100.0, 90.0], [50.0, 70.0]])
    matrix, labels = csr_array(values) if sparse else values, np.ones((4, 1), dtype=int)
    lines = [f"{a},{b},1\n" for a, b in values]
    for name in ("x.csv", "y.csv"):
        (tmp_path / name).write_text("".join(["a,b,tag_x\n", *lines]))
    files = {"train": str(tmp_path / "x.csv"), "validation": str(tmp_path / "y.csv"), "labels": "tag_*"}
    for options, rows in (({"labelled": 2, "rest": False}, 2), ({"labelled": 2}, 4), ({"rest": False}, 4)):
        task = in_memory("multilabel", dict.fromkeys(("train", "validation"), (matrix, labels)), **options)
        if sparse:
            assert task.scaling.size == pytest.approx(Size.fit(values[:rows].ravel()).size)
        else:
            for scaling in (task.scaling, load_task(**files, **options).scaling):
                np.testing.assert_allclose(scaling.mean, values[:rows].mean(0))


def test_labels_of_a_hierarchical_attribute_are_its_paths(tmp_path):
    text = "@relation r\n@attribute a numeric\n@attribute c hierarchical 1,1/2\n@data\n1,1\n2,1/2\n"
    (tmp_path / "x.arff").write_text(text)
    (tmp_path / "s.json").write_text('{"train": [0], "validation": [1]}')
    files = {"file": str(tmp_path / "x.arff"), "split": str(tmp_path / "s.json")}
    assert load_task(**files).space.labels == ["1", "1/2"]
    for unused in ({"labels": "x.xml"}, {"label_count": 1}):
        with pytest.raises(sp.ConfigError, match=f"{next(iter(unused))}=.*hierarchical"):
            load_task(**files, **unused)
    with pytest.raises(sp.ConfigError, match=r"'c' of .* is a label"):
        load_task(**files, drop=["c"])


@pytest.mark.skipif(not os.environ.get("SPEN_DATA"), reason="$SPEN_DATA is not set")
def test_genbase_is_binary_and_split():
    task = load_task(
        file="data:multilabel/genbase/genbase.arff", split="data:multilabel/splits/genbase.json", drop=["protein"]
    )
    assert task.inputs.binary and task.inputs.size == 1185 and len(task.space.labels) == 27
    assert [len(task.part(name)) for name in sp.PARTS] == [397, 132, 133]


LISTS = [["rain", "wind"], ["rain"], ["wind"], [], ["sun"]] * 6


def write_lists(folder: Path, form: str, names: str = "age,tags,seen,day", separator: str = ";") -> str:
    """Writes rows of features, with lists of labels in the second column."""
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
    path = write_lists(tmp_path, form)
    task = load_task(file=path, labels="tags", separator=";", drop="day")
    assert task.space.labels == ["rain", "sun", "wind"] and task.columns.names == ["age", "seen"]
    assert [len(task.part(part)) for part in ("train", "validation", "test")] == [18, 6, 6]
    assert any("feature columns: age, seen" in note for note in task.notes())
    restored = MultiLabel(task.config)
    restored.restore(json.loads(json.dumps(task.facts())))
    gold = [[restored.space.labels[i] for i in example.gold] for example in restored.read(path)]
    assert gold == LISTS
    rows = restored.read_inputs(path)
    assert all(example.gold is None for example in rows)
    predictions = [{"labels": ["rain", "wind"], "probabilities": dict.fromkeys(task.space.labels, 0.5)}] * len(rows)
    head, first, *_ = restored.formats()["csv"](predictions, rows).splitlines()
    assert head == "age,tags,seen,day,predicted,p_rain,p_sun,p_wind" and first.endswith(",rain;wind,0.5,0.5,0.5")
    split = split_file(path, labels="tags", separator=";", drop="day")
    split_task = load_task(file=path, labels="tags", separator=";", drop="day", split=str(split))
    for part in ("train", "validation", "test"):
        examples, split_examples = (
            [(e.features.tolist(), e.gold.tolist()) for e in loaded_task.part(part)]
            for loaded_task in (task, split_task)
        )
        assert examples == split_examples


def test_a_column_of_lists_of_another_file(tmp_path):
    task = load_task(file=write_lists(tmp_path, "csv"), labels="tags", separator=";")
    other_path = write_lists(tmp_path, "csv", "age,kinds,seen,day", "|")
    plain = tmp_path / "plain.csv"
    plain.write_text("age,seen,day\n1,0,d1\n")
    assert [example.gold for example in task.read(str(plain))] == [None]
    with pytest.raises(sp.DataError, match="column 'kinds'"):
        task.read(other_path)
    task.config = task.config.model_copy(update={"labels": "kinds", "separator": "|"})
    assert [len(example.gold) for example in task.read(other_path)] == [len(labels) for labels in LISTS]
    with pytest.raises(sp.DataError, match=r"label 'rain\|wind'; expected one of the 3 labels"):
        task.config = task.config.model_copy(update={"separator": ";"})
        task.read(other_path)


def test_another_separator_in_a_column_of_lists_is_an_error(tmp_path):
    path = write_lists(tmp_path, "csv", separator="|")
    message = r"lists\.csv:2: found label 'rain\|wind' beside 'rain' and 'wind'; .* pass \"separator=\|\" to split it"
    for load in (lambda: load_task(file=path, labels="tags"), lambda: split_file(path, labels="tags")):
        with pytest.raises(sp.DataError, match=message):
            load()
    with pytest.raises(sp.ConfigError, match=r"task\.labels: found 3; .* label_count="):
        load_task(file=path, labels=3)


def test_a_pattern_of_labels_does_not_match_dropped_columns(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("n,tag_a,tag_b,tag_c\n" + "".join(f"{n}.5,{n % 2},1,{n % 5}\n" for n in range(20)))
    task = load_task(file=str(path), labels="tag_*", drop="tag_c")
    assert task.space.labels == ["tag_a", "tag_b"] and task.columns.names == ["n"]


def test_a_feature_column_cannot_be_dropped_later(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("x,y,a\n1,2.5,1\n2,1.5,0\n")
    task = load_task(train=str(path), validation=str(path), labels="a")
    task.config = task.config.model_copy(update={"drop": ["x"]})
    with pytest.raises(sp.ConfigError, match="drop=: found 'x', a feature of the run"):
        task.read(str(path))


# Rankings of labels


@pytest.fixture
def ranking() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    p, gold = rng.random((60, 12)), rng.random((60, 12)) < 0.2
    gold[3], gold[:, 5] = False, False  # an example without labels, a label without examples
    return torch.tensor(p), torch.tensor(gold)


def test_scores_of_the_first_k_by_hand():
    p = torch.tensor([[0.9, 0.5, 0.7, 0.1], [0.2, 0.8, 0.4, 0.3], [0.1, 0.2, 0.3, 0.4]])
    gold = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
    by_k = at_k(p, gold, [1, 2, 3, 5])
    assert list(by_k) == ["1", "2", "3"]  # there are four labels
    assert by_k["1"] == {"precision": 1, "recall": (1 / 3 + 1) / 2, "ndcg": 1, "r_precision": 1}
    assert by_k["2"] == pytest.approx(
        {"precision": 0.5, "recall": 2 / 3, "ndcg": (1 / (1 + 1 / np.log2(3)) + 1) / 2, "r_precision": 0.75}
    )
    assert by_k["3"]["precision"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert at_k(p, torch.zeros_like(gold), [1]) == {}


def test_scores_of_rankings_equal_those_of_scikit_learn(ranking):
    p, gold = ranking
    has_labels = gold.any(1)
    for k, k_scores in at_k(p, gold, [1, 3, 5]).items():
        assert k_scores["ndcg"] == pytest.approx(
            metrics.ndcg_score(gold[has_labels].numpy(), p[has_labels].numpy(), k=int(k))
        )
    for values in (p, p.mul(4).round().div(4)):  # also with many ties
        has_examples = gold.any(0)
        by_label = metrics.average_precision_score(
            gold[:, has_examples].numpy(), values[:, has_examples].numpy(), average="macro"
        )
        assert average_precision(values.T, gold.T) == pytest.approx(by_label)
        by_example = metrics.average_precision_score(
            gold[has_labels].numpy(), values[has_labels].numpy(), average="samples"
        )
        assert average_precision(values, gold) == pytest.approx(by_example)
    assert average_precision(p, torch.zeros_like(gold)) is None


def test_scores_of_rankings_are_printed_after_the_table(tmp_path):
    task = load_task(corpus="sample", at=[1, 2])
    metric, batch = task.metric(), task.collate(task.part("validation"))
    assert isinstance(metric, LabelMetric)
    metric.update(task.space.independent(torch.randn(batch.gold.shape), None), batch)
    assert not metric.compute().keys() & {"ranking", "example_ap"}
    details = metric.details()
    assert set(details) == {"ranking", "example_ap", "label_ap"} and list(details["ranking"]) == ["1", "2"]
    assert set(details) <= set(task.protocol())
    constant = {"score": "example_f1", "validation": 0.29666666666666663}
    details["nll"] = {"net": 2.5, "net_impossible": 0.1, "energy": 2.0, "energy_ess": 109.09}
    contents = {"validation": {**metric.compute(), **details}, "protocol": {"constant_predictor": constant}}
    (tmp_path / "metrics.json").write_text(json.dumps(contents))
    (tmp_path / "config.json").write_text("{}")
    console = Console(width=200, record=True, force_terminal=True)
    print_scores(console, sp.RunFolder(tmp_path))
    output = console.export_text()
    assert output.count("precision") == 2  # precision and r_precision, in one line
    assert "constant_predictor: score example_f1, validation 0.2967\n" in output
    assert "the 1, 2 likeliest labels, validation: precision 0." in output and "│ label_ap" in output
    assert (
        "nats, validation: net 2.50, energy 2.00; share of examples with impossible gold: net_impossible 0.10" in output
    )
    assert "; effective samples: energy_ess 109.09\n" in output
    assert find_score(contents["validation"], "ranking.2.ndcg") == details["ranking"]["2"]["ndcg"]
    assert find_score(contents["validation"], "ranking.7.ndcg") is None
    with pytest.raises(sp.ConfigError, match=r"task\.at\.0': found 0"):
        load_task(corpus="sample", at=[0])


def test_example_f1_is_reported_as_a_misleading_choice(tmp_path, recwarn):
    rows, empty = np.eye(10), np.vstack([np.zeros((2, 2)), np.ones((8, 2))])
    message = r"20% of the validation examples have no label\. .* set task\.selection=micro_f1"
    with pytest.warns(UserWarning, match=message):
        assert in_memory("multilabel", dict.fromkeys(("train", "validation"), (rows, empty))).selection == "example_f1"
    lines = [f"{i},{a:g},{b:g}\n" for i, (a, b) in enumerate(empty)]
    for name in ("x.csv", "y.csv"):
        (tmp_path / name).write_text("".join(["number,tag_a,tag_b\n", *lines]))
    files = {"train": str(tmp_path / "x.csv"), "validation": str(tmp_path / "y.csv"), "labels": "tag_*"}
    assert any(re.match(f"warning: {message}", note) for note in load_task(**files).notes())
    (tmp_path / "z.csv").write_text("".join(["number,tag_a,tag_b\n", *lines[:2]]))
    notes = load_task(**{**files, "validation": str(tmp_path / "z.csv")}, selection="accuracy").notes()
    assert any(re.match(r"warning: no example of .*z\.csv has a label: its scores", n) for n in notes)
    full_task = in_memory("multilabel", {"train": (rows, empty), "validation": (rows[1:], empty[1:])})
    assert full_task.selection == "example_f1" and not recwarn.list
    for selection in ("example_f1", "accuracy"):  # set by the user
        assert not any("no label." in note for note in load_task(**files, selection=selection).notes())
    micro_task = load_task(
        **{**files, "labels": "tag_a", "drop": ["tag_b"]}, decode="validation", threshold="validation"
    )
    restored = MultiLabel(micro_task.config)
    restored.restore(json.loads(json.dumps(micro_task.facts())))
    for task in (micro_task, restored):
        assert (
            task.selection == task.metric().selection == "micro_f1" and " by micro_f1" in task.protocol()["threshold"]
        )
    assert not any("no label." in note for note in micro_task.notes())


@pytest.mark.parametrize(("income", "warns"), [(90.0, False), (50_000.0, True)])
def test_sparse_columns_of_very_different_size_are_a_warning(income, warns, recwarn):
    values = np.column_stack([np.eye(4), np.full(4, income)])
    for form in (csr_array, np.array):  # dense columns are scaled one by one
        matrix = form(values)
        matrix[0, 0] = 0  # a stored 0 in a sparse matrix
        in_memory("multilabel", dict.fromkeys(("train", "validation"), (matrix, np.ones((4, 1)))))
    messages = [str(warning.message) for warning in recwarn]
    assert len(messages) == warns
    assert not warns or messages[0].startswith("the values of feature 'x4' are 50,000 times as large as those of 'x1'")
