"""Formats are recognised by content, and a refusal names the formats that would do."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from spen_plugins.data.csv_rows import CSV, records
from spen_plugins.data.formats import ARFF, JSON_LINES, PARQUET, read_head, recognise
from spen_plugins.data.jsonl import read_json_lines
from spen_plugins.data.text import LARGEST, read_lines, sha256
from spen_plugins.errors import DataError

ALL = (ARFF, PARQUET, JSON_LINES)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"% a comment\n\n@RELATION x\n", ARFF),
        (b"PAR1\0\1\2", PARQUET),
        (b'\n{"text": "a"}\n', JSON_LINES),
        (b'\xef\xbb\xbf{ "text": "a"}', JSON_LINES),
    ],
)
def test_content_decides(tmp_path: Path, data: bytes, wanted) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(data)
    assert recognise(path, ALL) is wanted


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "an empty file"),
        (b" \n\n", "an empty file"),
        (b"PK\x03\x04\0\0", "a zip archive (an Excel sheet is one)"),
        (b"ab\0c", "binary data"),
        (b"\na\tb\n", r":2: found 'a\tb'; expected"),
    ],
)
def test_what_is_none_of_them_is_named(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(DataError) as error:
        recognise(path, ALL)
    assert found in str(error.value)
    if "empty" not in found:
        assert "one of these formats: ARFF (@relation" in str(error.value) and "JSONL (" in str(error.value)


def test_gzip_is_read_as_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4"))
    assert recognise(path, (JSON_LINES, CSV)) is CSV
    assert read_lines(path) == ["a,b", "1,2", "3,4"]
    assert list(records(path, ",")) == [(1, ["a", "b"]), (2, ["1", "2"]), (3, ["3", "4"])]
    assert sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(gzip.compress(b'{"a": 1}\n\n[2]\n'))
    assert list(read_json_lines(path, "{}", lambda value: value)) == [(1, {"a": 1}), (3, [2])]
    whole = path.read_bytes()
    for damaged in (whole[:-3], whole[:12], whole[:5], whole[:-8] + bytes(8)):
        path.write_bytes(damaged)
        for read in (read_lines, read_head, lambda where: list(read_json_lines(where, "{}", lambda value: value))):
            with pytest.raises(DataError, match=r"found a damaged gzip file .*; expected a whole one"):
                read(path)


def test_lines_end_at_line_feeds(tmp_path: Path) -> None:
    """Where a format is recognised as where it is read; carriage returns end those of a file that has no line feeds."""
    path = tmp_path / "x.csv"
    lines = [f"a{mark}b,c" for mark in "\u2028\u2029\x85\x0b\x0c\x1c\r"]
    for end in ("\n", "\r\n"):
        path.write_bytes(end.join([*lines, "", "d,e", ""]).encode())
        assert read_head(path).lines == read_lines(path) == [*lines, "", "d,e"]
    path.write_bytes("\n".join(lines[:-1]).encode())
    assert recognise(path, (CSV,)) is CSV and len(list(records(path, ","))) == len(lines) - 1
    path.write_bytes(b"a,b\r1,2\r")
    assert read_head(path).lines == ["a,b", "1,2"] and recognise(path, (CSV,)) is CSV


def test_a_large_file_is_refused_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"
    path.write_bytes(b"a,b\n")
    os.truncate(path, 2 * LARGEST)  # a hole: takes no room on the disk
    for read in (read_lines, lambda where: recognise(where, ALL)):
        with pytest.raises(DataError, match=r"found a file of 2\.1 GB; expected at most 1\.1 GB"):
            read(path)
