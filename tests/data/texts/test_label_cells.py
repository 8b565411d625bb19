"""Labels in cells: lists written as text, other separators, lists of 0 and 1; and rows with a stray tab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spen_plugins.data.parts.strata import read_strata
from spen_plugins.data.tables.label_cells import LabelCells
from spen_plugins.data.tables.label_columns import ColumnKeys
from spen_plugins.data.texts.labelled_texts import read_texts
from spen_plugins.data.texts.text_columns import Layout
from spen_plugins.errors import DataError
from tests.loaded import in_memory, loaded, parquet_file

TEXTS = ("a fine day", "rain again", "no wind", "sun at last")


def write_labels(folder: Path, kind: str, labels: list[Any], texts: tuple[str, ...] = TEXTS) -> Path:
    """A file of texts with these labels."""
    path = folder / f"x.{kind}"
    rows = list(zip(texts, labels, strict=True))
    if kind == "parquet":
        parquet_file(path, {"text": texts, "labels": labels})
    elif kind == "jsonl":
        path.write_text("".join(json.dumps({"text": text, "labels": cell}) + "\n" for text, cell in rows))
    elif kind == "tsv":
        path.write_text("".join(f"{text}\t{cell}\n" for text, cell in rows))
    else:
        quoted = ((text, cell.replace('"', '""')) for text, cell in rows)
        path.write_text("text,labels\n" + "".join(f'"{text}","{cell}"\n' for text, cell in quoted))
    return path


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("['joy', 'it''s']", None),
        ("['joy', \"it's\"]", ("joy", "it's")),
        ('["joy", "gr\\u00fcn"]', ("joy", "grün")),
        ("['joy' 'awe']", ("joy", "awe")),
        ("[]", ()),
        ("[3, 17]", ("3", "17")),
        ("joy, awe", ("joy", "awe")),
        ("joy,", ("joy",)),
        ("[joy], awe", ("[joy]", "awe")),
        ("[joy, awe]", None),
        ("[0 1 0]", None),
        ("1,0,0", None),
        ("1,0", ("1", "0")),
        ("{'sun', 'warm'}", ("sun", "warm")),
        ("('sun',)", ("sun",)),
        ('("sun", "warm")', ("sun", "warm")),
        ("(1)", ("(1)",)),
        ("{sun}", ("{sun}",)),
    ],
)
def test_a_cell(cell: str, labels: tuple[str, ...] | None) -> None:
    cells = LabelCells(Path("x"), None)
    if labels is not None:
        assert cells.read(7, cell) == labels
    else:
        with pytest.raises(DataError, match=r"x:7: found labels .*; expected (a list such as|label names)"):
            cells.read(7, cell)


def test_pairs_of_0_and_1_are_not_labels() -> None:
    cells = LabelCells(Path("x"), None)
    for line, pair in enumerate((["0", "1"], ["1", "0"]), 1):
        cells.read(line, pair)
    with pytest.raises(DataError, match="x:2: found labels '1, 0', a list of 0 and 1"):
        cells.check()
    cells.read(3, ["1"])  # numbers of labels
    cells.check()


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_lists_written_as_text_are_read(tmp_path: Path, kind: str) -> None:
    path = write_labels(tmp_path, kind, ["['sun', 'warm']", "['wet']", "[]", "['sun']"])
    expected = [("sun", "warm"), ("wet",), (), ("sun",)]
    for separator in (None, ";"):
        assert [row.labels for row in read_texts(path, Layout(separator=separator)).rows] == expected
    matrix, description, _ = read_strata(path, ColumnKeys())
    assert matrix.sum(0).tolist() == [2, 1, 1] and "3 labels" in description


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("separator", [";", "|", " "])
def test_another_separator_is_an_error_that_names_it(tmp_path: Path, kind: str, separator: str) -> None:
    path = write_labels(tmp_path, kind, ["warm", f"sun{separator}warm", "sun", f"odd{separator}one"])
    line = 3 if kind == "csv" else 2
    message = rf'x\.{kind}:{line}: found label .sun.warm. beside .sun. and .warm.; .* pass "separator=[{separator}]" '
    with pytest.raises(DataError, match=message):
        read_texts(path, Layout())
    joined = [row.labels for row in read_texts(path, Layout(separator=",")).rows]
    assert joined == [("warm",), (f"sun{separator}warm",), ("sun",), (f"odd{separator}one",)]
    assert [row.labels for row in read_texts(path, Layout(), gold=False).rows] == joined  # a run knows its labels
    assert read_texts(path, Layout(separator=separator)).rows[3].labels == ("odd", "one")
    assert read_strata(path, ColumnKeys(separator=","))[0].shape == (4, 4)
    with pytest.raises(DataError, match=message):
        read_strata(path, ColumnKeys())


def test_labels_in_lists_or_a_label_file_may_contain_a_separator(tmp_path: Path) -> None:
    labels = ["science", "fiction", "science fiction", "science|fiction"]
    lists = write_labels(tmp_path, "jsonl", [[label] for label in labels])
    assert [row.labels for row in read_texts(lists, Layout()).rows] == [(label,) for label in labels]
    path, names = write_labels(tmp_path, "tsv", labels), tmp_path / "names.txt"
    names.write_text("\n".join(labels))
    assert loaded("text", train=str(path), validation=str(path), labels=str(names)).space.labels == labels


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_lists_of_0_and_1_are_rejected(tmp_path: Path, kind: str) -> None:
    path = write_labels(tmp_path, kind, [[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 0, 0]])
    for gold in (True, False):
        with pytest.raises(DataError, match=r":1: found labels '1, 0, 1', a list of 0 and 1; expected label names"):
            read_texts(path, Layout(), gold=gold)
    numbers = write_labels(tmp_path, kind, [[1, 0], [2], [], [0]])
    assert [row.labels for row in read_texts(numbers, Layout()).rows] == [("1", "0"), ("2",), (), ("0",)]


@pytest.mark.parametrize(
    ("text", "gold", "line", "message"),
    [
        ("one\tx\ntwo\twords\ty\nthree\tx\n", True, 2, r"3 cells in 'two.twords.ty'; expected 2, as in the first line"),
        ("one\tx\ntwo\twords\ty\nthree\tx\n", False, 2, "3 cells .*; expected 2"),
        ("one\tx\ntwo\twords\ty\nthree\tx\n", None, 2, "3 cells .*; expected 2"),
        ("one\tx\t1\ntwo\ty\n", True, 2, "2 cells .*; expected 3, .* separated by tabs"),
        ("text\tlabels\none\tx\ntwo\twords\ty\n", True, 3, "3 cells .*; expected 2"),
    ],
)
def test_ragged_tsv_is_rejected(tmp_path: Path, text: str, gold: bool | None, line: int, message: str) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"x\.tsv:{line}: found {message}"):
        read_texts(path, Layout(), gold)


def test_a_run_names_its_labels(tmp_path: Path) -> None:
    path = str(write_labels(tmp_path, "tsv", ["b", "a,b", "", "c"]))
    assert "3 labels (a, b, c)" in loaded("text", train=path, validation=path).notes()
    train = (["x"] * 12, [[f"l{n:02}"] for n in range(12)])
    many = in_memory("text", {"train": train, "validation": (["x"], [["l00"]])})
    assert not any("consists of" in note for note in many.notes())
    train = (["x"] * 3, [["a|b"], ["a"], ["b"]])
    joined = in_memory("text", {"train": train, "validation": (["x"], [["a"]])})
    assert any(note.startswith("warning: label 'a|b' consists of other labels") for note in joined.notes())
    assert f"12 labels ({', '.join(f'l{n:02}' for n in range(10))}, …)" in many.notes()
    cased = in_memory("text", {"train": (["x"] * 3, [["Good"], ["bad"], ["good"]]), "validation": (["x"], [["bad"]])})
    assert any(note.startswith("warning: labels 'Good' and 'good' differ only in capitals") for note in cased.notes())
    assert not any("capitals" in note for note in joined.notes())
