"""`spen annotate`: rows of every format, resumed jobs, rejected changes, documents that fail, engines."""

from __future__ import annotations

import csv
import gzip
import io
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
import spacy
from pyarrow import parquet
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from typer.testing import CliRunner

import spen_plugins as sp
from spen_plugins.cli.main import app
from spen_spacy.annotate import engines, fields, on_ray, progress, shards
from spen_spacy.annotate.finding import find_sources
from spen_spacy.annotate.pipeline import Pipeline, find_pipeline
from spen_spacy.annotate.plan import Job, Plan, Shard, read_or_make_plan
from spen_spacy.annotate.shards import Done
from spen_spacy.annotate.sources import Document, Piece, Reader, Source
from tests.loaded import of_six_digits

TEXTS = [
    "Anna went to Boston.",
    "Nobody came. It rained.",
    "Paris 😀 is large.",
    "Anna",
    "To Boston, to Paris",
    "é" * 40,
]
NAMES = {"Anna": "PER", "Boston": "LOC", "Paris": "LOC"}
Annotate = Callable[..., list[dict[str, Any]]]


@Language.component("test_annotate_fails", assigns=["doc._.test_length"])
def annotate_length(doc: Doc) -> Doc:
    if "explode" in doc.text:
        raise ValueError("it exploded")
    doc.user_data["test_length"] = {"words": len(doc)}
    return doc


def read_length(doc: Doc) -> dict[str, int]:
    if "unreadable" in doc.text:
        raise ZeroDivisionError("no length")
    return doc.user_data["test_length"]


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline of rules for names and sentences, with a component that can fail."""
    if not Doc.has_extension("test_length"):
        Doc.set_extension("test_length", getter=read_length)
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": label, "pattern": name} for name, label in NAMES.items()])
    nlp.add_pipe("test_annotate_fails")
    nlp.to_disk(folder := tmp_path_factory.mktemp("pipelines") / "rules")
    return folder


@pytest.fixture(autouse=True, scope="module")
def loaded_once() -> Iterator[None]:
    """Caches loaded pipelines: loading takes most of the time of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pipeline, "load", cache(Pipeline.load))
        yield


@pytest.fixture
def rows(pipeline: Path, tmp_path: Path) -> Annotate:
    """Annotates files and returns the rows, from all shards in order."""

    def run(*inputs: Path, out: str = "out", **options: Any) -> list[dict[str, Any]]:
        folder = tmp_path / out
        result = invoke(pipeline, *inputs, out=folder, **options)
        assert result.exit_code == 0, result.output
        if options.get("to") == "jsonl":
            return [row for path in sorted(folder.glob("*.jsonl")) for row in parse_lines(path.read_text("utf-8"))]
        return [row for path in sorted(folder.glob("*.parquet")) for row in parquet.read_table(path).to_pylist()]

    return run


def invoke(pipeline: object, *inputs: object, out: Path, **options: Any) -> Any:
    words = [word for key, value in options.items() for word in (f"--{key.strip('_').replace('_', '-')}", str(value))]
    return CliRunner().invoke(app, ["annotate", str(pipeline), *map(str, inputs), "--out", str(out), *words])


def parse_lines(text: str) -> list[dict[str, Any]]:
    """Returns the rows of JSON lines, which must be strict JSON."""
    return [json.loads(line, parse_constant=pytest.fail) for line in text.removesuffix("\n").split("\n")]


def get_error(*arguments: Any, **options: Any) -> str:
    result = invoke(*arguments, **options)
    assert result.exit_code in (1, 2) and isinstance(result.exception, SystemExit), result.output
    return " ".join(result.output.split())


def write_text_file(folder: Path, texts: list[str] = TEXTS) -> Path:
    (path := folder / "corpus.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


# Formats.


def test_whole_numbers_are_kept_exactly() -> None:
    large = 2**53 + 1
    assert fields.as_columns({"id": large, "n": 3}, {"id": "double", "n": "double"}, {"id": "id", "n": "n"}) == {
        "n": 3,
        fields.OTHER: f'{{"id": {large}}}',
    }
    assert fields.make_plain({"id": 10**30, "n": -(2**63)}) == {"id": str(10**30), "n": -(2**63)}


@pytest.mark.parametrize("size", ["nan", "inf", "0", "-1", "5000"])
def test_invalid_shard_sizes_are_rejected(size: str, tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    message = get_error(tmp_path / "blank", write_text_file(tmp_path), out=tmp_path / "out", shard_size=size)
    assert "--shard-size: found" in message and "more than 0, at most 1024" in message


def test_numbers_that_are_not_json_are_null(tmp_path: Path) -> None:
    (path := tmp_path / "a.jsonl").write_text('{"text": "a", "more": {"x": NaN}}\n')
    spacy.blank("en").to_disk(tmp_path / "blank")
    assert invoke(tmp_path / "blank", path, out=tmp_path / "out").exit_code == 0
    [row] = parquet.read_table(tmp_path / "out").to_pylist()
    assert json.loads(row["more"], parse_constant=pytest.fail) == {"x": None}


def test_a_row_has_what_the_pipeline_sets(rows: Annotate, tmp_path: Path) -> None:
    (path := tmp_path / "a.txt").write_bytes(b"Anna went to Boston.\r\n\n \nIt rained. A lot.")
    one, other = rows(path)
    assert (one["input_file"], one["input_row"], one["text"]) == (str(path), 1, "Anna went to Boston.")
    assert one["tokens"] == ["Anna", "went", "to", "Boston", "."] and one["token_starts"] == [0, 5, 10, 13, 19]
    assert one["ents"] == [
        {"label": "PER", "text": "Anna", "start": 0, "end": 4, "score": None},
        {"label": "LOC", "text": "Boston", "start": 13, "end": 19, "score": None},
    ]
    assert json.loads(one["test_length"]) == {"words": 5} and one["error"] is None
    assert (other["input_row"], other["sentence_starts"], other["ents"]) == (4, [0, 11], [])


def test_all_formats_give_the_same_rows(rows: Annotate, tmp_path: Path, pipeline: Path) -> None:
    expected = rows(write_text_file(tmp_path))
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    parquet.write_table(pa.table({"text": TEXTS}), tmp_path / "a.parquet", row_group_size=2)
    nlp = spacy.blank("en")
    DocBin(docs=map(nlp.make_doc, TEXTS)).to_disk(tmp_path / "a.spacy")
    for suffix in ("jsonl", "parquet", "spacy"):
        output_rows = rows(tmp_path / f"a.{suffix}", out=suffix, shard_size=0.00003)
        for row, expected_row in zip(output_rows, expected, strict=True):
            row.pop("other_fields", None)
            assert row == expected_row | {"input_file": str(tmp_path / f"a.{suffix}")}
        assert len(list((tmp_path / suffix).glob("shard-*"))) > 2
    result = invoke(pipeline, tmp_path / "a.jsonl", out=tmp_path / "docs", to="docbin")
    assert result.exit_code == 0, result.output
    docs = list(DocBin().from_disk(tmp_path / "docs/shard-000000.spacy").get_docs(nlp.vocab))
    assert [doc.text for doc in docs] == TEXTS
    assert [[e.text for e in doc.ents] for doc in docs] == [[e["text"] for e in row["ents"]] for row in expected]
    assert docs[1].user_data["spen_input"]["row"] == 2


ROWS = [{"text": text, "id": str(number)} for number, text in enumerate([*TEXTS, 'two\nlines, "quoted"; and more'])]


def format_csv(separator: str) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, ["id", "text"], delimiter=separator, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(ROWS)
    return f"\ufeff{file.getvalue()}"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(ROWS, indent=1)),
        ("lines.json", "\n".join(map(json.dumps, ROWS))),
        ("texts.json", json.dumps([row["text"] for row in ROWS])),
        ("a.csv", format_csv(",")),
        ("b.csv", format_csv(";")),
        ("b.csv", format_csv("|")),
        ("a.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("a.txt", "\n".join(TEXTS)),
    ],
)
@pytest.mark.parametrize("end", ["", ".gz"])
def test_documents_of_each_format_in_pieces_of_any_size(tmp_path: Path, name: str, content: str, end: str) -> None:
    path = tmp_path / f"{name}{end}"
    path.write_bytes(gzip.compress(content.encode()) if end else content.encode())
    kind, [source], _ = find_sources([str(path)])
    reader, vocab = Reader(kind, "line", "text"), spacy.blank("en").vocab
    expected = TEXTS if name == "a.txt" else [row["text"] for row in ROWS]
    for size in (1, 30, 100, 10**6):
        pieces = [Piece(source, start, end, first) for start, end, first, _ in reader.cut(path, size)]
        documents = [document for piece in pieces for document in reader.read(piece, vocab)]
        assert [document.text for document in documents] == expected and len(pieces) > (size == 1)
        if kind != "text" and name != "texts.json":
            assert [document.fields for document in documents] == [{"id": row["id"]} for row in ROWS]
        assert [d.row for d in documents] == [n + (kind == "csv") for n in range(1, len(expected) + 1)]


def test_csv_and_json_become_rows(rows: Annotate, tmp_path: Path) -> None:
    (path := tmp_path / "a.csv").write_text('id,body\n7,"Anna, went"\n\n8\n9,"open" x\n10,It rained.\n')
    one, two, three, four = rows(path, text="body", errors="keep")
    assert (one["text"], one["id"], one["ents"][0]["text"], one["input_row"]) == ("Anna, went", "7", "Anna", 2)
    assert "a.csv:4: found 1 cell; expected 2" in two["error"] and "a.csv:5: found a record" in three["error"]
    assert (four["text"], four["id"], four["error"]) == ("It rained.", "10", None)
    (path := tmp_path / "q.tsv").write_text('id\ttext\n1\t"Hello" he said\n2\t"unclosed\n3\tAnna runs\n')
    assert [row["text"] for row in rows(path, out="tsv")] == ['"Hello" he said', '"unclosed', "Anna runs"]
    (path := tmp_path / "a.json").write_text('[{"text": "Anna", "n": 1}, 3, "Bob", {"text": "x", "new": {}, "n": 2.5}]')
    one, two, three, four = rows(path, out="json", errors="keep")
    assert (one["n"], three["text"], four["n"], four["new"]) == (1.0, "Bob", 2.5, "{}")
    assert "a.json:2: found '3'; expected a table" in two["error"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            b"id,body\n1,x\n",
            "no column 'text'; expected a header with it, or --text with one of ['id', 'body']",
        ),
        ("a.csv", b"text,id,id\nx,1,2\n", "two columns 'id'"),
        ("a.csv", b"text,\xff\n", "a.csv:1: found a header that is not UTF-8 text ('text', '\\udcff'); expected UTF-8"),
        ("a.csv", "text,id\n".encode("utf-16-le"), "a.csv:1: found a header that is not UTF-8 text"),
        ("a.csv", b"\x1b[31m,x\n", "'\\x1b[31m'"),
        ("a.json", b'{\n"text": "x"}', "a.json:1: found a line that is not JSON"),
        ("a.json", b'["x", ', "a file that is not JSON"),
        ("a.txt.gz", gzip.compress(b"Anna\n" * 999, mtime=0)[:-9], "a damaged gzip file"),
        ("a.txt", "Anna\nBob".encode("utf-16-le"), "a.txt:1: found a zero byte; expected UTF-8 text"),
        ("a.json", b'["Anna\\u0000"]', "found text: 'Anna\\x00'"),
        ("a.csv", b"text\n\xff\n", "a byte that is not UTF-8"),
    ],
)
def test_damaged_files_are_named(pipeline: Path, tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (path := tmp_path / name).write_bytes(content)
    assert message in get_error(pipeline, path, out=tmp_path / "out")


def test_a_header_may_have_any_printable_or_blank_mark(rows: Annotate, tmp_path: Path) -> None:
    (path := tmp_path / "a.csv").write_text('text,"two\nlines",no\u00a0break\nAnna,1,2\n')
    [row] = rows(path)
    assert (row["text"], row["two\nlines"], row["no\u00a0break"]) == ("Anna", "1", "2")


def test_values_of_parquet_that_python_lacks_are_rows_with_errors(
    rows: Annotate, pipeline: Path, tmp_path: Path
) -> None:
    damaged_texts = pa.array([b"Anna", b"\xff", b"Bob"], pa.binary())
    far_times = pa.array([0, 0, 10**15], pa.timestamp("s"))
    zoned_times = pa.array([None, 0, None], pa.timestamp("us", "Nowhere/Land"))
    for name, table in {
        "text": {"text": pa.Array.from_buffers(pa.string(), 3, damaged_texts.buffers())},
        "year": {"text": ["Anna", "x", "Bob"], "at": far_times},
        "zone": {"text": ["Anna", "x", "Bob"], "at": zoned_times},
    }.items():
        parquet.write_table(pa.table(table), path := tmp_path / f"{name}.parquet")
        number = 2 if name == "year" else 1
        output_rows = rows(path, out=name, errors="keep")
        assert [row["error"] is not None for row in output_rows] == [n == number for n in range(3)], name
        assert f"{path}:{number + 1}: found a value in column" in output_rows[number]["error"]
        assert f"{path}:{number + 1}: found a value" in get_error(pipeline, path, out=tmp_path / f"stop-{name}")


def test_a_docbin_that_lacks_a_string_has_one_damaged_doc(rows: Annotate, tmp_path: Path) -> None:
    docs = DocBin(docs=map(spacy.blank("en").make_doc, ["Anna went", "Xyzzyx went", "Bob went"]))
    docs.strings.discard("Xyzzyx")
    docs.to_disk(tmp_path / "a.spacy")
    one, two, three = rows(tmp_path / "a.spacy", errors="keep")
    assert (one["text"], two["text"], three["text"]) == ("Anna went", None, "Bob went")
    assert "a.spacy:2: found a damaged doc (KeyError" in two["error"]


def test_a_docbin_may_be_empty(rows: Annotate, tmp_path: Path) -> None:
    DocBin().to_disk(tmp_path / "a.spacy")
    DocBin(docs=[spacy.blank("en").make_doc("Anna went")]).to_disk(tmp_path / "b.spacy")
    assert [row["text"] for row in rows(tmp_path / "a.spacy", tmp_path / "b.spacy")] == ["Anna went"]


def test_the_output_may_lie_in_the_input(pipeline: Path, tmp_path: Path) -> None:
    (corpus := tmp_path / "corpus").mkdir()
    parquet.write_table(pa.table({"text": TEXTS}), corpus / "a.parquet")
    for pattern in (corpus, corpus, corpus / "**/*.parquet"):
        result = invoke(pipeline, pattern, out=corpus / "one")
        assert result.exit_code == 0, result.output
    assert len(parquet.read_table(corpus / "one")) == len(TEXTS)
    assert [source.name for source in find_sources([str(corpus)])[1]] == [str(corpus / "a.parquet")]
    assert find_sources([str(corpus / "one")])[0] == "parquet"  # as an explicit argument it is input
    assert "and no _plan.json; expected an empty or a new folder" in get_error(pipeline, corpus, out=corpus)


def test_a_file_name_that_is_not_utf_8_is_rejected(pipeline: Path, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"a\xff.txt")
    path.write_text("Anna\n")
    assert "a\\udcff.txt': found a name that is not UTF-8" in get_error(pipeline, tmp_path, out=tmp_path / "out")


def test_packages_that_are_no_pipelines_are_rejected(tmp_path: Path) -> None:
    path = write_text_file(tmp_path)
    for name in ("pytest", "numpy", "typer"):
        assert f"{name} can't be loaded by spaCy" in get_error(name, path, out=tmp_path / "out")


def test_other_fields_are_columns(rows: Annotate, tmp_path: Path) -> None:
    lines = [
        {"text": "Anna", "id": 1, "weight": 1, "tags": ["a"], "ents": "mine", "ok": True, "none": None},
        {"text": "Bob", "id": 2, "weight": 2.5, "tags": [], "input_ents": "x"},
        *({"text": "x"} for _ in range(fields.LOOKED_AT)),
        {"text": "Carl", "id": "late", "new": [1, {"a": None}]},
    ]
    (path := tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    one, two, *_, last = rows(path)
    assert (one["id"], one["weight"], one["tags"], one["ok"], one["none"]) == (1, 1.0, '["a"]', True, None)
    assert one["input_ents"] == "mine" and one["ents"][0]["label"] == "PER" and two["input_input_ents"] == "x"
    assert last["id"] is None and json.loads(last["other_fields"]) == {"id": "late", "new": [1, {"a": None}]}
    table = pa.table({"body": ["Anna"], "at": pa.array([10**15], pa.timestamp("us")), "n": pa.array([3], pa.uint8())})
    parquet.write_table(table, path := tmp_path / "a.parquet")
    [row] = rows(path, out="parquet", text="body", columns="ents")
    assert (row["text"], row["at"].year, row["n"], row["ents"][0]["text"]) == ("Anna", 2001, 3, "Anna")
    assert "tokens" not in row


def test_a_document_may_be_a_file(rows: Annotate, tmp_path: Path) -> None:
    (folder := tmp_path / "texts").mkdir()
    for number, text in enumerate(TEXTS):
        (folder / f"{number}.txt").write_text(f"{text}\n\nAnna\n", encoding="utf-8")
    (folder / "notes.md").write_text("not read")
    output_rows = rows(folder, documents="file", shard_size=0.0001)
    assert [row["text"] for row in output_rows] == [f"{text}\n\nAnna\n" for text in TEXTS]
    assert [row["input_file"] for row in output_rows] == [str(folder / f"{number}.txt") for number in range(len(TEXTS))]
    assert rows(folder / "*.txt", out="pattern", documents="file") == output_rows


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_pieces_of_any_size_hold_each_line_once(tmp_path: Path, end: str) -> None:
    data = "\n".join([*TEXTS, "", "  ", "last"]) + end
    (path := tmp_path / "a.txt").write_bytes(data.encode())
    reader, source, vocab = Reader("text", "line", "text"), Source(str(path), "a", 0, 0), spacy.blank("en").vocab
    expected = [(row, line) for row, line in enumerate(data.split("\n"), 1) if line.strip()]
    for size in range(1, len(data.encode()) + 2):
        pieces = [Piece(source, start, end, first) for start, end, first, _ in reader.cut(path, size)]
        documents = [(d.row, d.text) for piece in pieces for d in reader.read(piece, vocab)]
        assert documents == [(row, line.rstrip("\r")) for row, line in expected]


def test_rows_of_parquet_are_read_once(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"text": [str(i) for i in range(25)]}), tmp_path / "a.parquet", row_group_size=7)
    reader, vocab = Reader("parquet", "line", "text"), spacy.blank("en").vocab
    source = Source(str(tmp_path / "a.parquet"), "a", 0, 0)
    for size in (1, 20, 50, 90, 10**6):
        pieces = [Piece(source, start, end, row) for start, end, row, _ in reader.cut(Path(source.path), size)]
        documents = [(d.row, d.text) for piece in pieces for d in reader.read(piece, vocab)]
        assert documents == [(i + 1, str(i)) for i in range(25)]


def test_json_lines_have_what_parquet_has(rows: Annotate, tmp_path: Path) -> None:
    lines = [
        {"text": "Anna went to Boston.", "id": 7, "ents": "mine", "nested": {"a": [1, None]}, "far": 2**70},
        {"text": "explode", "id": "x"},
        {"text": "Paris 😀", "new": "\u2028"},
    ]
    (path := tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    json_rows, parquet_rows = (rows(path, out=to, to=to, errors="keep") for to in ("jsonl", "parquet"))
    annotations = ["input_file", "input_row", "text", "tokens", "token_starts", "sentence_starts", "ents", "error"]
    for row, other in zip(json_rows, parquet_rows, strict=True):
        assert {name: row[name] for name in annotations} == {name: other[name] for name in annotations}
    one, two, three = json_rows
    assert one["input_ents"] == "mine" and one["nested"] == {"a": [1, None]} and one["far"] == 2**70
    assert one["test_length"] == {"words": 5} and one["id"] == 7
    assert two["id"] == "x" and two["ents"] is None and "it exploded" in two["error"]
    assert set(three) == {*annotations, "new", "test_length"} and three["new"] == "\u2028"
    narrow_rows = rows(path, out="few", to="jsonl", columns="ents", errors="keep")
    assert list(narrow_rows[2]) == ["input_file", "input_row", "text", "new", "ents", "error"]


def test_numbers_of_parquet_that_json_lacks_are_null(rows: Annotate, tmp_path: Path) -> None:
    table = pa.table({"text": ["Anna"], "n": [float("nan")], "at": pa.array([10**9], pa.timestamp("s"))})
    parquet.write_table(table, path := tmp_path / "a.parquet")
    [row] = rows(path, to="jsonl")
    assert (row["n"], row["at"]) == (None, "2001-09-09 01:46:40")


def test_json_lines_are_printed_in_order(pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, options = write_text_file(tmp_path, [*TEXTS, "explode"]), {"to": "jsonl", "shard_size": 0.00004}
    assert invoke(pipeline, path, out=tmp_path / "out", errors="keep", **options).exit_code == 0
    expected = "".join(shard.read_text("utf-8") for shard in sorted((tmp_path / "out").glob("shard-*")))
    run_here = engines.run_here
    monkeypatch.setattr(engines, "run_here", lambda nlp, job, todo: run_here(nlp, job, todo[::-1]))
    monkeypatch.chdir(tmp_path)
    result = invoke(pipeline, path, out="-", errors="keep", **options)
    assert (result.exit_code, result.stdout) == (0, expected) and not (tmp_path / "-").exists()
    failed, total = result.stderr.splitlines()
    assert failed == "1 document failed (the key error says why)" and total.startswith("7 documents, ")
    monkeypatch.undo()
    failure = invoke(pipeline, path, out="-", **options)
    assert failure.exit_code == 1 and "it exploded)\nWith --errors keep, a document" in failure.stderr
    assert failure.stdout and expected.startswith(failure.stdout)


def test_formats_that_cannot_be_printed_are_rejected(pipeline: Path, tmp_path: Path) -> None:
    path = write_text_file(tmp_path)
    for to in ("parquet", "docbin"):
        assert f"--out -: found --to {to}; expected --to jsonl" in get_error(pipeline, path, out="-", to=to)
    assert "--out -: found --engine ray" in get_error(pipeline, path, out="-", to="jsonl", engine="ray")


def test_progress_within_a_shard(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("a.txt", "a.txt", 300, 0)
    plan = Plan({}, {}, [source], {}, 100, [Shard(n, (Piece(source, 100 * n, 100 * n + 100, 1),)) for n in range(3)])
    steps = [Done(1, 2, 10, 25, False), Done(2, 1, 10, 400, False), Done(1, 2, 10, 25, False), Done(1, 0, 0, 0, True)]
    monkeypatch.setattr(progress, "LINE_SECONDS", 0)
    summary = progress.follow((step for step in steps), plan, 2)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["1.2", "2.2", "2.5", "3.0"], "one shard was there; none is full"
    assert lines[-1].startswith("3.0 of 3 shards, 5 documents, 30 words in ") and summary.startswith("5 documents, ")


def test_an_input_without_documents_has_a_warning(pipeline: Path, tmp_path: Path) -> None:
    for text in ("", "\n \n"):
        (path := tmp_path / "empty.txt").write_text(text)
        result = invoke(pipeline, path, out=tmp_path / f"out{len(text)}")
        assert result.exit_code == 0 and result.stderr == "warning: found no documents in the input\n"
        assert invoke(pipeline, path, out="-", to="jsonl").stderr.startswith("warning: found no documents in the input")


def test_inputs_are_checked_before_the_pipeline_loads(
    pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path := tmp_path / "a.jsonl").write_text('{"body": "Anna"}\n', encoding="utf-8")
    monkeypatch.setattr(Pipeline, "load", lambda self: pytest.fail("loaded"))
    assert "no field 'text'" in get_error(pipeline, path, out=tmp_path / "out")


def test_a_closed_pipe_ends_the_job_quietly(job: tuple[Job, list[Shard]], tmp_path: Path) -> None:
    words = [Path(sys.executable).with_name("spen"), "annotate", tmp_path / "rules", tmp_path / "corpus.txt"]
    words += ["--to", "jsonl", "--out", "-", "--shard-size", "0.00005"]
    environment = os.environ | {"TMPDIR": str(tmp_path / "there")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert json.loads(process.stdout.readline())["text"] == TEXTS[0]
        process.stdout.close()
        assert process.stderr.read() == ""
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["_plan.json"]


# Stopped, killed, changed.


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
def test_a_job_killed_at_any_shard_can_be_resumed(
    rows: Annotate, pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    path, size = write_text_file(tmp_path, TEXTS * 2), 0.00004
    expected = rows(path, out="whole", shard_size=size, to=to)
    total = len(list((tmp_path / "whole").glob("shard-*")))
    assert total > 5 and [row["text"] for row in expected] == TEXTS * 2
    annotate_group = shards._annotate_group
    for number in range(total):
        remaining = number

        def annotate_or_stop(*arguments: Any) -> Iterator[Any]:
            nonlocal remaining
            remaining -= 1
            if remaining < 0:
                raise KeyboardInterrupt
            return annotate_group(*arguments)

        out = f"killed-{number}"
        with monkeypatch.context() as patch:
            patch.setattr(shards, "_annotate_group", annotate_or_stop)
            assert invoke(pipeline, path, out=tmp_path / out, shard_size=size, to=to).exit_code == 130
        modified = {p: p.stat().st_mtime_ns for p in (tmp_path / out).glob("shard-*")}
        assert len(modified) == number
        (tmp_path / out / f"shard-000000.{to}.0123abcd-99-{'0' * 16}.partial").touch()
        assert rows(path, out=out, to=to) == expected
        assert {p: p.stat().st_mtime_ns for p in modified} == modified
        assert {p.name for p in (tmp_path / out).iterdir()} == {p.name for p in (tmp_path / "whole").iterdir()}


def test_changed_inputs_and_options_are_rejected(pipeline: Path, tmp_path: Path, rows: Annotate) -> None:
    path, out = write_text_file(tmp_path), tmp_path / "out"
    rows(path, shard_size=0.0001)
    assert "found --text body; expected text" in get_error(pipeline, path, out=out, text="body")
    assert "found --columns ents; expected None" in get_error(pipeline, path, out=out, columns="ents")
    assert "found --shard-size 1; expected 0.0001" in get_error(pipeline, path, out=out, shard_size=1)
    (other := tmp_path / "b.txt").write_text("b")
    assert f"{other} is new, gone or changed" in get_error(pipeline, path, other, out=out)
    assert f"{path} is new, gone or changed" in get_error(pipeline, other, out=out)
    nlp = spacy.load(pipeline)
    nlp.get_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "Rome"}])
    nlp.to_disk(tmp_path / "changed")
    assert "found another pipeline, sha256" in get_error(tmp_path / "changed", path, out=out)
    os.utime(path, ns=(1, 1))
    message = get_error(pipeline, path, out=out)
    assert f"{path} is new, gone or changed" in message and f"or remove {out} to start again" in message
    (out / "_plan.json").write_text("{")
    assert "_plan.json is damaged" in get_error(pipeline, path, out=out)
    (out / "_plan.json").unlink()
    assert "and no _plan.json" in get_error(pipeline, path, out=out)


def test_partial_files_of_others_are_kept(pipeline: Path, tmp_path: Path, rows: Annotate) -> None:
    path, name = write_text_file(tmp_path), f"shard-000000.parquet.0123abcd-99-{'0' * 16}.partial"
    (rejected := tmp_path / "rejected").mkdir()
    for file in ("film.mkv.partial", name):
        (rejected / file).write_text("mine")
    assert "holds 'film.mkv.partial' and no _plan.json" in get_error(pipeline, path, out=rejected)
    assert {p.name for p in rejected.iterdir()} == {"film.mkv.partial", name}
    rows(path)
    for file in ("film.mkv.partial", name):
        (tmp_path / "out" / file).write_text("mine")
    assert "found --text body" in get_error(pipeline, path, out=tmp_path / "out", text="body")
    assert (tmp_path / "out" / name).exists()
    rows(path)
    assert (tmp_path / "out/film.mkv.partial").exists() and not (tmp_path / "out" / name).exists()


# Failures.


def test_a_folder_in_use_is_rejected(pipeline: Path, tmp_path: Path) -> None:
    with sp.locked(tmp_path / "out"):
        assert "is in use by process" in get_error(pipeline, write_text_file(tmp_path), out=tmp_path / "out")


def test_other_formats_must_be_declared_as_text(pipeline: Path, tmp_path: Path) -> None:
    for name in ("a.html", "a.pdf", "a.docx", "a", "a.bin", "a.parquet.gz", "a.csv.zip"):
        (path := tmp_path / name).write_bytes(b"<p>Anna\n")
        assert "or --from text" in get_error(pipeline, path, out=tmp_path / "out")
        assert find_sources([str(path)], "text")[0] == "text"


def test_files_of_unknown_formats_in_a_folder_are_named(pipeline: Path, tmp_path: Path) -> None:
    (corpus := tmp_path / "corpus").mkdir()
    for name in ("a.txt", "b.html", "c.md"):
        (corpus / name).write_text("Anna\n")
    (empty := tmp_path / "empty").mkdir()
    assert f"{empty}: found no file whose name ends in" in get_error(pipeline, corpus, empty, out=tmp_path / "out")
    note = f"skipped 2 of the files found, whose formats are unknown ({corpus / 'b.html'}, {corpus / 'c.md'})\n"
    assert invoke(pipeline, corpus, out=corpus / "out").stderr == note
    assert invoke(pipeline, corpus, out=corpus / "out").stderr == note  # the output is no input
    assert not invoke(pipeline, corpus, out=tmp_path / "all", from_="text").stderr
    assert not invoke(pipeline, corpus / "a.txt", out=tmp_path / "one").stderr
    for name in ("d", "e.xml"):
        (corpus / name).write_text("Anna\n")
    listed_paths = ", ".join(str(corpus / name) for name in ("b.html", "c.md", "d"))
    assert (
        f"4 of the files found, whose formats are unknown ({listed_paths}, …)\n"
        in invoke(pipeline, corpus, out=corpus / "out").stderr
    )


def test_lines_that_cannot_be_read_are_named(rows: Annotate, pipeline: Path, tmp_path: Path) -> None:
    lines = [b'{"text": "Anna"}', b"{", b"[1]", b'{"body": "x"}', b'{"text": 3, "id": 7}', b'{"text": "\xff"}']
    lines += [b"[" * 9999, b'{"text": "x", "mark": "\\ud800"}', b'{"text": "a\\u0000"}', b'{"text": null, "id": 8}']
    reasons = ["is not JSON", "a table such as", "no field 'text'; expected a text there (--text names another field; "]
    reasons[-1] += "there are body)"
    reasons += ["text: 3", "byte 0xff", "is not JSON", "unpaired surrogate", "'a\\x00'"]
    reasons += ["found text: None; expected a text there"]
    (path := tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    output_rows = rows(path, errors="keep")
    assert output_rows[0]["error"] is None and output_rows[4]["id"] == 7
    for number, (row, reason) in enumerate(zip(output_rows[1:], reasons, strict=True), 2):
        assert row["text"] is None and row["error"].startswith(f"{path}:{number}: found") and reason in row["error"]
    assert f"{path}:2: found" in get_error(pipeline, path, out=tmp_path / "stop")


def test_a_document_that_fails_stops_the_job_or_is_a_row(rows: Annotate, pipeline: Path, tmp_path: Path) -> None:
    texts = [*TEXTS, "let it explode", "Anna"]
    path, out = write_text_file(tmp_path, texts), tmp_path / "out"
    message = get_error(pipeline, path, out=out, shard_size=0.00004)
    assert f"{path}:7: the pipeline fails (ValueError: it exploded)" in message and "resumes the job" in message
    shard_count = len(list(out.glob("*.parquet")))
    assert shard_count and not list(out.glob("*.partial"))
    output_rows = rows(path, errors="keep")
    assert [row["text"] for row in output_rows] == texts and len(list(out.glob("*.parquet"))) > shard_count
    assert "it exploded" in output_rows[6]["error"] and output_rows[6]["ents"] is None
    assert all(row["error"] is None and row["ents"] is not None for row in [*output_rows[:6], output_rows[7]])
    assert invoke(pipeline, path, out=tmp_path / "docs", to="docbin", errors="keep").exit_code == 0
    docs = list(DocBin().from_disk(tmp_path / "docs/shard-000000.spacy").get_docs(spacy.blank("en").vocab))
    metadata = docs[6].user_data["spen_input"]
    assert len(docs[6]) == 0 and metadata["text"] == "let it explode" and metadata["error"] == output_rows[6]["error"]
    assert docs[7].text == "Anna" and "error" not in docs[7].user_data["spen_input"]


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
def test_a_column_that_cannot_be_read_fails_its_document(
    rows: Annotate, pipeline: Path, tmp_path: Path, to: str
) -> None:
    path = write_text_file(tmp_path, ["Anna went", "unreadable"])
    one, other = rows(path, to=to, errors="keep")
    assert (one["error"], other["test_length"], other["ents"]) == (None, None, None)
    error = "the column 'test_length' fails (ZeroDivisionError"
    assert other["error"] == f"{path}:2: {error}: no length)"
    assert error in get_error(pipeline, path, out=tmp_path / "stop", to=to)


@pytest.mark.parametrize(
    ("to", "place"),
    [("parquet", "the column error"), ("jsonl", "the key error"), ("docbin", "user_data['spen_input']")],
)
def test_documents_that_failed_are_counted(pipeline: Path, tmp_path: Path, to: str, place: str) -> None:
    """Includes the shards of earlier calls."""
    path, out = write_text_file(tmp_path, ["Anna", "explode", "explode again", "Bob"]), tmp_path / "out"
    options = {"out": out, "to": to, "errors": "keep", "shard_size": 0.00001}
    expected = f"{out}: all of 3 shards; 2 documents failed ({place} says why)"
    assert invoke(pipeline, path, **options).output.splitlines()[-1] == expected
    max(out.glob("shard-*")).unlink()
    assert invoke(pipeline, path, **options).output.splitlines()[-1] == expected
    result = invoke(pipeline, path, **options)
    assert result.output.splitlines() == ["nothing was left to do: all shards were finished before", expected]
    path.write_text("Anna\nBob\n")
    result = invoke(pipeline, path, **options | {"out": tmp_path / "good"})
    assert result.output.splitlines()[-1] == f"{tmp_path / 'good'}: all of 1 shard"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "ent"}, "'ent'; Did you mean 'ents'?"),
        ({"columns": "ents", "to": "docbin"}, "--columns: a DocBin has all annotations"),
        ({"gpus": 1}, "expected --engine ray"),
        ({"address": "auto"}, "expected --engine ray"),
        ({"language": "de"}, "is not a run folder"),
        ({"from_": "parquet"}, "a damaged Parquet file"),
        ({"from_": "docbin"}, "a damaged file"),
    ],
)
def test_unsuitable_options_are_rejected(pipeline: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    assert message in get_error(pipeline, write_text_file(tmp_path), out=tmp_path / "out", **options)


def test_missing_inputs_are_named(pipeline: Path, tmp_path: Path) -> None:
    path, out = write_text_file(tmp_path), tmp_path / "out"
    assert "no pipeline and no folder 'spen_enn'. Did you mean 'spen_en'?" in get_error("spen_enn", path, out=out)
    assert "has no config.json or config.cfg" in get_error(tmp_path, path, out=out)
    assert "found no such file" in get_error(pipeline, tmp_path / "no*.txt", out=out)
    (tmp_path / "empty").mkdir()
    assert "found no file whose name ends in .txt" in get_error(pipeline, tmp_path / "empty", out=out)
    parquet.write_table(pa.table({"body": ["x"]}), tmp_path / "a.parquet")
    assert "no column 'text'; expected one of body" in get_error(pipeline, tmp_path / "a.parquet", out=out)
    assert "several formats" in get_error(pipeline, path, tmp_path / "a.parquet", out=out)


def test_ray_is_named_where_it_is_missing(pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    message = get_error(pipeline, write_text_file(tmp_path), out=tmp_path / "out", engine="ray")
    assert "pip install 'spen-spacy[ray]'" in message and not (tmp_path / "out").exists()


def test_a_file_that_changes_during_the_job_is_rejected(
    pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_text_file(tmp_path)
    run_here = engines.run_here

    def change_and_run(*arguments: Any) -> Any:
        path.write_text("other")
        return run_here(*arguments)

    monkeypatch.setattr(engines, "run_here", change_and_run)
    assert "a file that has changed" in get_error(pipeline, path, out=tmp_path / "out")
    assert not list((tmp_path / "out").glob("shard-*"))


def test_memory_does_not_depend_on_the_input() -> None:
    stream = (Document("a", row, "x" * 300, {}) for row in range(3000))
    groups = [len(group) for group in shards._group_documents(stream)]
    assert sum(groups) == 3000 and max(groups) * 300 <= shards.CHARACTERS + 300
    empty_groups = [len(group) for group in shards._group_documents(Document("a", row, "", {}) for row in range(4500))]
    assert empty_groups == [shards.DOCUMENTS, shards.DOCUMENTS, 500]


# Our runs, and engines.


def test_runs_are_pipelines(runs: dict[str, Path], tmp_path: Path, text: str) -> None:
    path = write_text_file(tmp_path, [text.replace("\n", " "), "Anna told Bob ."])
    expected = {"ner": {"ents"}, "fine": {"pos", "tags", "tag_scores"}, "srl": {"frames"}, "text": {"cats", "labels"}}
    expected |= {"pos": {"pos", "tag_scores"}}
    for name, columns in expected.items():
        options = {"predicates": runs["predicates"]} if name == "srl" else {}
        result = invoke(runs[name], path, out=tmp_path / name, **options)
        assert result.exit_code == 0, result.output
        table = parquet.read_table(tmp_path / name / "shard-000000.parquet")
        assert columns == set(table.column_names) & {"pos", "tags", "tag_scores", "ents", "frames", "cats", "labels"}
        assert ("tokens" in table.column_names) == (name != "text")
        result = invoke(runs[name], path, out="-", to="jsonl", **options)
        for row, line in zip(table.to_pylist(maps_as_pydicts="strict"), result.stdout.splitlines(), strict=True):
            assert json.loads(line, parse_float=of_six_digits) == row
        nlp = find_pipeline(str(runs[name]), str(runs["predicates"]) if name == "srl" else None, None, None).load()
        for row in table.to_pylist():
            doc = nlp(row["text"])
            if name == "ner":
                assert [(e["text"], e["label"]) for e in row["ents"]] == [(e.text, e.label_) for e in doc.ents]
                assert [e["score"] for e in row["ents"]] == pytest.approx([e._.spen_score for e in doc.ents], abs=2e-4)
            elif name == "srl":
                frames = [(f["predicate"]["text"], [a["role"] for a in f["arguments"]]) for f in row["frames"]]
                assert frames == [(f.predicate.text, [a.role for a in f.arguments]) for f in doc._.srl]
            elif name == "text":
                threshold = nlp.get_pipe("spen_multilabel").threshold
                assert dict(row["cats"]) == pytest.approx(doc.cats, abs=1e-4)
                assert set(row["labels"]) == {label for label, p in row["cats"] if p > threshold}
            else:
                assert row["pos"] == [token.pos_ for token in doc]
                assert name == "pos" or row["tags"] == [token.tag_ for token in doc]


def test_the_precision_is_that_of_our_components_and_of_the_whole_job(runs: dict[str, Path], tmp_path: Path) -> None:
    fresh = find_pipeline(str(runs["fine"]), None, None, None, "bf16").load()
    nlp = find_pipeline(str(runs["fine"]), None, None, None).load()
    nlp.add_pipe("sentencizer", first=True)
    nlp.to_disk(saved := tmp_path / "saved")
    loaded = find_pipeline(str(saved), None, None, "cpu", "bf16").load()
    assert [pipe.get_pipe("spen_pos").settings["precision"] for pipe in (fresh, nlp, loaded)] == ["bf16", "no", "bf16"]
    assert loaded.get_pipe("spen_pos").settings["device"] == "cpu"
    path, out = write_text_file(tmp_path, ["Anna sleeps."]), tmp_path / "out"
    assert invoke(saved, path, out=out, precision="no").exit_code == 0  # bf16 fails where oneDNN is limited to AVX2
    assert "found --precision bf16; expected no" in get_error(saved, path, out=out, precision="bf16")


def test_a_precision_without_a_component_of_ours_is_rejected(pipeline: Path, tmp_path: Path) -> None:
    message = get_error(pipeline, write_text_file(tmp_path), out=tmp_path / "out", precision="int8")
    assert "--precision int8" in message and "has no component of spen-plugins" in message


def test_a_corpus_without_spaces_causes_a_warning(runs: dict[str, Path], tmp_path: Path) -> None:
    path = write_text_file(tmp_path, ["李四昨天去了上海。", "", "他很高兴。"])
    warning = "warning: the text has no spaces between words but is tokenised as English; give its language"
    for name, has_warning in (("fine", True), ("text", False)):  # labels of texts need no words from spaCy
        result = invoke(runs[name], path, out=tmp_path / name)
        assert result.exit_code == 0 and (warning in result.stderr) == has_warning
    result = invoke(runs["fine"], path, out=tmp_path / "named", language="zh")
    assert result.exit_code == 0 and not result.stderr
    chinese = Path(shutil.copytree(runs["fine"], tmp_path / "chinese"))
    config = json.loads((chinese / "config.json").read_text())
    (chinese / "config.json").write_text(json.dumps({**config, "task": {**config["task"], "language": "zh"}}))
    result = invoke(chinese, path, out=tmp_path / "own")
    assert result.exit_code == 0 and not result.stderr
    spacy.blank("en").to_disk(tmp_path / "blank")  # a pipeline has its own language
    assert not invoke(tmp_path / "blank", path, out=tmp_path / "other").stderr
    english = write_text_file(tmp_path, ["Anna wrote 上海 on a wall."])
    assert not invoke(runs["fine"], english, out=tmp_path / "english").stderr


def test_the_installed_model_of_predicates_is_named(runs: dict[str, Path], tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / "predicates").symlink_to(runs["predicates"])
    monkeypatch.setattr("spen_spacy.annotate.pipeline.find_installed", lambda *_: folder)
    by = "predicates are found by spen-en; --predicates RUN names a model of another language or domain"
    path = write_text_file(tmp_path, ["Anna sent a letter."])
    assert f"note: {by}" in invoke(runs["srl"], path, out=tmp_path / "a").stderr
    done = invoke(runs["srl"], path, out=tmp_path / "b", language="de")
    assert f"warning: the text is in de, but {by}" in done.stderr
    done = invoke(runs["srl"], path, out=tmp_path / "c", predicates=runs["predicates"])
    assert done.exit_code == 0 and not done.stderr


@pytest.fixture
def job(tmp_path: Path) -> tuple[Job, list[Shard]]:
    """Rules that other processes can load, and shards for the folder `there`; one process wrote them to `here`."""
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": label, "pattern": name} for name, label in NAMES.items()])
    nlp.to_disk(tmp_path / "rules")
    path = write_text_file(tmp_path, TEXTS * 8)
    assert invoke(tmp_path / "rules", path, out=tmp_path / "here", shard_size=0.00005).exit_code == 0
    pipeline = find_pipeline(str(tmp_path / "rules"), None, None, None)
    options = {"--documents": "line", "--text": "text"}
    sources = find_sources([str(path)])[1]
    (out := tmp_path / "there").mkdir()
    plan = read_or_make_plan(out, {"--from": "text", **options}, pipeline.identity(), sources, 50)
    reader = Reader("text", "line", "text")
    return Job(pipeline, plan.identity, reader, {}, str(out), "parquet", None, False), list(plan.shards)


def read_outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


@pytest.mark.slow
def test_processes_write_the_same_bytes_though_one_is_killed(job: tuple[Job, list[Shard]], tmp_path: Path) -> None:
    numbers = []
    for step in engines.run_processes(2, *job):
        numbers.append(step.number)
        if len(numbers) == 3:
            multiprocessing.active_children()[0].kill()
    assert sorted(numbers) == [shard.number for shard in job[1]] and len(numbers) > 10
    assert read_outputs(tmp_path / "here") == read_outputs(tmp_path / "there")


@pytest.fixture
def shadows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the file `ran`, which modules named like Python's in the working directory write."""
    (folder := tmp_path / "work").mkdir()
    for name in ("typing", "random", "csv", "pickle"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w'); raise RuntimeError")
    monkeypatch.chdir(folder)
    return tmp_path / "ran"


def test_workers_start_without_the_working_directory(shadows: Path) -> None:
    with engines._prepare_start():
        pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        future = pool.submit(abs, -1)
    with pool:
        assert future.result() == 1 and not shadows.exists()


@pytest.mark.slow
def test_a_command_with_processes_imports_nothing_from_the_working_directory(
    job: tuple[Job, list[Shard]], tmp_path: Path, shadows: Path
) -> None:
    """Then runs the same command again, with Ctrl-C while its processes start."""
    words = [Path(sys.executable).with_name("spen"), "annotate", tmp_path / "rules", tmp_path / "corpus.txt"]
    words += ["--processes", "2", "--shard-size", "0.00005", "--out"]
    result = subprocess.run([*words, tmp_path / "command"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert read_outputs(tmp_path / "command") == read_outputs(tmp_path / "here") and not shadows.exists()
    with subprocess.Popen(
        [*words, tmp_path / "stopped"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where tests run in the background
    ) as process:
        while process.poll() is None and len(psutil.Process(process.pid).children()) < 3:  # one of them the tracker
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.slow
def test_ray_writes_the_same_bytes(job: tuple[Job, list[Shard]], tmp_path: Path) -> None:
    pytest.importorskip("ray.data")
    steps = list(on_ray.run_on_ray(2, 0, None, *job))
    assert sum(step.documents for step in steps) == 8 * len(TEXTS) and not any(step.failure for step in steps)
    assert read_outputs(tmp_path / "here") == read_outputs(tmp_path / "there")


def test_a_worker_reports_its_failures(job: tuple[Job, list[Shard]]) -> None:
    """Without Ray: an actor is called like any object."""
    annotation_job, job_shards = job
    answer = on_ray.Actor(annotation_job)({"shard": job_shards[:2]})
    assert answer["number"] == [0, 1] and answer["failure"] == ["", ""] and sum(answer["documents"]) > 1
    changed_job = replace(annotation_job, identity={**annotation_job.identity, "sha256": "0"})
    assert "is not the pipeline of the plan" in on_ray.Actor(changed_job)({"shard": job_shards[:1]})["failure"][0]


def test_help_lists_the_options() -> None:
    result = CliRunner().invoke(app, ["annotate", "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for word in ("Annotate a corpus", "--engine", "--processes", "--shard-size", "input_row", "one document per"):
        assert word in result.output
