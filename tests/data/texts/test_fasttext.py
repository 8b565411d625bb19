"""fastText files, and label columns before texts: they are read, or the error says what to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from spen_plugins.data.parts.split import split_file
from spen_plugins.data.texts.labelled_texts import read_texts
from spen_plugins.data.texts.text_columns import Layout, Row
from spen_plugins.errors import DataError
from tests.loaded import loaded

LINES = [
    "__label__sport __label__music the band sang, and the team won",
    "__label__sport\tthe team lost",
    "__label__music, a song",
    "__label__art,__label__film a picture",
    "a goal late __label__sport",
]
SENTENCES = ["the team won the final game", "a song about the sea and rain", "they sang and then played on"]
TOPICS = ["sport", "music", "music sport"]


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["x.txt", "x.tsv", "x.csv", "x.train"])
def test_labels_lose_their_prefix(tmp_path: Path, name: str) -> None:
    texts = read_texts(write_lines(tmp_path / name, [*LINES, "no label here"]), Layout())
    assert texts.description == "fastText"
    assert [row.labels for row in texts.rows] == [
        ("sport", "music"),
        ("sport",),
        ("music",),
        ("art", "film"),
        ("sport",),
        (),
    ]
    assert [row.text for row in texts.rows[:3]] == ["the band sang, and the team won", "the team lost", "a song"]
    assert [row.text for row in texts.rows[3:]] == ["a picture", "a goal late", "no label here"]


def test_without_gold_a_line_may_lack_labels(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.txt", [LINES[0], "", "no label here"])
    assert [row.labels for row in read_texts(path, Layout(), gold=False).rows] == [("sport", "music"), None, None]
    assert {row.labels for row in read_texts(path, Layout(), gold=None).rows} == {None}
    assert [row.line for row in read_texts(path, Layout()).rows] == [1, 3]


def test_a_task_reads_fasttext_files(tmp_path: Path) -> None:
    file = str(write_lines(tmp_path / "x.txt", LINES * 2))
    task = loaded("text", train=file, validation=file)
    assert task.space.labels == ["art", "film", "music", "sport"]
    assert f"{file}: read as fastText (10 texts)" in task.notes()
    assert [example.gold.tolist() for example in task.read(file)[:2]] == [[2, 3], [3]]
    plain = write_lines(tmp_path / "y.txt", ["one, text", "two, texts"])
    assert [(example.text, example.gold) for example in task.read(str(plain))] == [
        ("one, text", None),
        ("two, texts", None),
    ]


def test_splits_of_fasttext_files_are_stratified_by_labels(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.txt", [f"{line} {'so ' * n}" for n in range(12) for line in LINES])
    notes: list[str] = []
    split_file(path, tmp_path / "split.json", say=notes.append)
    assert any("read as fastText, stratified by 4 labels" in note for note in notes)


@pytest.mark.parametrize(
    "lines", [["a text about __label__ marks\tjoy", "another text\tfear"], ["text,label", "one,__label__a"]]
)
def test_other_files_are_not_taken_for_fasttext(tmp_path: Path, lines: list[str]) -> None:
    assert read_texts(write_lines(tmp_path / "x", lines), Layout()).description != "fastText"


def test_named_columns_take_precedence_over_fasttext(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.tsv", ["__label__a\ta text", "__label__b\tmore text"])
    assert read_texts(path, Layout(text=2, labels=1)).rows[0] == Row("a text", ("__label__a",), 1)


def swap_columns(separator: str, label_separator: str = " ") -> list[str]:
    rows = [(TOPICS[n % 3].replace(" ", label_separator), f"{SENTENCES[n % 3]} {n}") for n in range(9)]
    return [separator.join(row) for row in rows]


@pytest.mark.parametrize(("separator", "label_separator"), [("\t", " "), ("\t", ";"), (",", " "), (";", "|")])
def test_the_error_for_labels_before_texts_names_the_settings(
    tmp_path: Path, separator: str, label_separator: str
) -> None:
    path = write_lines(tmp_path / "x.txt", swap_columns(separator, label_separator))
    for layout in (Layout(), Layout(separator=label_separator)):
        with pytest.raises(DataError, match=r"x\.txt:1: found labels before texts, as in 'sport'; .* text=2 labels=1"):
            read_texts(path, layout)
    texts = read_texts(path, Layout(text=2, labels=1, separator=label_separator))
    assert texts.rows[2] == Row("they sang and then played on 2", ("music", "sport"), 3)
    assert read_texts(path, Layout(header=False)).rows[0].text == "sport"


@pytest.mark.parametrize(
    "lines",
    [
        [f"{SENTENCES[n % 3]} {n}\t{TOPICS[n % 2]}" for n in range(9)],
        [f"red shoes {n}\tThings to wear, Footwear of the year {n}, Red and other colours" for n in range(9)],
        [f"word{n}\ta label of several words {n}" for n in range(9)],
        ["sport\tmusic"] * 9,
    ],
    ids=["labels", "many labels", "short texts", "words"],
)
def test_texts_before_labels_stay_tsv(tmp_path: Path, lines: list[str]) -> None:
    assert read_texts(write_lines(tmp_path / "x.tsv", lines), Layout()).description == "TSV"


def test_a_run_with_named_columns_reads_fasttext_files_without_them(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.txt", ["__label__a a text, with commas", "__label__b the body, too"])
    for layout in (Layout("body", "tags"), Layout("body", ["a", "b"]), Layout("body", "is_*"), Layout(drop=("id",))):
        assert read_texts(path, layout, gold=False).rows[0] == Row("a text, with commas", ("a",), 1)
    table = write_lines(tmp_path / "x.csv", ["body,tags", "__label__a one,x", "__label__b two,y"])
    assert read_texts(table, Layout("body", "tags")).rows[0] == Row("__label__a one", ("x",), 2)
