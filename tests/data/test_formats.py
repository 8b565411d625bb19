"""Formats are recognised by content; encodings are named or have a mark; errors say what to do."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
from pathlib import Path

import pytest

from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import make_task, parse_experiment
from spen_plugins.data.formats import ARFF, JSON_LINES, LOOKED_AT, PARQUET, read_head, recognise
from spen_plugins.data.parts.split import read_split, split_file
from spen_plugins.data.records import CSV, read_json_lines, records
from spen_plugins.data.sentences.tagged import TagPlaces, read_tagged
from spen_plugins.data.text import LARGEST, check_encoding, read_in_encoding, read_lines, sha256
from spen_plugins.data.texts.labelled_texts import read_texts
from spen_plugins.data.texts.text_columns import Layout
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.registry import Registry
from spen_plugins.runs.predict.tokenised import read_standard_input

ALL = (ARFF, PARQUET, JSON_LINES)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"% a comment\n\n@RELATION x\n", ARFF),
        (b"PAR1\0\1\2", PARQUET),
        (b'\n{"text": "a"}\n', JSON_LINES),
        (b'\xef\xbb\xbf{ "text": "a"}', JSON_LINES),
    ],
)
def test_the_format_is_recognised_by_content(tmp_path: Path, data: bytes, expected) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    assert recognise(path, ALL) is expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "an empty file"),
        (b" \n\n", "an empty file"),
        (b"PK\x03\x04\0\0", "a zip archive (an Excel sheet is one)"),
        (b"ab\0c", "binary data"),
        (b"\na\tb\n", r":2: found 'a\tb'; expected"),
    ],
)
def test_unknown_formats_are_described(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(DataError) as error:
        recognise(path, ALL)
    assert message in str(error.value)
    if "empty" not in message:
        assert "one of these formats: ARFF (@relation" in str(error.value) and "JSONL (" in str(error.value)


def test_gzip_files_are_read_as_their_contents(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4"))
    assert recognise(path, (JSON_LINES, CSV)) is CSV
    assert read_lines(path) == ["a,b", "1,2", "3,4"]
    assert list(records(path, ",")) == [(1, ["a", "b"]), (2, ["1", "2"]), (3, ["3", "4"])]
    assert sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(gzip.compress(b'{"a": 1}\n\n[2]\n'))
    assert list(read_json_lines(path, "{}", lambda value: value)) == [(1, {"a": 1}), (3, [2])]
    data = path.read_bytes()
    for damaged in (data[:-3], data[:12], data[:5], data[:-8] + bytes(8)):
        path.write_bytes(damaged)
        for read in (read_lines, read_head, lambda file: list(read_json_lines(file, "{}", lambda value: value))):
            with pytest.raises(DataError, match=r"found a damaged gzip file .*; expected a complete file"):
                read(path)


def test_lines_end_at_line_feeds(tmp_path: Path) -> None:
    """Both in recognising and in reading a format; carriage returns end lines in a file without line feeds."""
    path = tmp_path / "x.csv"
    lines = [f"a{mark}b,c" for mark in "\u2028\u2029\x85\x0b\x0c\x1c\r"]
    for end in ("\n", "\r\n"):
        path.write_bytes(end.join([*lines, "", "d,e", ""]).encode())
        assert read_head(path).lines == read_lines(path) == [*lines, "", "d,e"]
    path.write_bytes("\n".join(lines[:-1]).encode())
    assert recognise(path, (CSV,)) is CSV and len(list(records(path, ","))) == len(lines) - 1
    path.write_bytes(b"a,b\r1,2\r")
    assert read_head(path).lines == ["a,b", "1,2"] and recognise(path, (CSV,)) is CSV


def test_the_error_for_a_large_file_says_its_size(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_bytes(b"a,b\n")
    os.truncate(path, 2 * LARGEST)  # a hole: takes no room on the disk
    for read in (read_lines, lambda file: recognise(file, ALL)):
        with pytest.raises(DataError, match=r"found a file of 2\.1 GB; expected at most 1\.1 GB"):
            read(path)


# Other encodings

TSV = "Café à Orléans\tcafé,fête\nRien à dire\tennui\nLa fête\tfête\n"
JSON = '{"text": "Café à Orléans", "labels": ["café", "fête"]}\n{"text": "Rien à dire", "labels": ["ennui"]}\n'
QUOTED = 'labels;text\r\n"café,fête";"Café;\r\nOrléans"\r\nennui;Rien à dire\r\n'
CONLL = "Zoë\tB-PER\nräumt\tO\n\nGrün\tB-LOC\n\n"


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-8", "utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("text", [TSV, JSON, QUOTED], ids=["tsv", "jsonl", "csv"])
def test_texts_equal_those_in_utf_8(tmp_path: Path, text: str, encoding: str) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other.gz"
    plain.write_bytes(text.encode())
    other.write_bytes(gzip.compress(text.encode(encoding)))
    with read_in_encoding(encoding):
        assert read_texts(other, Layout()) == read_texts(add_byte_order_mark(plain), Layout())
    assert read_texts(plain, Layout()).rows[0].labels == ("café", "fête")


def add_byte_order_mark(path: Path) -> Path:
    """The same file with a byte order mark, which takes precedence over the encoding."""
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    return path


@pytest.mark.parametrize("text", [TSV, JSON, QUOTED], ids=["tsv", "jsonl", "csv"])
def test_a_byte_order_mark_needs_no_encoding(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x"
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        path.write_bytes(text.encode(encoding))
        assert read_texts(path, Layout()).rows[0].labels == ("café", "fête")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("gb18030", "天气很好\tjoy\n"), ("shift_jis", "今日は晴れ\tjoy\n"), ("cp1251", "Погода\tjoy\n")],
)
def test_other_scripts(tmp_path: Path, encoding: str, text: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(text.encode(encoding))
    with read_in_encoding(encoding):
        assert read_lines(path) == [text.strip("\n")]
    with pytest.raises(DataError, match="which is not UTF-8; expected UTF-8 text; or pass the file's encoding"):
        read_lines(path)


def test_a_long_file_is_recognised_by_its_head(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(("é\tà\n" * LOOKED_AT).encode("utf-16"))
    assert set(read_head(path).filled) == {"é\tà"}


def test_errors_say_what_to_type(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for text, line in ((TSV, 1), (JSON, 1), (QUOTED, 2)):
        path.write_bytes(text.encode("cp1252"))
        with pytest.raises(DataError, match=rf":{line}: found byte 0xe9, .*encoding=cp1252"):
            read_texts(path, Layout())
    path.write_bytes(TSV.encode("utf-16-be"))
    with pytest.raises(DataError, match="binary data, or text with another encoding="):
        read_texts(path, Layout())
    path.write_bytes(b"a\tb\nc\x81\td\n")
    with read_in_encoding("cp1252"), pytest.raises(DataError, match=":2: found byte 0x81, which is not cp1252"):
        read_texts(path, Layout())


@pytest.mark.parametrize(("name", "suggestion"), [("cp1525", "cp1"), ("latin_one", "latin"), ("base64", ""), ("", "")])
def test_unknown_encodings(name: str, suggestion: str) -> None:
    with pytest.raises(ConfigError, match=f"expected the name of an encoding, such as cp1252.*{suggestion}"):
        check_encoding(name)


def test_our_own_files_stay_in_utf_8(tmp_path: Path) -> None:
    path, out = tmp_path / "x.tsv", tmp_path / "x.split.json"
    path.write_bytes("".join(f"{'é' * n} à\tb\n" for n in range(60)).encode("utf-16-le"))
    with read_in_encoding("utf-16-le"):
        split_file(path, out)
        rows = read_split(out, 60)
    assert json.loads(out.read_bytes())["train"] == rows["train"]


def test_the_encoding_applies_to_standard_input_too() -> None:
    with read_in_encoding("cp1252"):
        assert read_standard_input(io.BytesIO("Où ?".encode("cp1252"))) == "Où ?"


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("texts", TSV * 20),
        ("labels", "größe,a,b\n" + "1.5,1,0\n2.5,0,1\n3.5,1,1\n" * 20),
        ("names", CONLL * 20),
        ("tags", CONLL * 20),
        ("predicates", "Zoë\t-\t*\nräumt\träumen\t(V*)\n\n" * 30),
        ("srl_seal", "Zoë\t-\t(A0*)\nräumt\träumen\t(V*)\n\n" * 30),
    ],
)
def test_every_text_config_accepts_the_encoding(tmp_path: Path, config: str, text: str) -> None:
    facts = {}
    for encoding in ("utf-8", "cp1252"):
        for part in ("train", "validation"):
            (tmp_path / part).write_bytes(text.encode(encoding))
        arguments = {"data": str(tmp_path / "train"), "validation": str(tmp_path / "validation")}
        arguments |= {"encoding": encoding} | ({"labels": "a,b"} if config == "labels" else {})
        task = make_task(parse_experiment(evaluate(Path(config), arguments), config, Registry()))
        task.load()
        facts[encoding] = task.facts()
    assert facts["utf-8"] == facts["cp1252"]
    assert {"é", "ö", "ä"} & {*json.dumps(facts, ensure_ascii=False)}


def test_an_encoding_with_an_embedded_corpus_is_rejected() -> None:
    for config in ("texts", "labels", "names"):
        with pytest.raises(ConfigError, match=r"task\.file_encoding: found .cp1252., which has no effect"):
            make_task(parse_experiment(evaluate(Path(config), {"encoding": "cp1252"}), config, Registry())).load()


def test_a_list_of_sentences_in_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"words": ["Äpfel"], "tags": ["O"]}], ensure_ascii=False), encoding="utf-16")
    assert read_tagged(TagPlaces(), path, gold=True).sentences[0].words == ("Äpfel",)
