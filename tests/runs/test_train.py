"""Training from Python: `sp.train`, and examples in memory."""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import spen_plugins as sp
from spen_plugins.registry import Registry
from spen_plugins.runs.train import runner
from spen_plugins.runs.train.runner import resume
from spen_plugins.samples import labels
from spen_plugins.task_parts import parse_all
from tests.loaded import loaded

FEW = {"trainer.epochs": 1, "trainer.epoch_updates": 1, "features.hidden": [8], "energy.hidden": 4}
TAGS = {
    "trainer.epochs": 1,
    "trainer.epoch_updates": 1,
    "trainer.pretrain_epochs": 0,
    "features.hidden": 4,
    "features.word_dim": 4,
}
PEOPLE = ("Anna", "Bob", "Carla", "Dan", "Eva")
SENTENCES = [words for name in PEOPLE for words in ([name, "sleeps"], ["the", "boy", "sees", name])]
NAMES = [["B-PER", "O"], ["O", "O", "O", "B-PER"]] * 5


def make_numbers(rows: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Real features and the labels of their signs."""
    x = np.random.default_rng(0).normal(size=(rows, 3))
    return x, (x[:, :2] > 0).astype(int)


def in_memory(kind: str, parts: dict, **fields: object) -> sp.Task:
    cls, config = Registry().parse("task", {"type": kind, "in_memory": True, **fields}, "task", "test")
    task = cls(config)
    task.take(parts)
    return task


# What spen-run does.


def test_a_config_by_name_with_arguments_and_keys(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(labels, "SIZES", {"train": 30, "validation": 10, "test": 10})
    predictor = sp.train(
        "labels",
        data="sample",
        method="cross_entropy",
        out=tmp_path / "a run",
        quiet=True,
        **{"trainer.epochs": np.int64(2), "trainer.epoch_updates": 1},
    )
    folder = predictor.folder
    assert folder.path == tmp_path / "a run" and folder.metrics()["test"]
    assert folder.config()["trainer"]["epochs"] == len(folder.history()) == 2
    assert folder.config()["task"]["corpus"] == "sample"
    assert capsys.readouterr().out == ""
    with pytest.raises(sp.ConfigError, match=r"not empty.* another --out$"):
        sp.train("labels", out=tmp_path / "a run", quiet=True)
    (tmp_path / "a run" / "metrics.json").unlink()
    with pytest.raises(sp.ConfigError, match=r"not empty.*--resume '.*/a run'"):
        sp.train("labels", out=tmp_path / "a run", quiet=True)


def test_an_evaluated_config(tmp_path) -> None:
    config = {
        "task": {"type": "multilabel"},
        "features": {"type": "mlp", "hidden": [4]},
        "inference_net": {"type": "independent"},
        "trainer": {"type": "cross_entropy", "epochs": 3},
    }
    original = json.dumps(config)
    predictor = sp.train(config, data=make_numbers(), out=tmp_path / "run", quiet=True, **{"trainer.epochs": 1})
    assert json.dumps(config) == original
    assert predictor.folder.config()["trainer"]["epochs"] == 1


@pytest.mark.parametrize(
    ("config", "arguments", "message"),
    [
        ("labels", {"metod": "nce"}, "unknown argument 'metod'"),
        ("labels", {"epochs": 3}, "Did you mean 'trainer.epochs'"),
        ("labels", {"method": object()}, "argument 'method': found a object; expected a JSON value"),
        ("labels", {"data": "nonsense"}, "unknown data"),
        ("no_such_config", {}, "does not exist"),
        ({"task": {"type": "multilabel"}}, {"data": ([[0]], [[0]])}, "inference_net"),
        ("srl_seal", {"data": (SENTENCES, NAMES)}, "task 'srl' reads only files; examples in Python require"),
        ("labels", {"data": make_numbers(), "task.corpus": "sample"}, "found task.corpus, task.in_memory"),
        ("names", {"data": (SENTENCES, NAMES), "columns": {"pos": 1}}, "found task.columns with data given in Python"),
        ("labels", {"data": make_numbers(), "held_out": 0.7}, "found 0.7; expected a number above 0, at most 0.5"),
        ("labels", {"data": make_numbers(), "held_out": 0}, "found 0; expected a number above 0"),
        ("labels", {"data": make_numbers(), "held_out": "0.2"}, "found '0.2'; expected a number above 0"),
        ("labels", {"data": make_numbers(), "held_out": None}, "found None; expected a number above 0"),
    ],
)
def test_a_wrong_argument_is_reported_before_training(config, arguments, message, tmp_path) -> None:
    with pytest.raises(sp.ConfigError, match=message):
        sp.train(config, out=tmp_path / "run", **arguments)
    assert not (tmp_path / "run").exists()


def test_random_states_are_restored(tmp_path) -> None:
    def draw() -> list[float]:
        return [random.random(), float(np.random.rand()), float(torch.rand(()))]

    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = draw()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    sp.train("labels", data=make_numbers(), out=tmp_path / "run", quiet=True, **FEW)
    assert draw() == expected


# The run folder of examples in memory.


@pytest.fixture(scope="module")
def labels_run(tmp_path_factory) -> sp.Predictor:
    path = tmp_path_factory.mktemp("runs") / "labels"
    return sp.train("labels", data=make_numbers(), out=path, quiet=True, threshold="validation", **FEW)


def test_the_run_records_where_its_data_came_from(labels_run) -> None:
    folder = labels_run.folder
    assert folder.config()["task"]["in_memory"] is True
    assert set(folder.environment()["data_sha256"]) == {"train, given in Python", "validation, given in Python"}
    split = folder.metrics()["protocol"]["split"]
    assert re.match("given in Python; validation: [23] of the 12 training examples, one of 5 folds", split)
    assert labels_run.task.protocol()["split"] == split  # after restoring, too


def test_the_run_predicts_from_its_folder_alone(labels_run, tmp_path) -> None:
    x, _ = make_numbers()
    labels_run.save(tmp_path / "saved")
    expected = labels_run.predict(x)
    assert sp.load(tmp_path / "saved").predict(x) == expected
    assert expected == labels_run.predict([{"vector": row.tolist()} for row in x])


def test_methods_that_need_the_examples_say_that_they_are_gone(labels_run) -> None:
    with pytest.raises(sp.ConfigError, match="were given in Python, and the run folder does not contain them"):
        labels_run.calibrate()
    (labels_run.folder.path / "metrics.json").rename(labels_run.folder.path / "kept")
    with pytest.raises(sp.ConfigError, match="were given in Python"):
        resume(labels_run.folder.path)
    (labels_run.folder.path / "kept").rename(labels_run.folder.path / "metrics.json")


def test_a_run_is_calibrated_on_a_file(labels_run, tmp_path) -> None:
    lines = [f"@attribute x{i} numeric" for i in range(3)] + [f"@attribute {i} {{0,1}}" for i in range(2)]
    rows = [",".join(map(str, [*x, *y])) for x, y in zip(*make_numbers(), strict=True)]
    (tmp_path / "mine.arff").write_text("\n".join(["@relation mine", *lines, "@data", *rows]))
    predictor = sp.load(labels_run.folder.path)
    assert predictor.calibrate(tmp_path / "mine.arff")["temperature"] > 0


# Label sets of rows of numbers.


def test_each_kind_of_matrix_gives_the_same_examples() -> None:
    x, y = make_numbers()
    x = np.where(x > 0, x, 0)
    dense = [x, x.astype(np.float32), x.tolist()]
    for kinds in (dense, [sparse.csr_matrix(x), sparse.coo_array(x), sparse.csc_array(x)]):
        batches = []
        for kind in kinds:
            task = in_memory("multilabel", {"train": (kind, y)})
            batches.append(task.collate([*task.part("train"), *task.part("validation")]))
            assert task.space.labels == ["0", "1"] and not task.inputs.binary
            assert task.inputs.sparse == (kinds is not dense)
            assert task.collate(parse_all(task, x)).x.inputs.keys() == batches[0].x.inputs.keys()
        for batch in batches[1:]:
            for name, values in batch.x.inputs.items():
                assert_allclose(values, batches[0].x.inputs[name], atol=1e-6)
            assert torch.equal(batch.gold, batches[0].gold)


def test_dense_and_sparse_tasks_read_both_kinds_of_rows_alike() -> None:
    x, y = make_numbers()
    x = np.where(x > 0, x, 0)
    for kind in (x, sparse.csr_array(x)):
        task = in_memory("multilabel", {"train": (kind, y)})
        forms = [x, sparse.csc_array(x), [{"vector": row} for row in x]]
        inputs = [task.collate(parse_all(task, form)).x.inputs for form in forms]
        for other in inputs[1:]:
            for name, values in other.items():
                assert_allclose(values, inputs[0][name], atol=1e-6)


def test_real_features_are_scaled_by_the_training_examples() -> None:
    x, y = make_numbers(20)
    x[3, 0] = np.nan
    task = in_memory("multilabel", {"train": (x, y)})
    train = task.collate(task.part("train")).x.inputs["vector"].numpy()
    assert len(train) == 16 and len(task.part("validation")) == 4
    assert_allclose(train.mean(0), 0, atol=1e-6)
    assert_allclose(train[:, 1:].std(0), 1, atol=1e-5)


def test_rows_of_0_and_1_are_binary() -> None:
    x, y = make_numbers()
    for kind in (x > 0, (x > 0).astype(float), sparse.csr_array(x > 0)):
        task = in_memory("multilabel", {"train": (kind, y), "validation": (kind[:3], y[:3])})
        assert task.inputs.binary
        assert_array_equal(task.part("validation")[1].features, np.flatnonzero(x[1] > 0))
        with pytest.raises(sp.DataError, match=r"found 2 for feature 'x1'; expected 0 or 1, as in training"):
            parse_all(task, np.array([[0, 2, 1]]))
    assert not in_memory("multilabel", {"train": (x, y), "validation": (x[:3] > 0, y[:3])}).inputs.binary


def test_labels_are_a_matrix_or_names() -> None:
    x, y = make_numbers()
    sets = [{name for name, on in zip("ab", row, strict=True) if on} for row in y]
    task_of_names = in_memory("multilabel", {"train": (x, sets)})
    matrices = [in_memory("multilabel", {"train": (x, kind)}) for kind in (y, y.tolist(), y > 0, sparse.csr_array(y))]
    assert task_of_names.space.labels == ["a", "b"]
    for task in matrices:
        assert [e.gold.tolist() for e in task.part("train")] == [e.gold.tolist() for e in task_of_names.part("train")]


def test_columns_of_a_frame_are_matched_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    x, y = make_numbers()
    frame = pandas.DataFrame(x, columns=["age", "size", "price"])
    task = in_memory("multilabel", {"train": (frame, pandas.DataFrame(y, columns=["old", "big"]))})
    assert task.space.labels == ["old", "big"] and list(task.columns.names) == ["age", "size", "price"]
    reordered = parse_all(task, frame[["price", "age", "size"]])
    assert_array_equal(reordered[0].features, parse_all(task, x)[0].features)
    assert parse_all(task, x[:0]) == parse_all(task, frame[:0]) == []
    with pytest.raises(sp.DataError, match=r"found the column 'aged'; .* Did you mean 'age'"):
        parse_all(task, frame.rename(columns={"age": "aged"}))
    with pytest.raises(sp.DataError, match="found no column 'size'"):
        parse_all(task, frame.drop(columns="size"))
    for value in ("red", pandas.Timestamp("2020-01-01")):
        with pytest.raises(sp.DataError, match=r"other than numbers in column 'kind'; .* encode the column"):
            in_memory("multilabel", {"train": (frame.assign(kind=value, other="x"), y)})
    with pytest.raises(sp.DataError, match=r"found no rows of finite numbers .*age"):
        parse_all(task, frame.rename(columns={"size": "age"}))


def test_every_label_has_its_share_of_the_validation_part() -> None:
    y = np.zeros((100, 3), dtype=int)
    y[:50, 0] = y[50:70, 1] = y[70:75, 2] = 1
    task = in_memory("multilabel", {"train": (np.random.default_rng(0).normal(size=(100, 2)), y)})
    gold = task.collate(task.part("validation")).gold[:, 0]
    assert gold.sum(0).tolist() == [10, 4, 1] and len(gold) == 20
    repeated = in_memory("multilabel", {"train": (np.random.default_rng(0).normal(size=(100, 2)), y)})
    assert repeated.checksums() == task.checksums()


X, Y = make_numbers()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([X, Y], "data: found list; expected 'train', maybe"),
        ({"training": (X, Y)}, "data: found 'training'"),
        ({"train": (X,)}, r"data\['train'\]: found a tuple; expected a pair"),
        ({"train": (X, Y[:4])}, "found 12 inputs and 4 outputs; expected equal numbers"),
        ({"train": (X[:0], Y[:0])}, "found 0 inputs and 0 outputs"),
        ({"train": (X[:1], Y[:1])}, "found 1 rows with labels; expected at least two"),
        ({"train": ("abc", Y)}, "found a str; expected a list or an array"),
        ({"train": (X[:, 0], Y)}, "the vectors of train: found no rows of finite numbers"),
        ({"train": ([["a", "b"]] * 12, Y)}, "found no rows of finite numbers"),
        ({"train": (X * np.inf, Y)}, "found no rows of finite numbers"),
        ({"train": (X * 1e300, Y)}, "too large for dtype"),
        ({"train": (sparse.csr_array(X * np.nan), Y)}, "found no rows of finite numbers"),
        ({"train": (X, 3 * Y)}, "the labels of train: found 3 for label"),
        ({"train": (X, Y + np.nan)}, "the labels of train: found nan for label '0'; expected 0 or 1"),
        ({"train": (X, Y[:, 0])}, "the labels of train, row 0: found .*; expected a list of label names"),
        ({"train": (X, ["ab"] * 12)}, "row 0: found 'ab'; expected a list of label names"),
        ({"train": (X, [[]] * 12)}, "found no label in any row"),
        ({"train": (X, [[1, 3], [2]] * 6)}, r"the labels of train: found .*; expected a 0/1 matrix or .* \(strings\)"),
        ({"train": (X, Y), "validation": (X[:, :2], Y)}, "the vectors of validation: found 2 columns; expected 3"),
        (
            {"train": (X > 0, Y), "test": (X, Y)},
            "the vectors of test: found .* for feature 'x0'; expected 0 or 1, as in",
        ),
        (
            {"train": (X > 0, Y), "validation": (sparse.csr_array(X), Y)},
            "the vectors of validation: found .* expected 0",
        ),
        ({"train": (X, Y), "validation": (X, Y[:, :1])}, "the labels of validation: found 1 columns; expected 2"),
        ({"train": (X, [["ship"]] * 12), "test": (X[:1], [["shop"]])}, "label 'shop'; expected one of .*'ship'"),
    ],
)
def test_wrong_numbers_and_labels(parts, message) -> None:
    with pytest.raises(sp.DataError, match=message):
        in_memory("multilabel", parts)


def test_ten_thousand_columns_stay_sparse() -> None:
    x = sparse.random_array((50, 10_000), density=0.001, format="csr", rng=np.random.default_rng(0)) + sparse.csr_array(
        ([1.5], ([0], [0])), shape=(50, 10_000)
    )
    task = in_memory("multilabel", {"train": (x, np.eye(50, 2, dtype=int))})
    assert sum(len(e.values) for e in task.part("train")) < 1000 and task.inputs.sparse
    assert task.collate(task.part("train")[:2]).x.inputs.keys() == {"indices", "offsets", "values"}


# Texts and sentences.


def test_texts_and_their_labels(tmp_path) -> None:
    texts, labels = ["the match", "the band"] * 6, [["sport"], ["music"]] * 6
    small = {
        "features.hidden": [4],
        "features.buckets": 16,
        "trainer.epochs": 1,
        "trainer.epoch_updates": 1,
    }
    predictor = sp.train("texts", data=(texts, labels), out=tmp_path / "run", quiet=True, **small)
    answers = predictor.predict(["a match", "a band"])
    assert answers == predictor.predict([{"text": "a match"}, {"text": "a band"}])
    assert set(answers[0]["probabilities"]) == {"music", "sport"}
    assert predictor.predict(np.array(["a match"])) == answers[:1]
    with pytest.raises(sp.DataError, match=r"row 1: found 3; expected a string"):
        in_memory("text", {"train": (["a", 3], [["x"], ["y"]])})
    with pytest.raises(sp.DataError, match="found one str; expected a list"):
        predictor.predict("a match")


def test_sentences_and_their_tags(tmp_path) -> None:
    predictor = sp.train("names", data=(SENTENCES, NAMES), out=tmp_path / "run", quiet=True, **TAGS)
    assert predictor.task.space.tags[0] == "O" and len(predictor.predict(["Anna sleeps"])[0]["tags"]) == 2
    with pytest.warns(UserWarning, match="split at blanks only"):
        predictor.predict(["Anna, sleep!"])
    answers = predictor.predict([["Anna", "sleeps"]])
    assert answers == predictor.predict([{"words": ["Anna", "sleeps"]}])
    assert answers == predictor.predict([("Anna", "sleeps")]) == predictor.predict([np.array(["Anna", "sleeps"])])
    with pytest.raises(sp.DataError, match=r"1: found words \['a', 3\]; expected a list of strings"):
        predictor.predict([["a"], ["a", 3]])
    protocol = predictor.folder.metrics()["protocol"]
    assert protocol["split"].startswith("given in Python; validation: 2 of the 10 training examples")


@pytest.mark.parametrize(
    ("words", "tags", "message"),
    [
        ([["a"], []], [["O"], []], "sentence 1 of train: found no word"),
        ([["a"], ["b"]], [["O"], ["O", "O"]], "sentence 1 of train: found 2 tags for 1 words"),
        (["a b", "c"], [["O", "O"], ["O"]], "sentence 0 of train: found words 'a b'; expected a list of strings"),
        ([["a"], ["b"]], [["O"], [3]], r"sentence 1 of train: found tags \[3\]; expected a list of strings"),
        ([["a"], ["b"]], [["O"], ["I-X"]], "sentence 1 of train: found "),
    ],
)
def test_wrong_sentences(words, tags, message) -> None:
    with pytest.raises(sp.DataError, match=message):
        in_memory("tagging", {"train": (words, tags)}, scheme="bio")


def test_a_frame_of_texts_is_read_by_its_columns() -> None:
    pandas = pytest.importorskip("pandas")
    task = loaded("text", corpus="sample")
    frame = pandas.DataFrame({"text": ["one", "two"]})
    assert [example.text for example in parse_all(task, frame)] == ["one", "two"]
    assert [example.text for example in parse_all(task, frame["text"])] == ["one", "two"]
    words, tags = (pandas.Series(values, index=range(5, 15)) for values in (SENTENCES, NAMES))
    tasks = [in_memory("tagging", {"train": pair}, scheme="bio") for pair in ((words, tags), (SENTENCES, NAMES))]
    assert tasks[0].checksums() == tasks[1].checksums()


# What the caller has set in torch


def test_torchs_settings_are_restored(monkeypatch) -> None:
    """Even after a failed run on a (fake) GPU."""
    current = [0]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[0])
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: current.__setitem__(0, device))

    def run(*args: object, **kwargs: object) -> None:
        torch.cuda.set_device(1)
        torch.use_deterministic_algorithms(True, warn_only=True)
        raise sp.RunError("stopped")

    monkeypatch.setattr(runner, "run", run)
    with pytest.raises(sp.RunError, match="stopped"):
        sp.train("labels", device="cuda:1")
    assert current == [0] and torch.get_deterministic_debug_mode() == 0
