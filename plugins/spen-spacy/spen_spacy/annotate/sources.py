"""The input: files of documents, cut into pieces that are read one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spen_plugins import DataError
from spen_spacy.annotate import docbin, parquet, tables
from spen_spacy.annotate.tables import open_bytes

PLAN = "_plan.json"  # readers of a folder of Parquet skip names that begin with _


@dataclass(frozen=True)
class Source:
    """A file of the input: the name that the user gave, and its state when the plan was made."""

    path: str
    name: str
    size: int
    modified: int
    """In nanoseconds."""


class Piece(NamedTuple):
    """A part of a file: bytes of lines, of records or of a whole text; rows of a table, items of a list, docs."""

    source: Source
    start: int
    end: int
    first: int
    """The number, from 1, of its first line, row, item or doc."""


class Document(NamedTuple):
    """A document of the input."""

    name: str
    row: int
    """Its line, row or number in the file, from 1."""
    text: str | Doc | None
    """None if it can't be read."""
    fields: dict[str, Any]
    """The other fields of its row."""
    error: str | None = None


@dataclass(frozen=True)
class Reader:
    """The options by which files are read."""

    kind: str
    """"text", "jsonl", "json", "csv", "parquet" or "docbin"."""
    documents: str
    """Unit of a document of text: "line" or "file"."""
    field: str
    """Name of the field of text, where a document has fields."""

    def cut(self, path: Path, size: int) -> Iterator[tuple[int, int, int, int]]:
        """Start, end and first row of pieces of about `size` bytes of text, and the bytes of each. `DataError` if the
        file is damaged, or has no field of this name."""
        if self.kind == "docbin":
            yield from _cut_items(docbin.measure_docs(path), size)
        elif self.kind == "parquet":
            rows, bytes_of_text = parquet.measure(path, self.field)
            step = max(1, size * rows // max(1, bytes_of_text))
            for start in range(0, rows, step):
                end = min(rows, start + step)
                yield start, end, start + 1, bytes_of_text * (end - start) // rows
        elif self.kind == "json" and tables.is_list(path):
            yield from _cut_items([len(str(item)) for item in tables.read_items(path)], size)
        elif self.kind == "csv":
            yield from self._cut_records(path, size)
        elif self.kind == "text" and self.documents == "file":
            yield 0, path.stat().st_size, 1, path.stat().st_size
        else:
            yield from _cut_lines(path, size)

    def read(self, piece: Piece, vocab: Vocab) -> Iterator[Document]:
        """The documents of a piece, one at a time; those that can't be read have an error. `DataError` if the file is
        damaged."""
        source = piece.source
        if self.kind == "docbin":
            for row, doc in enumerate(docbin.read_docs(source.path, piece.start, piece.end, vocab), piece.first):
                is_bad = isinstance(doc, str)
                yield _fail(source, row, doc, "a whole doc") if is_bad else Document(source.name, row, doc, {})
        elif self.kind == "parquet":
            for row, fields in enumerate(parquet.read_rows(source.path, piece.start, piece.end), piece.first):
                is_bad = isinstance(fields, str)
                expected = "values that Python can read"
                yield _fail(source, row, fields, expected) if is_bad else self._read_fields(source, row, fields)
        elif self.kind == "json" and tables.is_list(source.path):
            for row, item in enumerate(tables.read_items(source.path)[piece.start : piece.end], piece.first):
                yield self._read_item(source, row, {self.field: item} if isinstance(item, str) else item)
        elif self.kind == "csv":
            yield from self._read_records(piece)
        elif self.kind == "text" and self.documents == "file":
            yield _decode(source, 1, tables.read_bytes(source.path))
        else:
            for row, line in _read_lines(piece):
                document = _decode(source, row, line.rstrip(b"\r\n"))
                if document.error is None and self.kind != "text":
                    document = self._parse_json(source, row, str(document.text))
                yield document

    def _cut_records(self, path: Path, size: int) -> Iterator[tuple[int, int, int, int]]:
        """Pieces of records; the file is read once, to number them."""
        header = tables.read_header(path, self.field)
        start, row = header.end, header.line
        with open_bytes(path) as file:
            for record in tables.read_records(file, header.separator, start, row):
                if record.end - start >= size:
                    yield start, record.end, row, record.end - start
                    start, row = record.end, record.next_line
            if file.tell() > start:
                yield start, file.tell(), row, file.tell() - start

    def _read_records(self, piece: Piece) -> Iterator[Document]:
        source = piece.source
        header = tables.read_header(source.path, self.field)
        with open_bytes(source.path) as file:
            for line, cells, end, _ in tables.read_records(file, header.separator, piece.start, piece.first):
                if isinstance(cells, str):
                    found = f"a record that can't be read ({cells})"
                    yield _fail(source, line, found, 'cells quoted by ", with quotes inside them doubled')
                elif cells and len(cells) != len(header.names):
                    found = f"{len(cells)} cell{'s' * (len(cells) != 1)}"
                    yield _fail(source, line, found, f"{len(header.names)}, as in the header")
                elif cells:
                    yield self._read_item(source, line, dict(zip(header.names, cells, strict=True)))
                if end >= piece.end:
                    return

    def _parse_json(self, source: Source, row: int, line: str) -> Document:
        try:
            value = json.loads(line, parse_constant=lambda _: None)  # NaN and Infinity are not JSON
        except (ValueError, RecursionError) as error:
            return _fail(source, row, f"a line that is not JSON ({error})", "one JSON object per line")
        return self._read_item(source, row, value)

    def _read_item(self, source: Source, row: int, item: Any) -> Document:
        if not isinstance(item, dict):
            return _fail(source, row, f"{str(item)[:40]!r}", f"a table such as {{{self.field!r}: …}}")
        try:
            json.dumps(item, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return _fail(source, row, "an unpaired surrogate, or a byte that is not UTF-8", "UTF-8 text")
        return self._read_fields(source, row, item)

    def _read_fields(self, source: Source, row: int, fields: dict[str, Any]) -> Document:
        has_field = self.field in fields
        text = fields.pop(self.field, None)
        if not isinstance(text, str) or "\0" in text:
            found = f"{self.field}: {text!r:.40}" if has_field else f"no field {self.field!r}"
            others = f"; there are {', '.join(fields):.200}" if fields else ""
            expected = f"a text there (--text names another field{others})"
            return _fail(source, row, found, expected)._replace(fields=fields)
        return Document(source.name, row, text, fields)


def _cut_lines(path: Path, size: int) -> Iterator[tuple[int, int, int, int]]:
    """Pieces of lines; the file is read once, to number them."""
    start, row = 0, 1
    with open_bytes(path) as file:
        while data := file.read(size) + file.readline():
            end = start + len(data)
            yield start, end, row, end - start
            start, row = end, row + data.count(b"\n")


def _read_lines(piece: Piece) -> Iterator[tuple[int, bytes]]:
    """The lines of a piece that are not blank, with their numbers."""
    with open_bytes(piece.source.path) as file:
        file.seek(piece.start)
        remaining, row = piece.end - piece.start, piece.first
        while remaining > 0 and (line := file.readline(remaining)):
            remaining -= len(line)
            if line.strip():
                yield row, line
            row += 1


def _decode(source: Source, row: int, data: bytes) -> Document:
    if b"\0" in data:
        return _fail(source, row, "a zero byte", "UTF-8 text")
    try:
        return Document(source.name, row, data.decode("utf-8-sig"), {})
    except UnicodeDecodeError as error:
        return _fail(source, row, f"byte 0x{data[error.start]:02x}, which is not UTF-8", "UTF-8 text")


def _fail(source: Source, row: int, found: str, expected: str) -> Document:
    return Document(source.name, row, None, {}, str(DataError(source.name, row, found, expected)))


def _cut_items(lengths: Sequence[int], size: int) -> Iterator[tuple[int, int, int, int]]:
    start = total = 0
    for end, length in enumerate(lengths, 1):
        total += length
        if total >= size or end == len(lengths):
            yield start, end, start + 1, total
            start, total = end, 0
