"""Label sets from CSV, Parquet, libsvm and text files: recognition, reading, carving and errors."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from spen_plugins.builtin.tasks.labels.multilabel import MultiLabel
from spen_plugins.data.parts.strata import read_strata
from spen_plugins.data.parts.stratification import carve
from spen_plugins.data.sentences.tagged import TagPlaces
from spen_plugins.data.sentences.tagged_rows import tagged_rows
from spen_plugins.data.tables.label_columns import ColumnKeys
from spen_plugins.data.tables.table_files import read_table
from spen_plugins.data.texts.labelled_texts import read_texts
from spen_plugins.data.texts.text_columns import Layout
from spen_plugins.errors import ConfigError, DataError
from tests.loaded import loaded, parquet_file, written

load_vectors = partial(loaded, "multilabel")
ROWS = """,age,colour,smokes,seen,tag_a,tag_b
0,10,red,yes,0,1,0
1,20,green,no,1,0,1
2,,"blue",yes,1,1,1
3,40,,no,0,0,0
4,50,red,yes,1,1,0
5,60,green,no,0,0,1
"""


@pytest.fixture
def split(tmp_path: Path) -> str:
    return written(tmp_path / "s.json", json.dumps({"train": [0, 1, 2, 3], "validation": [4], "test": [5]}))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_csv_file(tmp_path: Path, split: str, separator: str) -> None:
    task = load_vectors(file=written(tmp_path / "x.data", ROWS.replace(",", separator)), split=split, labels="tag_*")
    assert task.space.labels == ["tag_a", "tag_b"]
    assert task.columns.names == ["age", "colour=blue", "colour=green", "colour=red", "smokes", "seen"]
    batch = task.collate(task.part("train"))
    ages = (np.array([10, 20, 40]) - 70 / 3) / np.std([10, 20, 40])
    expected = [
        [ages[0], 0, 0, 1, 1, 0],
        [ages[1], 0, 1, 0, 0, 1],
        [0, 1, 0, 0, 1, 1],
        [ages[2], 0, 0, 0, 0, 0],
    ]
    np.testing.assert_allclose(batch.x.inputs["vector"], expected, rtol=1e-6, atol=1e-7)
    assert batch.gold[:, 0].tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]
    [note] = task.notes()
    assert "as CSV (6 rows); 6 features (1 real, 5 binary); 2 labels (tag_a, tag_b)" in note
    restored = MultiLabel(task.config)
    restored.restore(json.loads(json.dumps(task.facts())))
    other_path = written(tmp_path / "y.csv", "seen,age,smokes,colour\n1,10,no,red\n")  # other order, no labels
    [example] = restored.read(other_path)
    np.testing.assert_allclose(example.features, [ages[0], 0, 0, 1, 0, 1], rtol=1e-6)
    assert example.gold is None


def test_a_run_names_the_columns_that_are_features(tmp_path: Path, split: str) -> None:
    path = written(tmp_path / "x.csv", ROWS.replace(",age", "day,age"))
    note = load_vectors(file=path, split=split, labels="tag_*").notes()[0]
    assert "feature columns: day, age, colour, smokes, seen (drop=NAME ignores one)" in note
    note = load_vectors(file=path, split=split, labels="tag_*", drop=["day", "seen"]).notes()[0]
    assert "feature columns: age, colour, smokes (" in note
    lines = [",".join([f"c{n}" for n in range(12)] + ["t"]), *[",".join(f"{n % 2}" for n in range(13))] * 6]
    note = load_vectors(file=written(tmp_path / "y.csv", "\n".join(lines)), split=split, labels="t").notes()[0]
    assert "c8, c9, … (" in note and "c10" not in note


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("name", "values", "is_left_out"),
    [
        ("id", [1_000_000_001 + n for n in range(6)], True),  # equal as float32
        ("UUID", ["7c1", "7c2", "7c3", "7c4", "7c5", "7c6"], True),
        ("index", [5, 4, 3, 2, 1, 0], True),
        ("uid", [1, 2, 3, 4, 5, 5], False),
        ("index", [0.5, 1.25, 2.5, 3.5, 4.5, 5.5], False),
        ("day", [1, 2, 3, 4, 5, 6], False),
    ],
)
def test_a_column_that_numbers_the_rows_is_not_a_feature(
    tmp_path: Path, split: str, form: str, name: str, values: list[Any], is_left_out: bool
) -> None:
    columns = {name: values, "age": [10, 20, 30, 40, 50, 60], "tag_a": [1, 0, 1, 0, 1, 0]}

    def write_table(stem: str, *names: str) -> str:
        path = tmp_path / f"{stem}.{form}"
        selected = {name: columns[name] for name in names}
        if form == "parquet":
            return str(parquet_file(path, selected))
        return written(
            path, "\n".join(",".join(map(str, row)) for row in [names, *zip(*selected.values(), strict=True)])
        )

    wide, narrow = write_table("wide", *columns), write_table("narrow", "age", "tag_a")
    original = load_vectors(file=wide, split=split, labels="tag_a")
    note = f"column '{name}' is ignored: its values all differ"
    assert original.notes().count(note) == is_left_out
    assert original.columns.names == (["age"] if is_left_out else [name, "age"])
    if not is_left_out:
        return
    assert note not in load_vectors(file=wide, split=split, labels="tag_a", drop=name).notes()
    restored = MultiLabel(original.config)
    restored.restore(json.loads(json.dumps(original.facts())))
    for task in (restored, load_vectors(file=narrow, split=split, labels="tag_a")):
        rows = [task.read(path) for path in (wide, narrow)]
        for one, other in zip(*rows, strict=True):
            np.testing.assert_array_equal(one.features, other.features)
            np.testing.assert_array_equal(one.gold, other.gold)


@pytest.mark.parametrize(
    ("labels", "count", "expected"),
    [
        ("tag_a,tag_b", None, ["tag_a", "tag_b"]),
        (["tag_b"], None, ["tag_b"]),
        ("names.txt", None, ["tag_b"]),
        (None, 2, ["tag_a", "tag_b"]),
    ],
)
def test_label_columns_and_one_to_drop(tmp_path: Path, split: str, labels, count, expected) -> None:
    names = written(tmp_path / "names.txt", "tag_b\n")
    labels = names if labels == "names.txt" else labels
    path = written(tmp_path / "x.csv", ROWS)
    task = load_vectors(file=path, split=split, labels=labels, label_count=count, drop="age")
    assert task.space.labels == expected and (names in task.checksums()) == (labels == names)
    assert task.config.drop == ["age"] and "age" not in task.columns.names


def test_null_in_a_list_of_labels_is_not_a_label(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"x": [0.5, 1.5], "labels": [["a"], ["a", None]]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match="2: found null among the labels; expected label names"):
        load_vectors(file=str(tmp_path / "x.parquet"), labels="labels")


def test_parquet_and_csv_give_the_same_table(tmp_path: Path, split: str) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "age": pa.array([10.0, 20.0, None, 40.0, 50.0, 60.0]),
        "colour": pa.array(["red", "green", "blue", None, "red", "green"]).dictionary_encode(),
        "smokes": pa.array(["yes", "no", "yes", "no", "yes", "no"]),
        "seen": pa.array([False, True, True, False, True, False]),
        "tag_a": pa.array([1, 0, 1, 0, 1, 0]),
        "tag_b": pa.array([0, 1, 1, 0, 0, 1], pa.int8()),
        "when": pa.array([0] * 6, pa.timestamp("s")),
    }
    parquet.write_table(pa.table(columns), tmp_path / "x.csv")
    settings = {"split": split, "labels": "tag_*"}
    with pytest.raises(DataError, match=r"column 'when' of type timestamp.*drop=when"):
        load_vectors(file=str(tmp_path / "x.csv"), **settings)
    parquet_task = load_vectors(file=str(tmp_path / "x.csv"), drop=["when"], **settings)
    csv_task = load_vectors(file=written(tmp_path / "y.csv", ROWS), **settings)
    assert "as Parquet (6 rows)" in parquet_task.notes()[0] and parquet_task.columns.names == csv_task.columns.names
    for one, other in zip(parquet_task.part("train"), csv_task.part("train"), strict=True):
        np.testing.assert_array_equal(one.features, other.features)
        np.testing.assert_array_equal(one.gold, other.gold)


LIBSVM = "# made\n3,17 1:0.5 4:2\n 2:1 9:-1\n17 1:3\n3 6:1 8:2 # end\n17 7:1\n4 3:1\n"


@pytest.mark.parametrize("sizes", ["", "6 9 20\n"])
def test_sparse_reals_of_libsvm(tmp_path: Path, split: str, sizes: str) -> None:
    path = written(tmp_path / "x.svm", sizes + LIBSVM)
    task = load_vectors(file=path, split=split)
    assert task.space.labels == ["3", "4", "17"] and task.inputs.size == 9 and task.inputs.sparse
    batch = task.collate(task.part("train"))
    scale = np.sqrt(np.mean(np.array([0.5, 2, 1, -1, 3, 1, 2]) ** 2))
    np.testing.assert_allclose(batch.x.inputs["values"], np.array([0.5, 2, 1, -1, 3, 1, 2]) / scale, rtol=1e-6)
    assert batch.x.inputs["indices"].tolist() == [0, 3, 1, 8, 0, 5, 7]
    assert batch.x.inputs["offsets"].tolist() == [0, 2, 4, 5]
    assert batch.gold[:, 0].tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 1], [1, 0, 0]]
    restored = MultiLabel(task.config)
    restored.restore(json.loads(json.dumps(task.facts())))
    assert restored.inputs == task.inputs
    one, other = restored.parse({"features": {"1": 0.5, "4": 2}, "labels": ["3"]}), task.part("train")[0]
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_allclose(one.values, other.values)
    [example] = restored.read(written(tmp_path / "more.svm", "2:4 10:1\n"))  # features unknown in training are ignored
    assert example.features.tolist() == [1] and example.gold is None
    assert task.show(task.part("train")[0]).inputs[0].startswith("4 ")
    with pytest.raises(DataError, match=r"more\.svm:1: found label '5'; expected one of the 3 labels"):
        restored.read(written(tmp_path / "more.svm", "5 2:4\n"))


def test_dense_and_binary_libsvm_rows_are_read_like_those_of_arff(tmp_path: Path, split: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 3)).round(3), np.array([[1, 0], [0, 1], [1, 1], [0, 0], [0, 1], [1, 0]])
    dump_svmlight_file(x, y, str(tmp_path / "dense.svm"), multilabel=True, zero_based=False)
    dense = load_vectors(file=str(tmp_path / "dense.svm"), split=split)
    assert not dense.inputs.listed and dense.inputs.size == 3
    train = x[:4]
    np.testing.assert_allclose(
        dense.collate(dense.part("validation")).x.inputs["vector"][0], (x[4] - train.mean(0)) / train.std(0), rtol=1e-5
    )
    dump_svmlight_file((x > 0).astype(int), y, str(tmp_path / "bits.svm"), multilabel=True, zero_based=True)
    bits = load_vectors(file=str(tmp_path / "bits.svm"), split=split)
    assert bits.inputs.binary
    assert [e.features.tolist() for e in bits.part("train")] == [np.flatnonzero(row > 0).tolist() for row in train]
    with pytest.raises(DataError, match=r"0\.5 for feature 0; expected 1, as everywhere in the training file"):
        bits.read(written(tmp_path / "half.svm", "1 0:0.5\n"))


def test_a_blank_row_of_libsvm_is_a_row(tmp_path: Path) -> None:
    x = np.array([[0.5, 0, 0], [0, 0, 0], [0, 2, 0], [0, 0, 0]])
    y = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]])
    dump_svmlight_file(x, y, str(tmp_path / "x.svm"), multilabel=True, zero_based=False)
    text = (tmp_path / "x.svm").read_text()
    assert [bool(line.strip()) for line in text.splitlines()] == [True, False, True, False]
    for lead, end in (("", ""), ("# a comment\n", "\n\r\n")):
        table = read_table(written(tmp_path / "y.svm", lead + text + end))
        np.testing.assert_array_equal(table.filled(), x[:, :2])
        assert table.sets == [("1",), (), ("2",), ()]
        assert table.line == [n + bool(lead) for n in (1, 2, 3, 4)]
    with pytest.raises(DataError, match=r":3: found inf for feature 2"):
        read_table(written(tmp_path / "z.svm", "1 1:1\n\n2 2:inf\n"))


CSV = "a,b,t\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty file"),
        ("a\n1\n2\n", "expected one of these formats: Parquet (.*); ARFF .*; libsvm .*; CSV "),
        ("1,2,0\n3,4,1\n", r":1: found numbers in the first line, '1,2,0'; expected a header"),
        ("a,a,t\n1,2,0\n", "columns 'a', 'a', 't'; expected a header with a different name for each column"),
        (CSV, "no rows"),
        (CSV + "1,2,0\n1,2\n", r":3: found 2 cells in '1,2'; expected 3, as in the first line, separated by commas"),
        (CSV + '1,2,0\n"1,2,0\n', r":3: found a record that can't be read"),
        (CSV + "1,2,0\n1,nan,1\n", r":3: found 'nan' in column 'b'; expected a finite number, or an empty cell"),
        (CSV + "1,2,0\n-inf,2,1\n", r":3: found '-inf' in column 'a'"),
        (CSV + "1,2,0\n1e99,2,1\n", r":3: found '1e99' in column 'a'"),
        (CSV + "1,2,0\n1,2,2\n", r":3: found 2 for label 't'; expected 0 or 1"),
        (CSV + "".join(f"{i},w{i},{i % 2}\n" for i in range(200)), "attribute 'b' of type text; .*drop=b"),
        (
            CSV + "".join(f"{i},{i}.5,1\n" for i in range(200)) + "1,NA,0\n",
            r":202: found 'NA' in column 'b'; .*a number with",
        ),
        (
            CSV + "1,NA,0\n" + "".join(f"1,{i},1\n" for i in range(20)),
            r":2: found 'NA' .* an empty cell",
        ),
        (CSV + "1,NA,0\n" * 30 + "1,1,1\n1,2,1\n", r":2: found 'NA' in column 'b'; expected a number with"),
        (CSV + "1,0,0\n1,1,1\n1,0,NA\n", r":4: found 'NA' in column 't'; expected a number with"),
        ("a;b;t\n1;1;0\n1;0,53;1\n1;2,5;1\n", r":3: found '0,53' in column 'b'; .* a decimal point"),
        ("a b t\n1 2 0\n", "one of these formats"),
        ("3,17 1:x\n4 2:1\n", r":1: found '3,17 1:x'"),
        ("3 1:1\n4 2:1 1:2\n", r":2: found '4 2:1 1:2'"),
        ("3 1:1\n4 2:inf\n", r":2: found inf for feature 2; expected a finite number"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path / "x.csv", text)
    labels = None if ":" in text else "t"
    with pytest.raises((DataError, ConfigError), match=message):
        load_vectors(train=path, test=path, labels=labels)


def test_label_columns_must_be_named(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", ROWS)
    with pytest.raises(ConfigError, match=r"\(CSV; its columns are age, .*\): which of them are labels\?.*tag_\*"):
        load_vectors(train=path, test=path)
    duplicates = written(tmp_path / "x.xml", '<labels><label name="seen"/><label name="seen"/></labels>')
    for labels, message in (
        ("tga_*", "begins with 'tga_'"),
        ("tag_c", "no column 'tag_c'. Did you mean 'tag_b'|'tag_a'"),
        (duplicates, "label 'seen' twice"),
    ):
        with pytest.raises((ConfigError, DataError), match=message):
            load_vectors(train=path, test=path, labels=labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,colour,smokes\n1,red,no\n", "no column 'seen'"),
        (
            "age,colour,smokes,seen,ages\n1,red,no,1,1\n",
            r"column 'ages'; expected columns of the training file; remove it \(.* pass drop=ages\)\.$",
        ),
        ("ages,colour,smokes,seen\n1,red,no,1\n", r"'ages'.* Did you mean 'age'\?$"),
        (
            "age,colour,smokes,seen\n1,red,maybe,1\n",
            r":2: found 'maybe' in column 'smokes'; expected no, yes, or an empty cell",
        ),
        ("age,colour,smokes,seen\n1,red,no,3\n", r":2: found 3 in column 'seen'; expected 0 or 1, as in the training"),
        ("age,colour,smokes,seen\nold,red,no,1\n", r":2: found 'old' in column 'age'; expected a finite number"),
        ("age,colour,smokes,seen,tag_a\n1,red,no,1,1\n", "some labels, but not 'tag_b'"),
    ],
)
def test_a_file_that_does_not_fit_the_training_file(tmp_path: Path, split: str, text: str, message: str) -> None:
    task = load_vectors(file=written(tmp_path / "x.csv", ROWS), split=split, labels="tag_*")
    with pytest.raises(DataError, match=message):
        task.read(written(tmp_path / "y.csv", text))


def test_a_category_that_training_lacks_counts_as_an_empty_cell(tmp_path: Path, split: str) -> None:
    task = load_vectors(file=written(tmp_path / "x.csv", ROWS), split=split, labels="tag_*")
    empty = task.read(written(tmp_path / "y.csv", "age,colour,smokes,seen\n1,,no,1\n1,red,no,1\n1,,yes,1\n"))
    text = "age,colour,smokes,seen\n1,teal,no,1\n1,red,no,1\n1,7,yes,1\n"
    with pytest.warns(UserWarning, match=r"z\.csv: column 'colour' has values .*, such as 'teal', in 2 of 3 rows"):
        unseen = task.read(written(tmp_path / "z.csv", text))
    assert [e.features.tolist() for e in unseen] == [e.features.tolist() for e in empty]
    with pytest.raises(DataError, match=r"z\.csv:2: found 'teal' in column 'colour'"):  # another column, perhaps
        task.read(written(tmp_path / "z.csv", "age,colour,smokes,seen\n1,teal,no,1\n1,,no,1\n"))


def test_labels_of_yes_and_no_in_every_file(tmp_path: Path) -> None:
    train = written(tmp_path / "a.csv", "x,y1,y2\n0.5,yes,0\n1.5,no,1\n2.5,no,0\n3.5,yes,1\n")
    validation = written(tmp_path / "b.csv", "x,y1,y2\n0.5,yes,1\n1.5,yes,0\n")  # with only one of the values
    task = load_vectors(train=train, validation=validation, test=train, labels="y1,y2")
    assert [e.gold.tolist() for e in task.part("test")] == [[0], [1], [], [0, 1]]
    assert [e.gold.tolist() for e in task.part("validation")] == [[0, 1], [0]]
    restored = MultiLabel(task.config)
    restored.restore(json.loads(json.dumps(task.facts())))
    assert [e.gold.tolist() for e in restored.read(validation)] == [[0, 1], [0]]
    assert [e.gold for e in restored.read(written(tmp_path / "c.csv", "x,y1,y2\n0.5,,\n1.5,,\n"))] == [None, None]
    with pytest.raises(
        DataError,
        match=r":3: found 'maybe' in column 'y1'; expected no, yes, or an empty cell, as in the training file",
    ):
        restored.read(written(tmp_path / "d.csv", "x,y1,y2\n0.5,yes,1\n1.5,maybe,0\n"))
    with pytest.raises(DataError, match=r":2: found an empty cell for label 'y2'; expected 0 or 1 \(or an empty cell"):
        restored.read(written(tmp_path / "e.csv", "x,y1,y2\n0.5,yes,\n"))
    old_facts = {name: value for name, value in task.facts().items() if name != "label_values"}
    restored.restore(json.loads(json.dumps(old_facts)))
    assert [e.gold.tolist() for e in restored.read(written(tmp_path / "e.csv", "x,y1,y2\n0.5,1,0\n"))] == [[0]]


def test_ten_thousand_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    head = ",".join([f"f{i}" for i in range(10_000)] + ["t"])
    rows = "".join(",".join(map(str, row)) + f",{i % 2}\n" for i, row in enumerate(rng.integers(0, 5, (8, 10_000))))
    table = read_table(written(tmp_path / "wide.csv", f"{head}\n{rows}"))
    assert table.dense.shape == (8, 10_001) and len(table.attributes) == 10_001


# A validation part that is carved


def test_carving_is_stratified_and_repeatable() -> None:
    rows = [{"a"} if i % 4 else {"b"} for i in range(200)]
    first, second = carve(rows, "x.csv"), carve(rows, "x.csv")
    assert first == second and len(first.validation) == 40
    assert sorted([*first.train, *first.validation]) == list(range(200))
    assert sum("b" in rows[row] for row in first.validation) == 10
    assert "40 of the 200 rows of x.csv" in first.description and "seed 0" in first.description
    assert len(carve([{"a"}] * 2000, "x").validation) == 200
    carved = carve([{"a"}, None, {"a"}, None], "x")
    assert {1, 3} < set(carved.train) and len(carved.validation) == 1
    with pytest.raises(DataError, match="at least two"):
        carve([{"a"}, None], "x")


@pytest.mark.parametrize(
    ("rows", "share", "size", "folds"),
    [
        (200, 0.2, 40, "one of 5 folds"),
        (200, 0.4, 80, "2 of 5 folds"),
        (200, 0.15, 30, "3 of 20 folds"),
        (200, 0.5, 100, "one of 2 folds"),
        (1000, 0.001, 1, "one of 1000 folds"),
        (10, 0.3, 3, "3 of 10 folds"),
        (2, 0.2, 1, "one of 2 folds"),
    ],
)
def test_carving_takes_the_requested_share(rows: int, share: float, size: int, folds: str) -> None:
    carved = carve([{"a"} if i % 2 else {"b"} for i in range(rows)], "x", share=share)
    assert (len(carved.validation), carved.folds) == (size, folds) and folds in carved.description
    assert abs(sum(row % 2 for row in carved.validation) - size / 2) <= max(1, 0.05 * size)


def test_train_and_test_files_alone(tmp_path: Path) -> None:
    head, *rows = ROWS.splitlines()
    rows = [f"{n},{row.partition(',')[2]}" for n, row in enumerate(rows * 10)]
    tables = {"train": [f"n{head}", *rows], "test": [f"n{head}", *rows[:6]]}
    files = {part: written(tmp_path / f"{part}.csv", "\n".join(lines) + "\n") for part, lines in tables.items()}
    task = load_vectors(**files, labels="tag_*")
    assert [len(task.part(name)) for name in ("train", "validation", "test")] == [48, 12, 6]
    assert "12 of the 60 rows of" in task.protocol()["split"] and any("12 of the 60" in note for note in task.notes())
    ages = [float(row.split(",")[1] or "nan") for row in rows]
    train_rows = carve(
        [example.gold for example in load_vectors(**files, labels="tag_*").read(files["train"])], ""
    ).train
    np.testing.assert_allclose(task.scaling.mean[1], np.nanmean(np.array(ages)[train_rows]))


def test_the_same_file_as_two_parts_raises_a_warning(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", ROWS)
    task = load_vectors(train=path, test=path, labels="tag_*")
    warning = (
        "warning: the train part also has 4 of the 6 test inputs; the validation part also has 2 of the 6 test inputs"
    )
    assert any(note.startswith(warning) for note in task.notes())


# Files of texts

JSON_TEXTS = '{"text": "what a day", "labels": ["joy", "awe"]}\n\n{"labels": [], "text": "it, too"}\n'
TOXIC = 'id,comment_text,toxic,mild\n1,"a, b\nc",1,0\n2,d,0,0\n3,"said ""e""",true,1.0\n'


@pytest.mark.parametrize(
    ("text", "layout", "rows", "description"),
    [
        (JSON_TEXTS, Layout(), [("what a day", ("joy", "awe"), 1), ("it, too", (), 3)], "JSONL"),
        ('{"body": "b", "tags": "x, y"}\n', Layout("body", "tags"), [("b", ("x", "y"), 1)], "JSONL"),
        ('{"text": "b", "label": [3]}\n', Layout(), [("b", ("3",), 1)], "JSONL"),
        (
            "a\tx y\tone two\nb\t\tthree four\n",
            Layout(),
            [("one two", ("x", "y"), 1), ("three four", (), 2)],
            "LibMulti",
        ),
        ("one two\tx,y\tid1\n", Layout(), [("one two", ("x", "y"), 1)], "TSV"),
        ("\na\tx\n\nb\ty\n\n", Layout(), [("a", ("x",), 2), ("b", ("y",), 4)], "TSV"),
        ('"quoted\t1, 2\r\nplain\t\r\n', Layout(), [('"quoted', ("1", "2"), 1), ("plain", (), 2)], "TSV"),
        ("tags\tid\tbody\nx;y\t7\thello\n", Layout("body", "tags", ";", True), [("hello", ("x", "y"), 2)], "TSV"),
        ('"text"\t"labels"\n"a ""b"" c"\t"x,y"\n', Layout(), [('a "b" c', ("x", "y"), 2)], "CSV"),
        ('"a b"\tx\n"c"\ty\n', Layout(), [('"a b"', ("x",), 1), ('"c"', ("y",), 2)], "TSV"),
        (
            'Text,Labels\n"a, b","x,y"\nc,\n',
            Layout(),
            [("a, b", ("x", "y"), 2), ("c", (), 3)],
            "CSV, .* labels in column 'Labels'",
        ),
        (
            "a b;x\nc;y\n",
            Layout(),
            [("a b", ("x",), 1), ("c", ("y",), 2)],
            "CSV, texts in column 1",
        ),
        (
            TOXIC,
            Layout("comment_text", ["toxic", "mild"]),
            [("a, b\nc", ("toxic",), 2), ("d", (), 4), ('said "e"', ("toxic", "mild"), 5)],
            "2 labels as columns of 0 and 1",
        ),
        ("text,is_a,is_b\nx,1,0\n", Layout(labels="is_*"), [("x", ("is_a",), 2)], "2 labels as columns"),
    ],
)
def test_texts_by_content(tmp_path: Path, text: str, layout: Layout, rows, description: str) -> None:
    texts = read_texts(Path(written(tmp_path / "x.txt", text)), layout)
    assert [tuple(row) for row in texts.rows] == rows
    assert re.search(description, texts.description)


@pytest.mark.parametrize(
    ("text", "layout", "message"),
    [
        ("no separator\nat all\n", Layout(), r":1: found 'no separator'; expected one of these formats: JSONL .*CSV"),
        ('{"text": "a"}\n', Layout(), r":1: found no 'labels'; expected a list of names"),
        ('{"texts": "a"}\n', Layout(), r":1: found .* without a text under 'text'"),
        (
            '{"text": "a"}\n',
            Layout("body", "tags"),
            r"'body'; expected a line such as {\"body\": .*, \"tags\": \[\"joy\"]}",
        ),
        ('{"text": "a", "labels": [1.5]}\n', Layout(), r":1: found labels \[1\.5\]"),
        ('{"text": "a", "labels": NaN}\n', Layout(), ":1: found .* not JSON"),
        ("".join(f"c{i}\tx\tone two\n" for i in range(60)) + "b\tx\n", Layout(), r":61: found 2 cells"),
        ("text,is_a\nx,2\n", Layout(labels="is_*"), r":2: found '2' for label 'is_a'; expected 0 or 1"),
        ("text,is_a\nx,2\n", Layout(labels="has_*"), r":1: found columns text, is_a; expected a label column"),
        ('text,labels\n"x,a\n', Layout(), r":2: found a record that can't be read"),
        ("a\tx\n\nb\nc\tx\n", Layout(), ":3: found 1 cell in 'b'; expected 2, as in the first line, separated by tabs"),
        (
            "text\ttags\na\tx\n",
            Layout("texte", "tags", header=True),
            ":1: found columns text, tags; .*Did you mean 'text'",
        ),
        ("a\tx\n", Layout(1, 4), ":1: found 2 columns; expected labels in column 4"),
    ],
)
def test_bad_texts(tmp_path: Path, text: str, layout: Layout, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_texts(Path(written(tmp_path / "x", text)), layout)


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize(
    ("head", "layout", "columns"),
    [
        ("sentence,labels", Layout(), (0, 1)),
        ("label,sentence", Layout(), (1, 0)),
        ("text,labels", Layout(), (0, 1)),
        ("text,genre", Layout(), (0, 1)),
        ("genre,text", Layout(), (1, 0)),
        ("id,Labels,Text", Layout(), (2, 1)),
        ("id,genre,text", Layout(labels="genre"), (2, 1)),
        ("id,body,label", Layout("body"), (1, 2)),
        ("tags,body", Layout(labels="tags"), (1, 0)),
    ],
)
def test_columns_of_a_header(tmp_path: Path, separator: str, head: str, layout: Layout, columns) -> None:
    names = head.split(",")
    rows = [[f"w{row}{column}" for column in range(len(names))] for row in range(3)]
    path = written(tmp_path / "x", "".join(separator.join(row) + "\n" for row in [names, *rows]))
    text, labels = columns
    texts = read_texts(Path(path), layout)
    assert [(row.text, row.labels) for row in texts.rows] == [(row[text], (row[labels],)) for row in rows]


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize(
    ("head", "layout", "message"),
    [
        ("id,text,genre", Layout(), "columns id, text, genre; expected a header with a text column named 'text' and a"),
        ("text,toxic,obscene", Layout(), "a label column named 'labels' or 'label'"),
        ("id,body,genre", Layout("body"), "a label column named 'labels' or 'label'; or pass text= and labels= with"),
        ("id,body,labels", Layout(), "columns id, body, labels; expected a header with a text column"),
        ("id,text,genre", Layout(labels="text"), "both the text and its labels in column 'text'"),
        ("a,b,c", Layout(2), "both the text and its labels in column 2"),
    ],
)
def test_an_ambiguous_header_is_rejected(
    tmp_path: Path, separator: str, head: str, layout: Layout, message: str
) -> None:
    path = written(tmp_path / "x", f"{head}\na b,c d,e\n".replace(",", separator))
    with pytest.raises(DataError, match=f":1: found .*{message}"):
        read_texts(Path(path), layout)


REVIEWS = "id,review,sentiment\n1,a good film,pos\n2,bad,neg\n3,so so then,pos\n"
JOY = 'id;comment;is_joy\n1;"so; sad";0\n2;what a day;1\n'
MOODS = {"id": ["1", "2"], "review": ["good", "bad"], "mood": ["joy", "grief"]}
PLAIN = "What a day,joy\nI am so sad,grief\nWell,joy\n"


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("x.csv", JOY, "id, comment, is_joy"),
        ("x", JOY, "id, comment, is_joy"),
        ("x.csv", REVIEWS, "id, review, sentiment"),
        ("x", REVIEWS, "id, review, sentiment"),
        ("x.csv", REVIEWS.replace(",", "\t"), "id, review, sentiment"),
        ("x.CSV", ",Review Text,Rating\n0,a good film,5\n1,a bad one,4\n", ", Review Text, Rating"),
        ("x.parquet", MOODS, "id, review, mood"),
    ],
)
def test_a_header_without_usual_names(tmp_path: Path, name: str, text: Any, columns: str) -> None:
    path = parquet_file(tmp_path / name, text) if text is MOODS else Path(written(tmp_path / name, text))
    text = "expected a header with a text column named 'text'"
    gold = "and a label column named 'labels' or 'label'; or pass text= and labels= with the column names"
    with pytest.raises(DataError, match=f":1: found columns {columns}; {text} {gold}"):
        read_texts(path, Layout())
    if name != "x":  # otherwise each line is a text
        with pytest.raises(DataError, match=f":1: found columns {columns}; {text}; or pass text= with its name"):
            read_texts(path, Layout(), gold=False)


def test_columns_by_number_below_a_header(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "x.csv", REVIEWS))
    expected = [("a good film", ("pos",), 2), ("bad", ("neg",), 3), ("so so then", ("pos",), 4)]
    for layout in (Layout(2, 3), Layout("review", "sentiment"), Layout("review", 3)):
        assert [tuple(row) for row in read_texts(path, layout).rows] == expected
    numbered = read_texts(path, Layout(1, 2, header=True)).rows
    assert numbered[0] == ("1", ("a good film",), 2)
    path = parquet_file(tmp_path / "x.parquet", MOODS)
    for layout in (Layout("review", "mood"), Layout(2, 3)):
        assert [row[:2] for row in read_texts(path, layout).rows] == [("good", ("joy",)), ("bad", ("grief",))]
    path = parquet_file(path, {"review": MOODS["review"]})
    assert [row[:2] for row in read_texts(path, Layout(), gold=False).rows] == [("good", None), ("bad", None)]


def test_csv_without_a_header(tmp_path: Path) -> None:
    """A file named .csv requires a header unless the config says that it has none."""
    rows = [("What a day", ("joy",), 1), ("I am so sad", ("grief",), 2), ("Well", ("joy",), 3)]
    path = Path(written(tmp_path / "x.csv", PLAIN))
    with pytest.raises(
        DataError, match=r":1: found columns What a day, joy; .* or task\.header=false if there is no header"
    ):
        read_texts(path, Layout())
    unnamed = Path(written(tmp_path / "x", PLAIN))
    for file, layout in ((path, Layout(header=False)), (path, Layout(1, 2, ";", False)), (unnamed, Layout())):
        assert [tuple(row) for row in read_texts(file, layout).rows] == rows
    written(path, "joy,Well\njoy,What a day\ngrief,I am so sad\n")  # a label that recurs is not a column name
    assert [row.text for row in read_texts(path, Layout(2, 1)).rows] == ["Well", "What a day", "I am so sad"]


def test_tsv_needs_no_header(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "x.tsv", "Well\tjoy\tone\nI am so sad\tgrief\ttwo\nWhat a day\tawe\tthree\n"))
    assert [row[:2] for row in read_texts(path, Layout()).rows] == [
        ("Well", ("joy",)),
        ("I am so sad", ("grief",)),
        ("What a day", ("awe",)),
    ]


def test_columns_of_labels_in_tsv(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "x", 'id\ttext\tis_a\tis_b\n1\tone "two\t1\t0\n2\tthree\t0\t0\n'))
    texts = read_texts(path, Layout(labels="is_*"))
    assert [tuple(row) for row in texts.rows] == [('one "two', ("is_a",), 2), ("three", (), 3)]
    written(path, "text\tis_a\tis_b\none\t1\t0\ntwo\t0\n")
    for gold in (True, False):
        with pytest.raises(DataError, match=r":3: found 2 cells in 'two.+t0'; expected 3, as in the first line"):
            read_texts(path, Layout(labels="is_*"), gold)


def test_texts_in_parquet(tmp_path: Path) -> None:
    columns = {"text": ["a, b", "c", "d"], "labels": [["x", "y, z"], [], []], "id": [1, 2, 3]}
    columns |= {
        "numbers": [[3], [0, 3], []],
        "written": ["x,y", "", " "],
        "is_a": [1, 0, 1],
        "is_b": [True, False, False],
    }
    path = parquet_file(tmp_path / "x", columns)
    for labels, expected in (
        (2, [("x", "y, z"), (), ()]),
        ("numbers", [("3",), ("0", "3"), ()]),
        ("written", [("x", "y"), (), ()]),
        ("is_*", [("is_a", "is_b"), (), ("is_a",)]),
    ):
        texts = read_texts(path, Layout(labels=labels))
        assert [row.labels for row in texts.rows] == expected and texts.description.startswith(
            "Parquet, texts in column 'text'"
        )
        assert [(row.text, row.line) for row in texts.rows] == [("a, b", 1), ("c", 2), ("d", 3)]
    for layout, message in (
        (Layout("numbers"), r":1: found the list \['3'\] in column 'numbers'; expected a text"),
        (Layout(labels="id"), None),
        (Layout(labels=["labels", "is_a"]), r":1: found .* for label 'labels'; expected 0 or 1"),
        (Layout(labels=9), r":1: found columns text, labels.*; expected labels in column 9"),
        (Layout(labels="tags"), r"expected a label column named 'tags'"),
    ):
        if message is None:
            assert [row.labels for row in read_texts(path, layout).rows] == [("1",), ("2",), ("3",)]
        else:
            with pytest.raises(DataError, match=message):
                read_texts(path, layout)
    for names in (None, "written", "labels", "is_a,is_b"):
        matrix, message, _ = read_strata(path, ColumnKeys.from_settings({"labels": names}))
        assert matrix.shape == (3, 2) and message.startswith("read as Parquet")


def make_invalid_utf_8_column(texts: list[bytes]) -> Any:
    """A column of texts whose bytes pyarrow does not check."""
    arrow = pytest.importorskip("pyarrow")
    return arrow.Array.from_buffers(arrow.string(), len(texts), arrow.array(texts, arrow.binary()).buffers())


def test_columns_of_parquet_that_are_not_utf_8(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    column = make_invalid_utf_8_column([b"tea", b"caf\xe9"])
    for name, columns in (
        ("text", {"text": column, "label": ["a", "b"]}),
        ("label", {"text": ["tea", "coffee"], "label": column}),
    ):
        parquet.write_table(arrow.table(columns), tmp_path / name)
        with pytest.raises(DataError, match=f"found column {name!r} damaged .*index 1"):
            list(read_texts(tmp_path / name, Layout()).rows)
    parquet.write_table(arrow.table({"size": [1, 2], "drink": column, "hot": [0, 1]}), tmp_path / "table")
    with pytest.raises(DataError, match=r"found column 'drink' damaged .*index 1"):
        read_table(str(tmp_path / "table"))
    lists = arrow.ListArray.from_arrays(arrow.array([0, 1, 2], arrow.int32()), column)
    parquet.write_table(arrow.table({"words": lists, "tags": [["A"], ["B"]]}), tmp_path / "tags")
    with pytest.raises(DataError, match="found column 'words' damaged"):
        list(tagged_rows(TagPlaces(), tmp_path / "tags", True))


@pytest.mark.parametrize(
    ("value", "zone", "text"), [(10**18, None, None), (10**15, "Mars/Olympus", "2001-09-09 01:46")]
)
def test_times_that_python_cannot_represent(value: int, zone: str | None, text: str | None, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = arrow.array([value, value], arrow.timestamp("us", tz=zone))
    parquet.write_table(arrow.table({"when": times, "text": ["x", "y"], "label": ["a", "b"]}), tmp_path / "x")
    assert [row.labels for row in read_texts(tmp_path / "x", Layout()).rows] == [("a",), ("b",)]
    if text is None:
        with pytest.raises(DataError, match=r":1: found null in column 'when'"):
            read_texts(tmp_path / "x", Layout("when"))
    else:
        assert next(iter(read_texts(tmp_path / "x", Layout("when")).rows)).text.startswith(text)
    lists = arrow.ListArray.from_arrays(arrow.array([0, 1, 2], arrow.int32()), times)
    parquet.write_table(arrow.table({"when": lists, "text": ["x", "y"], "label": ["a", "b"]}), tmp_path / "y")
    with pytest.raises(DataError, match=r"values in column 'when' of type list<.* that can't be read"):
        list(read_texts(tmp_path / "y", Layout()).rows)


EMPTY = [
    ("csv", "text,a,b\nx,1,0\ny,,1\n", 3, "an empty cell for label 'a'"),
    ("csv", "text,a,b\nx,1,0\ny,1, \n", 3, "an empty cell for label 'b'"),
    ("csv", "text,a,b\nx,1,0\ny,,\n", 3, None),
    ("tsv", "text\ta\tb\nx\t1\t0\ny\t1\t\n", 3, "an empty cell for label 'b'"),
    ("parquet", {"a": [1.0, float("nan")], "b": [0.0, 1.0]}, 2, "an empty cell for label 'a'"),
    ("parquet", {"a": [1, None], "b": [True, True]}, 2, "an empty cell for label 'a'"),
    ("parquet", {"a": [1, 0], "b": ["1", ""]}, 2, "an empty cell for label 'b'"),
    ("parquet", {"a": [1, None], "b": [1.0, float("nan")]}, 2, None),
]


@pytest.mark.parametrize(("kind", "data", "row", "message"), EMPTY)
def test_an_empty_cell_for_a_label_is_not_0(
    tmp_path: Path, kind: str, data: Any, row: int, message: str | None
) -> None:
    """The error names the label; a row may lack all labels where gold may be missing."""
    path = tmp_path / f"x.{kind}"
    if kind == "parquet":
        parquet_file(path, {"text": ["x", "y"], **data})
    else:
        written(path, data)
    for layout in (Layout(labels=["a", "b"]), Layout("text", ["a", "b"])):
        with pytest.raises(DataError, match=rf"x\.{kind}:{row}: found {message or ''}.*; expected 0 or 1; 0 if the te"):
            read_texts(path, layout)
        if message is None:
            assert [r.labels for r in read_texts(path, layout, gold=False).rows][1] is None
        else:
            with pytest.raises(DataError, match=rf":{row}: found {message}; expected 0 or 1"):
                read_texts(path, layout, gold=False)
        assert [r[:2] for r in read_texts(path, layout, gold=None).rows] == [("x", None), ("y", None)]


def test_a_null_is_not_a_list_of_no_labels(tmp_path: Path) -> None:
    for labels in ([["a"], None], ["a", None], [1.0, float("nan")]):
        path = parquet_file(tmp_path / "x.parquet", {"text": ["x", "y"], "labels": labels})
        with pytest.raises(
            DataError, match=r":2: found null in column 'labels'; expected labels; for none, an empty list"
        ):
            read_texts(path, Layout())
        assert [len(row.labels or "-") for row in read_texts(path, Layout(), gold=False).rows] == [1, 1]
        assert read_texts(path, Layout(), gold=False).rows[1].labels is None
    lines = Path(written(tmp_path / "x.jsonl", '{"text": "x", "labels": ["a"]}\n{"text": "y", "labels": null}\n'))
    with pytest.raises(DataError, match=r"x\.jsonl:2: found null under 'labels'; expected .* for none, an empty list"):
        read_texts(lines, Layout())
    for columns in (["a", "b"], "a*"):  # the run was trained on 0/1 columns; JSON has a list
        rows = read_texts(lines, Layout(labels=columns), gold=False).rows
        assert [row.labels for row in rows] == [("a",), None]
    assert [row.labels for row in read_texts(lines, Layout(), gold=None).rows] == [None, None]


def test_texts_without_labels_are_predicted(tmp_path: Path) -> None:
    for text in ("text,id\na b,1\n", '{"text": "a b"}\n', "a b\n"):
        [row] = read_texts(Path(written(tmp_path / "x", text)), Layout(), gold=False).rows
        assert (row.text, row.labels) == ("a b", None)


def test_lines_with_a_comma_each_are_texts(tmp_path: Path) -> None:
    def read_rows(text: str, layout: Layout | None = None, name: str = "x") -> list[tuple]:
        path = Path(written(tmp_path / name, text))
        return [row[:2] for row in read_texts(path, layout or Layout(), gold=False).rows]

    lines = ["well, no", "yes, a day"]
    assert read_rows("\n".join(lines)) == [(line, None) for line in lines]
    assert read_rows("\n".join(lines), Layout(labels="tags")) == [(line, None) for line in lines]
    assert read_rows("well,no\nyes,day\n", name="x.csv") == [("well", ("no",)), ("yes", ("day",))]
    assert read_rows('"well, no",a\nyes,b\n') == [("well, no", ("a",)), ("yes", ("b",))]
    assert read_rows("text,id\nwell,1\n") == read_rows("text,tags\nwell,1\n") == [("well", None)]
    assert read_rows("text,tags\nwell,a\n", Layout(labels="tags")) == [("well", ("a",))]
    assert read_rows("body,tags\nwell,a\n", Layout(labels="tags")) == [("well", ("a",))]


@pytest.mark.parametrize("name", ["x.csv", "x"])
def test_csv_of_one_column_is_predicted(tmp_path: Path, name: str) -> None:
    def read_rows(text: str, layout: Layout | None = None) -> list[str]:
        return [row.text for row in read_texts(Path(written(tmp_path / name, text)), layout or Layout(), False).rows]

    cells, texts = '"a, ""b"""\n"two\nlines; of it"\nplain\n', ['a, "b"', "two\nlines; of it", "plain"]
    assert read_rows(f"text\n{cells}") == read_rows(f'\ufeff"Text"\n{cells}') == texts
    for labels in (2, "tags", ["toxic", "mild"], "is_*"):
        assert read_rows(f"comment\n{cells}", Layout("comment", labels)) == read_rows(
            f"text\n{cells}", Layout("text", labels)
        )
        assert read_rows(f"comment\n{cells}", Layout("comment", labels)) == texts
    assert read_rows("text\na, b\nc\n") == ["a, b", "c"]  # written by hand
    assert read_rows("text\n" + '"a, b\nc"\n' * 20000) == ["a, b\nc"] * 20000
    with pytest.raises(DataError, match=r":1: found columns text; expected a text column named 'comment'"):
        read_rows("text\na b\n", Layout("comment"))
    with pytest.raises(
        DataError, match=r":1: found columns text; expected a header with .* a label column named 'labels'"
    ):
        read_texts(Path(written(tmp_path / name, "text\na b\n")), Layout())
    assert read_rows("what a day\n\nso sad\n") == ["what a day", "", "so sad"]
    if name == "x":
        assert read_rows('"Go," she said.\n"No!"\n') == ['"Go," she said.', '"No!"']
    else:
        assert read_rows('"a, b"\n"two\nlines"\n') == ["a, b", "two\nlines"]
        for text in ('comment\n"a, b"\n"two\nlines"\n', "comment\nso sad\nwhat a day\n"):
            message = ":1: found columns comment; expected a header with a text column named"
            with pytest.raises(DataError, match=message):
                read_rows(text)


def test_a_text_task_carves_a_validation_part_and_reports_it(tmp_path: Path) -> None:
    pair = '{"text": "a day @", "labels": ["x"]}\n{"text": "no @", "labels": []}\n'
    train = written(tmp_path / "train.jsonl", "".join(pair.replace("@", letter) for letter in "abcdefghij"))
    task = loaded("text", train=train, test=written(tmp_path / "test.csv", "text,labels\nb,y\n"))
    assert [len(task.part(name)) for name in ("train", "validation", "test")] == [16, 4, 1]
    assert task.space.labels == ["x", "y"] and "4 of the 20 rows" in task.protocol()["split"]
    assert task.notes()[-2] == "warning: no training example has 1 of the 2 labels (y): they can't be learned"
    assert task.notes()[-1].startswith("warning: 50% of the validation examples have no label.")
    assert "read as JSONL (20 texts)" in task.notes()[0] and "read as CSV" in task.notes()[1]
    split = written(tmp_path / "s.json", '{"train": [0, 1], "validation": [2], "test": [3]}')
    task = loaded("text", file=train, split=split)
    assert [len(task.part(name)) for name in ("train", "validation", "test")] == [2, 1, 1]
    assert split in task.checksums()
