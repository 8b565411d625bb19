"""Files as bytes, decompressed if they are gzip files, and the contents of JSON and CSV files."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from spen_plugins import DataError

LONGEST = 1 << 26
"""Maximal number of characters of a cell."""
SEPARATORS = ",\t;|"
_MARK = b"\xef\xbb\xbf"


@contextmanager
def open_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a file in binary mode; a gzip file is decompressed. `DataError` if it is damaged."""
    with Path(path).open("rb") as file:
        if file.peek(2)[:2] != b"\x1f\x8b":
            yield file
            return
        try:
            with gzip.open(file) as unzipped:
                yield cast("IO[bytes]", unzipped)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(path, None, f"a damaged gzip file ({error})", "a whole one") from error


def read_bytes(path: str | Path) -> bytes:
    """All bytes of a file."""
    with open_bytes(path) as file:
        return file.read()


def is_list(path: str | Path) -> bool:
    """True for a JSON file that holds a list, false for JSON lines."""
    with open_bytes(path) as file:
        first_line = next((line for line in file if line.strip()), b"")
    return first_line.removeprefix(_MARK).lstrip().startswith(b"[")


def read_items(path: str | Path) -> list[Any]:
    """The items of the list in a JSON file; `DataError` if it is damaged."""
    try:
        return json.loads(read_bytes(path).decode("utf-8-sig"), parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        found = f"a file that is not JSON ({error})"
        raise DataError(path, None, found, "a list of texts, or of objects with a text") from None


class Header(NamedTuple):
    """The first record of a CSV file."""

    names: list[str]
    separator: str
    end: int
    """Bytes before the next record."""
    line: int
    """The line, from 1, of the next record."""


class Record(NamedTuple):
    """A record of a CSV file."""

    line: int
    """Its first line, from 1."""
    cells: list[str] | str
    """Its cells, with surrogates for bytes that are not UTF-8; or the reason why it can't be read."""
    end: int
    next_line: int


def read_header(path: str | Path, field: str) -> Header:
    """The header of a CSV file: its cells are separated by the separator that is most frequent in it. `DataError` if it
    is not UTF-8, has no column of this name, or two columns of one name."""
    with open_bytes(path) as file:
        first_line = file.readline()
        separator = max(SEPARATORS, key=first_line.decode("latin-1").count)
        start = len(_MARK) if first_line.startswith(_MARK) else 0
        record = next(read_records(file, separator, start, 1), Record(1, [], 0, 1))
    names = [cell.strip() for cell in record.cells] if isinstance(record.cells, list) else []
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for name in names for character in name):
        raise DataError(path, 1, f"a header that is not UTF-8 text ({', '.join(map(ascii, names)):.300})", "UTF-8 text")
    if field not in names:
        raise DataError(path, 1, f"no column {field!r}", f"a header with it, or --text with one of {names!s:.300}")
    if duplicates := [name for name in names if names.count(name) > 1]:
        raise DataError(path, 1, f"two columns {duplicates[0]!r}", "different names")
    return Header(names, separator, record.end, record.next_line)


def read_records(file: IO[bytes], separator: str, start: int, line: int) -> Iterator[Record]:
    """The records of a CSV file from byte `start` on, which is in line `line`; a damaged record has the reason."""
    file.seek(start)

    def decode_lines() -> Iterator[str]:
        nonlocal start, line
        while data := file.readline():
            start, line = start + len(data), line + 1
            yield data.decode("utf-8", "surrogateescape")

    csv.field_size_limit(LONGEST)
    quoting = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL  # as in training: TSV has no quotes
    reader = csv.reader(decode_lines(), delimiter=separator, quoting=quoting, strict=True)
    while True:
        first_line = line
        try:
            cells: list[str] | str = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells = str(error)
        yield Record(first_line, cells, start, line)
