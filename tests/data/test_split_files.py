"""`spen data split` for every format: as many rows as the task reads, stratified by their labels."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import spen_plugins as sp
from spen_plugins.data.parts.split import split_file
from spen_plugins.data.parts.strata import read_strata
from spen_plugins.data.tables.label_columns import ColumnKeys
from tests.loaded import loaded, parquet_file, parsed, trained, written

COLUMNS = "Anna@\tNNP\tB-PER\nsleeps\tVBZ\tO\n\nit@\tPRP\tO\nrains\tVBZ\tO\n\n"
CONLLU = "".join(
    f"{n}\t{word}\t_\t{tag}\t{xpos}\t_\t_\t_\t_\t_\n{end}"
    for n, word, tag, xpos, end in (
        (1, "Anna@", "PROPN", "NNP", ""),
        (2, "ran", "VERB", "VBD", "\n"),
        (1, "no@", "INTJ", "UH", "\n"),
    )
)
ROLES = "Anna@\t-\t(ARG0*)\nsent\tsend\t(V*)\nletters\t-\t(ARG1*)\n\nit@\t-\t*\nrains\train\t(V*)\n\n"
TABLE = "x,word,t_a,t_b\n" + "1,one@,1,0\n2,two@,0,1\n"
TREES = "(S (NP-SBJ (NN @)) (VP (VB go)))\n( (FRAG (NP (NN no) (NN @))) )\n"
TEXTS = 'text,labels\n"a@, b","x,y"\nc@,\n'
LIBML = "a\tx y\tone@ two\nb\t\tthree@ four\n"


def twenty(text: str, head: int = 0) -> str:
    """The two rows ten times, each time with another letter for @ and another digit for ?."""
    lines = text.splitlines(keepends=True)
    rows = "".join(lines[head:])
    return "".join(lines[:head]) + "".join(rows.replace("@", "abcdefghij"[n]).replace("?", str(n)) for n in range(10))


@pytest.mark.parametrize(
    ("text", "keys", "columns", "pattern"),
    [
        (twenty(COLUMNS), {}, 2, "read as columns, stratified by 2 tags"),
        (twenty(COLUMNS), {"tags": 1}, 3, "stratified by 3 tags"),
        (twenty(CONLLU), {}, 3, "read as CoNLL-U, stratified by 3 tags"),
        (twenty(CONLLU), {"tags": "xpos"}, 3, "3 tags"),
        (twenty(ROLES), {}, 4, "stratified by 4 roles"),
        (twenty(TREES), {}, 4, "read as bracketed trees, stratified by 4 labels"),
        (twenty(TABLE, 1), {"labels": "t_*"}, 2, "read as CSV, stratified by 2 labels"),
        (twenty(TABLE, 1), {"labels": "t_b"}, 1, "read as CSV, stratified by 1 label$"),
        (twenty(TABLE, 1).replace(",", "\t"), {"labels": "t_*"}, 2, "read as CSV, stratified by 2 labels"),
        (twenty(TABLE, 1).replace(",", "\t"), {"labels": "t_a,t_b"}, 2, "read as CSV, stratified by 2 labels"),
        (twenty(TEXTS, 1), {}, 2, "read as CSV.* stratified by 2 labels"),
        (twenty(TEXTS.replace("labels", "kinds"), 1), {}, 2, "read as CSV.* stratified by 2 labels"),
        (twenty(TEXTS.replace("labels", "kinds"), 1), {"labels": "kinds"}, 2, "read as CSV.* stratified by 2 labels"),
        ("".join(f"{i}{line}" for i, line in enumerate(twenty(LIBML).splitlines(True))), {}, 2, "LibMultiLabel's"),
        (twenty("one@ two\tx,y\tid\nthree@\tx\tid\n"), {}, 2, "read as TSV"),
        (twenty("one@ two\tx,y\n\nthree@ four\tx\n\n"), {}, 2, "read as TSV"),
        (twenty("3,17 1:0.5? 4:2\n 2:1.?\n"), {}, 2, "read as libsvm"),
        (
            twenty('{"text": "a@", "labels": ["x"]}\n{"text": "b@", "labels": []}\n'),
            {},
            1,
            "read as JSONL, .*1 label$",
        ),
        (twenty('{"words": ["a@"], "tags": ["X"]}\n{"words": ["b@"], "tags": ["Y"]}\n'), {}, 2, "JSONL, .*2 tags"),
        (
            twenty(
                '{"words": ["a@"], "entities": [{"type": "X", "start": 0, "end": 1}]}\n'
                '{"words": ["b@"], "columns": {"pos": ["NN"]}}\n'
            ),
            {},
            1,
            "JSONL, .*1 tag$",
        ),
    ],
)
def test_every_format(tmp_path: Path, text: str, keys: dict, columns: int, pattern: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    matrix, description, _ = read_strata(path, ColumnKeys.from_settings(keys))
    assert matrix.shape == (20, columns) and re.search(pattern, description)
    messages: list[str] = []
    split_path = split_file(path, **keys, say=messages.append)
    split = json.loads(split_path.read_text())
    assert split_path == tmp_path / "mine.split.json"
    assert {name: len(rows) for name, rows in split.items()} == {"train": 12, "valid": 4, "test": 4}
    assert sorted(row for rows in split.values() for row in rows) == list(range(20))
    kinds = np.unique(matrix, axis=0, return_inverse=True)[1].ravel()
    assert all(np.bincount(kinds[rows]).tolist() == [len(rows) // 2] * 2 for rows in split.values())
    assert "12 + 4 + 4 rows" in messages[0]


def test_a_validation_part_is_carved(tmp_path: Path) -> None:
    for task, text, fields in (("tagging", COLUMNS, {"scheme": "bio"}), ("srl", ROLES, {})):
        path = written(tmp_path / "x.conll", twenty(text))
        carved = loaded(task, train=path, test=path, **fields)
        assert [len(carved.part(name)) for name in ("train", "validation", "test")] == [16, 4, 20]
        assert "4 of the 20 rows" in carved.protocol()["split"]["validation"]
        assert any("4 of the 20" in note for note in carved.notes())
        assert any(note.startswith("warning: the train part") for note in carved.notes())


@pytest.mark.parametrize(
    ("task", "corpus"), [("tagging", "pos"), ("srl", "sample"), ("e2e.arcs", "sample"), ("propbank.senses", "sample")]
)
def test_files_that_a_task_requires(task: str, corpus: str) -> None:
    for fields, message in (
        ({}, rf"neither corpus nor train; expected task\.corpus \('{corpus}'.*\), task\.file, or task\.train"),
        ({"train": "x"}, r"task\.validation: found no file.*split off"),
        ({"corpus": corpus, "train": "x"}, rf"task: found corpus '{corpus}', and task\.train names a file.*data=files"),
        ({"file": "x", "split": "y", "test": "z"}, r"task\.file, alone or with task\.split"),
    ):
        with pytest.raises(sp.ConfigError, match=message):
            loaded(task, **fields)


CITATIONS = "<author> A. Writer@. </author> <title> Of @. </title>\n<title> On @, </title> <date> 199? </date>\n"
SENSES = "".join(
    f'{{"words": ["She@", "{word}"], "predicate": 1, "sense": "{sense}", "tags": ["B-ARG0", "B-V"]}}\n'
    for word, sense in (("ran", "run.01"), ("sees", "see.02"))
)
ARFF = "@relation r\n@attribute x numeric\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n"
SINGLE_FILES = {
    "CSV of 0 and 1": ("multilabel", twenty(TABLE, 1), {"labels": "t_*", "drop": "x"}),
    "CSV of the last columns": ("multilabel", twenty(TABLE, 1), {"label_count": 2}),
    "texts and lists": (
        "text",
        twenty("n,body,tags\n1,a@ b,x;y\n2,c@,\n", 1),
        {
            "text": "body",
            "labels": "tags",
            "separator": ";",
            "words": "blanks",
            "lowercase": False,
        },
    ),
    "texts and columns": (
        "text",
        twenty("body,is_a,is_b,is_c\na@ b,1,0,5\nc@,0,1,6\n", 1),
        {
            "labels": "is_*",
            "drop": ["is_c"],
        },
    ),
    "texts without a header": ("text", twenty("a@ b\tx,y\nc@\tx\n"), {}),
    "tags": ("tagging", twenty(COLUMNS), {"scheme": "bio"}),
    "tags of a column": ("tagging", twenty(COLUMNS), {"tags": 1}),
    "tags and words of columns": (
        "tagging",
        "".join(f"s\t1\tAnn{n}\tX\ns\t2\tgoes\tY\n\n" for n in "abcdefghijklmnopqrst"),
        {"words": 2, "tags": 3},
    ),
    "tags of CoNLL-U": ("tagging", twenty(CONLLU), {"tags": "xpos"}),
    "predicates": ("tagging", twenty(ROLES), {"scheme": "bio", "format": "predicates"}),
    "roles": ("srl", twenty(ROLES), {}),
    "arcs": ("e2e.arcs", twenty(ROLES), {}),
    "senses": ("propbank.senses", twenty(SENSES), {}),
    "citations": ("implicit.citations", twenty(CITATIONS), {}),
    "trees": ("infnet.parsing", twenty(TREES), {}),
    "ARFF": ("multilabel", ARFF + "".join(f"{n},{n % 2},{n // 2 % 2}\n" for n in range(30)), {"label_count": 2}),
}
"""Task, file and settings."""


@pytest.mark.parametrize("name", SINGLE_FILES)
def test_one_file_is_divided_as_spen_data_split_divides_it(tmp_path: Path, name: str) -> None:
    kind, text, fields = SINGLE_FILES[name]
    path = Path(written(tmp_path / "mine.txt", text))
    keys = ColumnKeys.from_config(parsed("task", kind, **fields)[1]).settings()
    messages: list[str] = []
    split = split_file(path, say=messages.append, **keys)
    tasks = [loaded(kind, file=str(path), **extra, **fields) for extra in ({}, {"split": str(split)})]
    assert str(split) in tasks[1].checksums()
    if kind in ("tagging", "srl"):
        assert tasks[1].protocol()["split"] == {"file": str(path), "rows": str(split)}
        assert [len(tasks[1].part(part)) for part in sp.PARTS] == [12, 4, 4]
    by_default, by_split = (
        {part: [task.show(example) for example in task.part(part)] for part in ("train", "validation", "test")}
        for task in tasks
    )
    assert by_default == by_split and all(by_default.values())
    protocol = str(tasks[0].protocol()["split"])
    command = " ".join(["spen data split", str(path), ColumnKeys.from_settings(keys).spelled()]).strip()
    assert f"seed 0; `{command}` writes the same rows, for split={split}" in protocol
    assert messages[-1] in protocol and any(f"`{command}`" in note for note in tasks[0].notes())
    assert loaded(kind, file=str(path), **fields).protocol() == tasks[0].protocol()


def test_a_runs_parts_are_reproduced(tmp_path: Path) -> None:
    """`spen evaluate --part test` uses the rows that the run was tested on."""
    path = tmp_path / "mine.csv"
    path.write_text("text,labels\n" + "".join(f"it is {'abc'[n % 3]}{n} today,{'xyz'[n % 3]}\n" for n in range(40)))
    arguments = {"data": str(path), "method": "cross_entropy", "trainer.epochs": "1"}
    folder = trained("texts", tmp_path / "run", **arguments)
    metrics = json.loads((folder / "metrics.json").read_text())
    evaluation = sp.load(folder).evaluate_file(part="test")
    assert evaluation["scores"]["example_f1"] == metrics["test"]["example_f1"]
    assert f"`spen data split {path}` writes the same rows" in metrics["protocol"]["split"]


def test_large_files_are_not_divided(tmp_path: Path) -> None:
    columns = {"text": [f"it is{chr(97 + n) * 2}" for n in range(26)], "labels": [["a"], ["b"]] * 13}
    path = str(parquet_file(tmp_path / "x.parquet", columns))
    loaded("text", file=path)
    with pytest.raises(sp.ConfigError, match=r"task\.validation: .*x\.parquet stays on disk \(.*name a validation"):
        loaded("text", file=path, on_disk=True)


@pytest.mark.parametrize(
    ("text", "keys", "error", "message"),
    [
        ("just words\nand more words than that\n", {}, sp.DataError, "one of these formats: Parquet .*; TSV .*; CSV"),
        (twenty(TABLE, 1), {}, sp.ConfigError, "the columns x, word, t_a, t_b: which of them"),
        ("x\tt_a\tt_b\n" + "2.5\t1\t0\n" * 9, {}, sp.ConfigError, "TSV with the columns x, t_a, t_b: which of them"),
        ("text\tt_a\tt_b\n" + "one\t1\t0\n" * 9, {}, sp.ConfigError, "the columns text, t_a, t_b: which of them"),
        (
            '[{"text": "a", "labels": ["x"]}, {"text": "b", "labels": []}]',
            {},
            sp.DataError,
            "found one JSON list; expected",
        ),
        ('[\n {\n  "text": "a, b"\n }\n]', {}, sp.DataError, "found one JSON list; expected one of these formats"),
        (twenty(COLUMNS), {"labels": 1}, sp.ConfigError, "labels=: .* is read as columns, .*; tags= names the tags"),
        (twenty(TEXTS, 1), {"tags": 1}, sp.ConfigError, "tags=: .* is read as CSV, which has no word tags"),
        (
            twenty("id,note,t_a\n1,so @ it is,1\n2,go @ on,0\n", 1),
            {"labels": "t_*"},
            sp.DataError,
            "or pass text= and labels= with the column names",
        ),
        (twenty(TEXTS, 1), {"label": "x"}, sp.ConfigError, "Unknown key 'label'. Did you mean 'labels'"),
        (twenty(COLUMNS), {"tags": "ner"}, sp.ConfigError, "expected the number of a column"),
        (twenty(COLUMNS), {"label_count": 2}, sp.ConfigError, "label_count=: .* is read as columns"),
        (COLUMNS, {}, sp.DataError, "found 2 rows; expected more rows"),
        ("1 1:2\n2 1:3\n", {"label_count": 2}, sp.ConfigError, "labels of .* are not columns"),
        (twenty(TABLE, 1), {"labels": "q_*"}, sp.ConfigError, "no column of .* begins with 'q_'"),
    ],
)
def test_files_that_cannot_be_split(tmp_path: Path, text: str, keys: dict, error: type, message: str) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(error, match=message):
        split_file(path, **keys)
    assert list(tmp_path.iterdir()) == [path]


def test_columns_that_are_not_labels_may_hold_anything(tmp_path: Path) -> None:
    columns = {"when": [[n] for n in range(20)], "t_a": [0, 1] * 10, "t_b": [1, 0] * 10}
    path = parquet_file(tmp_path / "x.parquet", columns)
    for keys in ({"labels": "t_*"}, {"label_count": 2}):
        matrix, description, _ = read_strata(path, ColumnKeys(**keys))
        assert matrix.tolist() == [[False, True], [True, False]] * 10 and description.startswith("read as Parquet")


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("cell", ["NA", "NaN", "null"])
def test_a_split_warns_about_cells_that_training_rejects(tmp_path: Path, separator: str, cell: str) -> None:
    path, messages = tmp_path / "x.csv", []
    rows = ["age,t_a,t_b", *(f"{n}.5,{n % 2},{1 - n % 2}" for n in range(20)), f"{cell},0,1"]
    path.write_text("\n".join(rows).replace(",", separator))
    split_path = split_file(path, labels="t_*", say=messages.append)
    assert len(messages) == 2 and messages[0].startswith("warning: ")
    message = str(path) + rf":22: found '{cell}' in column 'age'; expected .* an empty cell .*drop=age"
    assert re.search(message, messages[0])
    with pytest.raises(sp.DataError, match=message):
        loaded("multilabel", file=str(path), split=str(split_path), labels="t_*")
    loaded("multilabel", file=str(path), split=str(split_path), labels="t_a", drop=["age"])
    path.write_text("\n".join(rows[:-1]).replace(",", separator))
    assert read_strata(path, ColumnKeys(labels="t_*"), warn=messages.append)[0].shape == (20, 2) and len(messages) == 2


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("head", ["text,labels", "label,sentence", "id,text,labels"])
def test_a_header_is_not_a_row(tmp_path: Path, separator: str, head: str) -> None:
    names = head.split(",")
    rows = [[f"{name[0]}{n % 2 if name[0] == 'l' else n}" for name in names] for n in range(30)]
    path = tmp_path / "x"
    path.write_text("".join(separator.join(row) + "\n" for row in [names, *rows]))
    matrix = read_strata(path, ColumnKeys()).labels
    assert matrix.shape == (30, 2)


def split_inputs(path: Path, inputs: list, **keys) -> tuple[list[set], list[str]]:
    """The inputs of each part of a file's split, and the messages."""
    messages: list[str] = []
    split = json.loads(split_file(path, say=messages.append, **keys).read_text())
    return [{inputs[row] for row in rows} for rows in split.values()], messages


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize("key", ["{:05d}", "ticket-{:x}-of-the-shop", "12:{:02d}"])
def test_texts_are_the_column_that_a_run_reads(tmp_path: Path, separator: str, key: str) -> None:
    comments = [f"the {'abcdefghijklmnopqrst'[n * 7 % 20]} train was late" for n in range(60)]
    rows = [[key.format(n), comments[n], "good" if n % 3 else "bad"] for n in range(60)]
    path = tmp_path / "x.txt"
    path.write_text("".join(separator.join(row) + "\n" for row in [["uid", "comment", "mood"], *rows]))
    for keys in ({"text": "comment"}, {"drop": "uid"}, {"text": 2}):
        parts, messages = split_inputs(path, comments, labels="mood", **keys)
        assert sum(map(len, parts)) == 20 and "texts in column 'comment'" in messages[0]
    message = "found columns uid, comment, mood; expected a header with a text column named 'text'"
    with pytest.raises(sp.DataError, match=message):
        split_file(path, labels="mood")
    with pytest.raises(sp.DataError, match=message):
        loaded("text", file=str(path), labels="mood")


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_a_column_named_text_is_the_whole_input(tmp_path: Path, form: str) -> None:
    texts = ["stop", "go on"] * 10 + [f"word{'abcdefghij'[n % 10]} here" for n in range(40)]
    columns = {"ticket": list(range(60)), "Text": texts, "is_a": [n % 2 for n in range(60)], "is_b": [0, 0, 1] * 20}
    path = tmp_path / f"x.{form}"
    if form == "parquet":
        parquet_file(path, columns)
    else:
        rows = [columns, *zip(*columns.values(), strict=True)]
        path.write_text("".join(("," if form == "csv" else "\t").join(map(str, row)) + "\n" for row in rows))
    parts, messages = split_inputs(path, texts, labels="is_*")
    assert sum(map(len, parts)) == 12 and len(messages) == 1 and "texts in column 'Text'" in messages[0]


def test_a_column_that_numbers_the_rows_is_not_an_input(tmp_path: Path) -> None:
    ages = [n * 7 % 20 for n in range(60)]
    for name, notes in (("Id", ["column 'Id' is ignored: its values all differ"]), ("day", [])):
        path = tmp_path / f"{name}.csv"
        path.write_text(f"{name},age,t_a\n" + "".join(f"k{n},{age},{n % 2}\n" for n, age in enumerate(ages)))
        parts, messages = split_inputs(path, ages, labels="t_a")
        assert messages[:-1] == notes
        assert (sum(map(len, parts)) == 20) == bool(notes)


def test_a_file_with_parts_of_speech_too_is_divided_by_its_entities(tmp_path: Path) -> None:
    """The scheme chooses them; the command that the run prints names it."""
    path = tmp_path / "x.csv"
    rows = "".join(f"{i},Ann{i},N,{'B-PER' if i % 5 == 0 else 'O'}\n{i},left,N,O\n" for i in range(40))
    path.write_text(f"sentence_id,word,pos,tag\n{rows}")
    task = loaded("tagging", file=str(path), scheme="bio")
    [note] = [note for note in task.notes() if "spen data split" in note]
    assert "stratified by 2 tags" in note and "scheme=bio" in note
    counts = [sum("B-PER" in example.names for example in task.part(part)) for part in ("train", "validation", "test")]
    assert min(counts) > 0 and sum(counts) == 8
    notes: list[str] = []
    split = json.loads(split_file(path, say=notes.append, scheme="bio").read_text())
    assert [len(task.part(part)) for part in ("train", "validation", "test")] == [len(split[name]) for name in split]
    assert "stratified by 2 tags" in notes[-1]


def test_texts_with_empty_lines_are_not_read_as_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("id\ttext\tlabels\n" + "".join(f"{i}\tword{chr(97 + i)}\t{'ab'[i % 2]}\n\n" for i in range(20)))
    task = loaded("text", file=str(path))
    assert sum(len(task.part(part)) for part in ("train", "validation", "test")) == 20


def test_another_split_is_replaced_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text(twenty(COLUMNS))
    notes: list[str] = []
    for seed, warnings in ((0, 0), (0, 0), (1, 1)):
        split_file(tmp_path / "x.conll", seed=seed, say=notes.append)
        assert sum("replaced a different split" in note for note in notes) == warnings
