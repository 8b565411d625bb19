"""Texts with labels: readers, words, hashed n-grams, and runs that predict without their data."""

from __future__ import annotations

import csv
import json
import os
import re
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.features.ngrams import NgramIndexer, Ngrams, stable_hash
from spen_plugins.builtin.tasks.labels.label_parts import find_text_columns
from spen_plugins.builtin.tasks.labels.reuters_parts import read_reuters, shared_topics
from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import parse_experiment
from spen_plugins.data.tables.label_columns import read_names
from spen_plugins.data.texts.text_columns import Layout
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.samples import labels as sample
from spen_plugins.testing import ToyLabels, ToyTags
from tests.loaded import ROOT, loaded, parquet_file, parsed, spen, trained, written

pytestmark = pytest.mark.usefixtures("whole_samples")

CONFIG = ROOT / "configs/texts.jsonnet"
load_task = partial(loaded, "text")
real_data = pytest.mark.skipif(not os.environ.get("SPEN_DATA"), reason="$SPEN_DATA is not set")


@pytest.fixture
def files(tmp_path) -> dict[str, str]:
    """Three TSV files with label numbers, and the names."""
    return {
        "train": written(tmp_path / "train.tsv", "What a day!\t0,2\tx1\nIt's raining\t1\tx2\nnothing here\t\tx3\n"),
        "validation": written(tmp_path / "dev.tsv", "a day\tjoy\tx4\n"),
        "test": written(tmp_path / "test.tsv", "A day’s rain\t2\tx5\n"),
        "labels": written(tmp_path / "names.txt", "joy\ngrief\nawe"),
    }


# Readers


def test_label_names(tmp_path):
    assert read_names(written(tmp_path / "n", "joy \n grief\n")) == ["joy", "grief"]
    with pytest.raises(DataError, match=r":3: found label 'a' twice"):
        read_names(written(tmp_path / "n", "a\nb\na\n"))
    with pytest.raises(DataError, match=r":2: found an empty name"):
        read_names(written(tmp_path / "n", "a\n\nb\n"))


def make_story(number: int, split: str, topics: str, text: str, indexed: str = "YES", kind: str = "") -> str:
    tags = "".join(f"<D>{topic}</D>" for topic in topics.split())
    return (
        f'<REUTERS TOPICS="{indexed}" LEWISSPLIT="{split}"  CGISPLIT="TRAINING-SET" NEWID="{number}">\n'
        f"<DATE>26-FEB-1987</DATE>\n<TOPICS>{tags}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n"
        f"<UNKNOWN>&#5;\n</UNKNOWN>\n<TEXT{kind}>&#2;\n{text}</TEXT>\n</REUTERS>\n"
    )


BODY = (
    "<TITLE>GRAIN &amp; {0}</TITLE>\n<DATELINE>    ROME, Feb 1 - </DATELINE>"
    "<BODY>{0} rose at B\xfcrgi.\n REUTER\n&#3;</BODY>"
)
HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'


@pytest.fixture
def stories(tmp_path) -> Path:
    """Two files: 20 training and 2 test documents, and some that are neither."""
    folder = tmp_path / "reuters"
    folder.mkdir()
    train = [make_story(i, "TRAIN", "grain wheat" if i % 2 else "earn", BODY.format(i)) for i in range(18)]
    train += [
        make_story(18, "TRAIN", "", BODY.format("none")),
        make_story(19, "TRAIN", "rare grain", BODY.format("two")),
    ]
    (folder / "reut2-000.sgm").write_text(HEAD + "".join(train), "latin-1")
    others = [
        make_story(20, "TEST", "earn", "<TITLE>BRIEF ONLY</TITLE>", kind=' TYPE="BRIEF"'),
        make_story(21, "TEST", "grain wheat gold", "*******LOOSE &lt;XYZ&gt; TEXT\x1f\x03\n", kind=' TYPE="UNPROC"'),
        make_story(22, "NOT-USED", "earn", BODY.format("unused")),
        make_story(23, "TRAIN", "", BODY.format("bypassed"), indexed="BYPASS"),
        make_story(24, "TEST", "", BODY.format("seen by nobody"), indexed="NO"),
    ]
    (folder / "reut2-001.sgm").write_text(HEAD + "".join(others), "latin-1")
    return folder


def test_reuters_documents(stories):
    documents = read_reuters(stories)
    assert [d.part for d in documents] == ["train"] * 20 + ["test"] * 2 + [None] * 3
    assert [d.indexed for d in documents[-3:]] == [True, False, False]
    first, brief, loose = documents[1], documents[20], documents[21]
    assert first.text == "GRAIN & 1\n1 rose at B\xfcrgi.\n REUTER" and first.topics == ("grain", "wheat")
    assert first.line == 2 + make_story(0, "TRAIN", "earn", BODY.format(0)).count("\n")
    assert brief.text == "BRIEF ONLY" and loose.text == "*******LOOSE <XYZ> TEXT"
    assert shared_topics(documents) == ["earn", "grain", "wheat"]


ONE = make_story(1, "TRAIN", "earn", BODY.format(1))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (HEAD + ONE.replace("</REUTERS>\n", "") + ONE, 2, "another <REUTERS> in this document; expected </REUTERS>"),
        (HEAD + ONE + ONE.replace("</REUTERS>\n", ""), 2 + ONE.count("\n"), "a document without an end"),
        (HEAD + ONE.replace('LEWISSPLIT="TRAIN"', ""), 2, "expected attributes TOPICS and LEWISSPLIT"),
        (HEAD + ONE.replace("</TOPICS>", ""), 2, "and <TEXT>"),
        (HEAD + ONE + "\n\n" + ONE.replace("</TEXT>", ""), 4 + ONE.count("\n"), "and <TEXT>"),
        (HEAD, None, "no document"),
    ],
)
def test_broken_sgml_is_reported_with_its_line(tmp_path, text, line, message):
    (tmp_path / "x.sgm").write_text(text, "latin-1")
    with pytest.raises(DataError, match=message) as error:
        read_reuters(tmp_path / "x.sgm")
    assert error.value.line == line


def test_reuters_requires_files(tmp_path):
    with pytest.raises(DataError, match=r"a folder without \.sgm files"):
        read_reuters(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_reuters(tmp_path / "x.sgm")


# The task


def test_files_with_numbers_and_names(files):
    task = load_task(**files)
    assert task.space.labels == ["joy", "grief", "awe"]
    assert [[e.gold.tolist() for e in task.part(name)] for name in sp.PARTS] == [[[0, 2], [1], []], [[0]], [[2]]]
    assert list(task.inputs.words) == ["!", "a", "day", "here", "it's", "nothing", "raining", "what"]
    assert set(task.checksums()) == set(files.values())
    assert list(load_task(**files, min_count=2).inputs.words) == []
    filtered = load_task(**files, keep_empty=False)
    assert [len(filtered.part(name)) for name in sp.PARTS] == [2, 1, 1] and "left out" in filtered.protocol()["split"]


def test_labels_by_name_come_from_all_files(files, tmp_path):
    train = written(tmp_path / "t.tsv", "b|a\tx\nc\ty\n")
    dev = written(tmp_path / "v.tsv", "d\tx\n")
    task = load_task(train=train, validation=dev, text=2, labels=1, separator="|")
    assert task.space.labels == ["a", "b", "c", "d"] and not task.part("test")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"train": "a\t3\n"},
            DataError,
            r"train\.tsv:1: found label '3'; expected one of the 3 known labels, or its number",
        ),
        ({"train": "a\tjoi\n"}, DataError, "label 'joi'.*Did you mean 'joy'"),
        ({"labels": None, "train": "a\t\n", "validation": "a\t\n", "test": "a\t\n"}, DataError, "no label in any line"),
        ({"train": None}, ConfigError, r"found task.validation, task.test, task.labels; expected one of"),
        ({"corpus": "sample"}, ConfigError, "found task.corpus, task.train"),
        ({"text": "body", "header": False}, DataError, "expected a text column named 'body'"),
        ({"labels": 0}, ConfigError, r"task\.labels: found 0; expected a name, or a number from 1"),
        ({"threshold": 2.0}, ConfigError, r"task\.threshold"),
    ],
)
def test_invalid_settings_and_labels_are_rejected(files, change, error, message):
    for name, text in change.items():
        if isinstance(text, str) and name in sp.PARTS:
            written(Path(files[name]), text)
        else:
            files[name] = text
    with pytest.raises(error, match=message):
        load_task(**files)


def test_words(files):
    def split_words(text, **fields):
        return sp.TextLabels(sp.TextLabels.Config(**fields)).words(text)

    text = "Don’t PAY 1,950 dlrs :) 🎉 B\xfcrgi's"
    assert split_words(text) == ["don't", "pay", "0", ",", "000", "dlrs", ":", ")", "🎉", "b\xfcrgi's"]
    expected = ["Don't", "PAY", "1", "950", "dlrs", "B\xfcrgi's"]
    assert split_words(text, lowercase=False, digits=False, punctuation=False) == expected


def test_reuters_parts(stories):
    task = load_task(reuters=str(stories))
    assert task.space.labels == ["earn", "grain", "wheat"]
    assert [len(task.part(name)) for name in sp.PARTS] == [18, 2, 2]
    gold = {e.text: e.gold.tolist() for name in sp.PARTS for e in task.part(name)}
    assert gold["GRAIN & none\nnone rose at B\xfcrgi.\n REUTER"] == []  # kept, without labels
    assert gold["GRAIN & two\ntwo rose at B\xfcrgi.\n REUTER"] == [1]  # 'rare' is in no test document
    assert gold["*******LOOSE <XYZ> TEXT"] == [1, 2]
    split = task.protocol()["split"]
    assert "20 training" in split and "2 test documents" in split and "seed 0: 2 documents" in split and "stay" in split
    reloaded = load_task(reuters=str(stories))
    assert [e.text for e in reloaded.part("validation")] == [e.text for e in task.part("validation")]
    assert len(task.checksums()) == 2
    assert sum(len(load_task(reuters=str(stories), keep_empty=False).part(name)) for name in sp.PARTS) == 21


def test_read_accepts_tsv_sgml_folders_and_plain_text(files, stories, tmp_path):
    task = load_task(**files)
    assert [e.gold.tolist() for e in task.read(files["test"])] == [[2]]
    assert [e.gold for e in task.read(written(tmp_path / "x.tsv", "text alone\n"))] == [None]
    plain = task.read(written(tmp_path / "x.txt", "one\ttext\n\nthree\n"))
    assert [e.text for e in plain] == ["one\ttext", "", "three"] and {e.gold for e in plain} == {None}
    reuters_task = load_task(reuters=str(stories))
    assert len(reuters_task.read(str(stories))) == 25
    examples = reuters_task.read(str(stories / "reut2-001.sgm"))
    assert [None if e.gold is None else e.gold.tolist() for e in examples] == [[0], [1, 2], [0], None, None]


def test_prediction_ignores_labels_unknown_to_the_run(files, tmp_path):
    task = load_task(**files)
    for name, text in (
        ("x.csv", "text,labels\nhello there,unknown\n"),
        ("x.tsv", "hello there\tunknown\n"),
        ("x.jsonl", '{"text": "hello there", "labels": ["unknown"]}\n'),
    ):
        path = written(tmp_path / name, text)
        assert [(e.text, e.gold) for e in task.read_inputs(path)] == [("hello there", None)]
        assert task.notes()[0].startswith(f"{path}: read as ") and task.notes()[0].endswith("(1 text)")
        assert "no labels" not in task.notes()[0] and ("labels not read" in task.notes()[0] or name != "x.csv")
        with pytest.raises(DataError, match=r"found label 'unknown'; expected one of the 3 known labels"):
            task.read(path)


def test_prediction_ignores_empty_label_cells(tmp_path):
    """So does training without gold; evaluation skips rows without any label."""
    train = written(tmp_path / "train.csv", "text,is_a,is_b\none,1,0\ntwo,0,1\n")
    unlabelled = written(tmp_path / "more.csv", "text,is_a,is_b\nthree,,\nfour,1,\n")
    task = load_task(train=train, validation=train, labels="is_*", unlabelled=unlabelled)
    assert [e.gold is None for e in task.part("train")] == [False, False, True, True]
    assert [(e.text, e.gold) for e in task.read_inputs(unlabelled)] == [("three", None), ("four", None)]
    with pytest.raises(DataError, match=r"more\.csv:3: found an empty cell for label 'is_b'; expected 0 or 1"):
        task.read(unlabelled)
    mixed = written(tmp_path / "some.csv", "text,is_a,is_b\none,1,0\nthree,,\n")
    assert [None if e.gold is None else e.gold.tolist() for e in task.read(mixed)] == [[0], None]


LAYOUTS = [
    ("text,is_a,is_b\none,1,0\ntwo,0,1\n", {"labels": "is_*"}),
    ("comment,x,y\none,1,0\ntwo,0,1\n", {"text": "comment", "labels": ["x", "y"]}),
    ('"x,y",none,text\n1,0,one\n0,0,two\n', {"labels": ["x,y", "none"]}),
    ("b,a,body\n1,0,one\n0,1,two\n", {"text": 3, "labels": ["b", "a"]}),
    ("n,a,b,m,body\n7,1,0,7,one\n7,0,1,7,two\n", {"text": 5, "labels": ["b", "a"]}),
    ("tags,comment\nx,one\ny;z,two\n", {"text": "comment", "labels": "tags", "separator": ";"}),
    ("x,7,one\ny,7,two\n", {"text": 3, "labels": 1, "header": False}),
    ("tags,body\nx,one\ny,two\n", {"text": 2, "labels": 1}),
    ("n,body,tags\n7,one,x\n7,two,y\n", {"text": "body", "labels": 3}),
    ("text,labels\none,x\ntwo,y\n", {}),
]


@pytest.mark.parametrize(("train", "fields"), LAYOUTS)
def test_a_run_reads_the_csv_that_it_writes(tmp_path, train, fields):
    """The user's columns are kept, so that texts and gold are found again; files without a header have only texts."""
    path = written(tmp_path / "train.csv", train)
    task = load_task(train=path, validation=path, **fields)
    restored = sp.TextLabels(task.config)
    restored.restore(json.loads(json.dumps(task.facts())))
    labels = task.space.labels
    examples = restored.read(path)
    predictions = [{"labels": labels[:1], "probabilities": dict.fromkeys(labels, 0.25)}] * len(examples)
    out = Path(written(tmp_path / "out.csv", restored.formats()["csv"](predictions, examples)))
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(row[f"p_{label}"] == "0.25" for row in rows for label in labels)
    if "text" in rows[0] and "text" not in train.splitlines()[0]:  # the file has no recognised header
        assert [row["text"] for row in rows] == [e.text for e in examples]
        return
    reread = restored.read(str(out))
    assert [e.text for e in reread] == [e.text for e in examples]
    assert [e.gold.tolist() for e in reread] == [e.gold.tolist() for e in examples]


def test_labels_in_columns_are_predicted_in_columns(tmp_path):
    """A column that is never 1 is no label."""
    path = written(tmp_path / "train.csv", "comment,joy,grief\none,1,0\n")
    task = load_task(train=path, validation=path, text="comment", labels=["joy", "grief"])
    assert task.space.labels == ["joy"]
    output = task.formats()["csv"]([{"labels": [], "probabilities": {"joy": 0.1}}], [task.parse("one")])
    assert output == "text,predicted_joy,p_joy\none,0,0.1\n"


def test_parse():
    task = load_task(corpus="sample")
    assert task.parse({"text": "x"}).gold is None and task.parse("x").text == "x"
    assert task.parse({"text": "x", "labels": ["culture", "science"]}).gold.tolist() == [0, 10]
    for item, message in (
        (["x"], 'expected a text, or {"text": "..."}'),
        ({"text": 3}, 'expected a text, or {"text"'),
        ({"text": "x", "lables": []}, "lables"),
        ({"text": "x", "labels": "science"}, "a list of label names"),
        ({"text": "x", "labels": ["sience"]}, "Did you mean 'science'"),
    ):
        with pytest.raises(DataError, match=message):
            task.parse(item)


def test_parse_accepts_the_runs_own_text_column(files):
    task_type, config = parsed("task", "text", train=files["train"], validation=files["validation"], text="body")
    task = task_type(config)
    task.restore(load_task(corpus="sample").facts())
    assert [task.parse(item).text for item in ({"body": "x"}, {"text": "x"}, "x")] == ["x"] * 3
    for item in ({"text": "x", "body": "y"}, {"comment": "x"}):
        with pytest.raises(DataError, match=re.escape('expected a text, or {"body": "..."}')):
            task.parse(item)


def test_only_some_training_texts_have_labels(files, tmp_path):
    unlabelled = [
        written(tmp_path / "more.txt", "another day\n"),
        written(tmp_path / "more.tsv", "one more\tunheard-of\n"),
    ]
    task = load_task(**files, labelled=1, repeat=2, unlabelled=unlabelled)
    train = task.part("train")
    assert [None if e.gold is None else e.gold.tolist() for e in train] == [[0, 2]] * 2 + [None] * 4
    assert [example.text for example in train[4:]] == ["another day", "one more"]
    assert {"raining", "another", "more"} <= {*task.inputs.words}  # words also come from texts without labels
    assert {*unlabelled} <= task.checksums().keys()
    assert {f"{unlabelled[0]}: 1 text", f"{unlabelled[1]}: read as TSV (1 text)"} <= {*task.notes()}
    other_test = written(tmp_path / "other.tsv", "rain\tgrief\n")
    message = "no training example has 1 of the 3 labels (grief)"
    assert any(message in note for note in load_task(**files | {"test": other_test}, labelled=1).notes())
    assert not any(message in note for note in load_task(**files | {"test": other_test}).notes())
    assert len(load_task(**files, labelled=1, rest=False).part("train")) == 1


# N-grams


def make_network(known_words=("a", "b", "c"), **fields) -> Ngrams:
    task = sp.TextLabels(sp.TextLabels.Config(corpus="sample"))
    task.inputs = sp.TextInputs(list(known_words))
    return Ngrams(Ngrams.Config(hidden=[5], **fields), task)


def index_bag(text: str, normed: bool = True, **fields) -> dict[int, float]:
    known_words = ["a", "b", "c"] if fields.get("vocabulary", True) else None
    rows, values = NgramIndexer(known_words, Ngrams.Config(**fields), normed).index(text.split())
    return dict(zip(rows.tolist(), values.tolist(), strict=True))


def count_ngrams(text: str, **fields) -> dict[int, float]:
    """Counts of n-grams, computed from their logarithms."""
    return {row: float(round(np.exp(value - 1), 4)) for row, value in index_bag(text, False, **fields).items()}


def test_a_plain_bag_of_words_by_hand():
    plain = {"words": 1, "buckets": 0}
    assert count_ngrams("b a b x b", **plain) == {0: 1, 1: 3}
    values = index_bag("b a b x b", **plain)
    logs = np.array([1, 1 + np.log(3)])
    np.testing.assert_allclose([values[0], values[1]], logs / np.sqrt((logs**2).sum()), rtol=1e-6)
    assert index_bag("x y", **plain) == {} and index_bag("", **plain) == {}


def test_ngrams_by_enumeration():
    size = {"buckets": 2**20}
    text = "a b x a b"
    unigrams, bigrams, trigrams = (count_ngrams(text, words=n, **size) for n in (1, 2, 3))
    assert unigrams == {0: 2, 1: 2}
    assert {k: v for k, v in bigrams.items() if k < 3} == unigrams
    assert sorted(v for k, v in bigrams.items() if k >= 3) == [1, 1, 2]  # b-x, x-a, and a-b twice
    assert sum(trigrams.values()) == 4 + 4 + 3 and bigrams.items() <= trigrams.items()
    assert count_ngrams("a b", words=2, **size) != count_ngrams("b a", words=2, **size)  # order counts
    assert count_ngrams("a x b", words=3, **size) == count_ngrams("a y b", words=3, **size)  # unknown words are equal
    hashed = count_ngrams("a x y", words=1, vocabulary=False, **size)
    assert sorted(hashed.values()) == [1, 1, 1] and make_network(vocabulary=False, **size).indexer()[1].size == 2**20
    pieces = count_ngrams("ab", words=1, characters=[2, 3], **size)
    assert sorted(pieces.values()) == [1] * 5  # <a ab b> <ab ab>
    assert max(trigrams) < 3 + 2**20


def test_hashes_are_the_same_in_every_process():
    """With any hash seed and in every version: runs store rows, not words."""
    rows, _ = NgramIndexer(["a", "b"], Ngrams.Config(words=3, characters=[2, 3], buckets=1000)).index(
        ["a", "b", "und", "c"]
    )
    assert rows[:12].tolist() == [0, 1, 77, 132, 222, 237, 249, 304, 409, 426, 430, 450]
    assert rows[12:].tolist() == [453, 633, 682, 684, 740, 813, 907, 918, 971, 999, 1001]
    assert stable_hash("Zürich") == 636548684707296368


def test_buckets_are_filled_evenly():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in rng.integers(0, 3000, size=40_000)]
    rows, _ = make_network((), words=2, buckets=64, vocabulary=False).indexer()[1].index(words)
    assert rows.tolist() == list(range(64))
    vocabulary = sorted(set(words))
    indexer = make_network(vocabulary, words=2, buckets=64).indexer()[1]
    pairs = sorted(set(pairwise(words)))[:6400]
    counts = np.bincount([indexer.index(pair)[0][-1] - len(vocabulary) for pair in pairs], minlength=64)
    chi = ((counts - 100) ** 2 / 100).sum()  # 63 degrees of freedom: mean 63, deviation 11
    assert 30 < chi < 110


def test_the_network_is_a_linear_layer_on_the_dense_bag():
    net = make_network(buckets=7, words=2)
    indexer = net.indexer()[1]
    name, bags = indexer.name, [indexer.index(text.split()) for text in ("a b b", "", "c x a")]
    x = sp.X(indexer.collate(bags), None, 3)
    dense = torch.zeros(3, 10)
    for i, (rows, values) in enumerate(bags):
        dense[i, torch.from_numpy(rows).long()] = torch.from_numpy(values)
    torch.testing.assert_close(net(x), net.rest(dense @ net.first.weight + net.first.bias))
    assert net(x).shape == (3, 5) and set(x.inputs) == {f"{name}.{part}" for part in ("rows", "values", "offsets")}
    assert net.first.weight.shape == (10, 5)


def test_texts_are_indexed_once_and_equal_networks_share(files):
    task = load_task(**files)
    first, second = (Ngrams(Ngrams.Config(hidden=[n]), task).indexer() for n in (3, 4))
    assert first[0] == second[0] != Ngrams(Ngrams.Config(words=1), task).indexer()[0]
    calls = []
    index = first[1].index
    first[1].index = lambda words: calls.append(words) or index(words)
    task.indexers.setdefault(*first)
    for _ in range(2):
        batch = task.collate(task.part("train"), [2, 0, 1])
    assert calls == [["what", "a", "day", "!"], ["it's", "raining"], ["nothing", "here"]]
    assert batch.x.mask is None and batch.rows.tolist() == [2, 0, 1] and batch.gold.shape == (3, 1, 3)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"buckets": 0}, "buckets: found 0; hashed n-grams"),
        ({"buckets": 0, "words": 1, "vocabulary": False}, "buckets: found 0; hashed n-grams"),
        ({"characters": [4, 3]}, r"characters: found \[4, 3\]"),
        ({"dropout": [0.1, 0.2, 0.3]}, "found 3 numbers"),
    ],
)
def test_invalid_networks_are_rejected(fields, message):
    with pytest.raises(ConfigError, match=message):
        parsed("features", "ngrams", **fields)


def test_networks_reject_other_inputs():
    for toy in (ToyLabels(), ToyTags()):
        with pytest.raises(ConfigError, match="'ngrams' requires texts"):
            Ngrams(Ngrams.Config(), toy)
    texts_task = load_task(corpus="sample")
    for name in ("mlp", "bilstm", "encoder"):
        cls, config = parsed("features", name)
        with pytest.raises(ConfigError, match="'ngrams'"):
            cls(config, texts_task)


# Configs and runs


@pytest.mark.parametrize("data", ["sample", "goemotions", "reuters", "files", "mine.tsv"])
@pytest.mark.parametrize(
    "method", ["cross_entropy", "nce", "ranking", "margin", "margin_compound", "regression", "regression_s"]
)
def test_every_data_set_with_every_method_is_an_experiment(data, method):
    file_settings = {"validation": "v.tsv", "test": "t.tsv", "labels": "n.txt"} if data == "mine.tsv" else {}
    config = evaluate(CONFIG, {"data": data, "method": method, **file_settings})
    parse_experiment(config, CONFIG, sp.Registry())
    assert ("energy" in config) == (method != "cross_entropy")
    if data == "mine.tsv":
        assert config["task"] == {
            "type": "text", "threshold": "validation", "decode": "validation", "train": data, **file_settings,
        }  # fmt: skip


def test_a_config_of_files():
    assert evaluate(CONFIG, {"data": "mine.tsv"})["task"]["file"] == "mine.tsv"
    with pytest.raises(ConfigError, match=r"require a training file"):
        evaluate(CONFIG, {"labels": "names.txt"})
    table = evaluate(CONFIG, {"task.train": "a.tsv", "task.validation": "b.tsv"})["task"]
    assert table["train"] == "a.tsv" and "corpus" not in table


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    settings = {"trainer.epochs": "8", "energy_loss.samples": "5", "trainer.energy.steps": "1"}
    folder = tmp_path_factory.mktemp("runs") / "text"
    return trained("texts", folder, **settings, **{"features.characters": "[3,4]"})


def test_the_sample_config_learns(run):
    scores = json.loads((run / "metrics.json").read_text())["test"]
    # The score of the best constant answer, which ignores the texts.
    gold = np.zeros((500, 40), dtype=bool)
    for row, (_, labels) in enumerate(sample.texts()["test"]):
        gold[row, labels] = True
    constant = max(
        np.mean([2 * (g & p).sum() / (g.sum() + p.sum()) for g in gold])
        for p in (gold.mean(0) >= share for share in (0.1, 0.2, 0.3, 0.4))
    )
    assert scores["example_f1"] > constant + 0.2 and scores["example_f1"] > 0.6


def test_a_run_predicts_without_its_data(run, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise AssertionError("the sample was read again")

    monkeypatch.setattr(sample, "texts", fail)
    expected, rows = None, []
    predictor = sp.load(run)
    monkeypatch.undo()
    for text, gold in sample.texts()["test"][:20]:
        rows.append(f"{text}\t{','.join(sample.labels()[i] for i in gold)}")
    items = [{"text": row.split("\t")[0]} for row in rows]
    expected = predictor.predict(items)
    assert {frozenset(w["labels"]) for w in expected} != {frozenset()} and len(expected[0]["probabilities"]) == 10
    for item, answer in zip(items[:4], expected, strict=False):
        [single] = predictor.predict([item])
        assert single["probabilities"] == pytest.approx(answer["probabilities"], abs=1e-5)
    tsv = written(tmp_path / "x.tsv", "\n".join(rows) + "\n")
    plain = written(tmp_path / "x.txt", "\n".join(row.split("\t")[0] for row in rows) + "\n")
    assert list(predictor.predict_file(tsv)) == list(predictor.predict_file(plain)) == expected
    assert 0.5 < predictor.evaluate_file(tsv)["scores"]["example_f1"] <= 1
    assert len(list(predictor.score_file(tsv))) == 20
    with pytest.raises(DataError, match="no gold outputs"):
        predictor.evaluate_file(plain)


# The real data


@real_data
def test_goemotions_counts():
    folder = "data:text/goemotions/"
    parts = {name: folder + file for name, file in zip(sp.PARTS, ("train.tsv", "dev.tsv", "test.tsv"), strict=True)}
    task = load_task(**parts, labels=folder + "labels.txt", min_count=2)
    assert [len(task.part(name)) for name in sp.PARTS] == [43410, 5426, 5427] and len(task.space.labels) == 28
    single = np.mean([len(e.gold) == 1 for name in sp.PARTS for e in task.part(name)])
    assert 0.83 < single < 0.84  # Demszky et al. 2020, Sec. 3
    assert task.space.labels[task.part("train")[2].gold[0]] == "anger"


@real_data
def test_reuters_counts():
    task = load_task(reuters="data:text/reuters21578")
    train = [*task.part("train"), *task.part("validation")]
    assert (len(train), len(task.part("test")), len(task.space.labels)) == (9603, 3299, 90)
    labelled = [sum(len(e.gold) > 0 for e in part) for part in (train, task.part("test"))]
    assert labelled == [7770, 3019]  # the sizes of R(90), Debole & Sebastiani 2005
    assert all(sum(label in e.gold for e in task.part("test")) > 0 for label in range(90))


def test_a_file_may_name_its_columns_in_its_own_way(run, tmp_path):
    """Column settings of evaluate and predict leave the run's folder unchanged."""
    config = (run / "config.json").read_bytes()
    predictor = sp.load(run)
    names = predictor.task.space.labels[:2]
    path = written(tmp_path / "x.csv", f"n,body,kinds,old\n1,one two,{names[0]};{names[1]},x\n2,three,{names[1]},x\n")
    with pytest.raises(DataError, match=r"found columns n, body, kinds, old; expected .* text column"):
        predictor.task.read(path)
    predictor.name_columns({"text": "body", "labels": "kinds", "separator": ";"})
    assert [e.gold.tolist() for e in predictor.task.read(path)] == [[0, 1], [1]]
    assert [e.text for e in predictor.task.read_inputs(path)] == ["one two", "three"]
    predictor = sp.load(run)
    predictor.name_columns({"drop": "n,kinds,old"})
    assert [e.text for e in predictor.task.read_inputs(path)] == ["one two", "three"]
    assert (run / "config.json").read_bytes() == config
    assert json.loads(spen("evaluate", run, path, "text=body", "labels=kinds", "separator=;").stdout)["scores"]
    assert len(spen("predict", run, path, "text=2").stdout.splitlines()) == 2
    headerless = written(tmp_path / "bare.csv", 'refund please\n"where is it, and when"\n')
    assert len(spen("predict", run, headerless, "task.header=false").stdout.splitlines()) == 2
    for arguments, message in (
        (["text=title"], "expected a text column named 'title'"),
        (["body=text"], "a run of task 'text', whose files take text=, labels=, separator=, drop="),
        (["text=0"], "task.text: found 0; expected a name, or a number from 1"),
    ):
        assert message in " ".join(spen("predict", run, path, *arguments, status=2).stderr.split())


def test_columns_of_shards_are_matched_by_name(tmp_path):
    tables = ({"text": ["a"], "k": [1]}, {"k": [2], "text": ["b"], "more": ["x"]}, {"text": ["c"]})
    for number, table in enumerate(tables):
        parquet_file(tmp_path / f"{number}.parquet", table)
    names, rows = find_text_columns(tmp_path, Layout())
    assert names == ["text", "k", "more"]
    assert [list(map(str, row)) for row in rows] == [["a", "1", ""], ["b", "2", "x"], ["c", "", ""]]
