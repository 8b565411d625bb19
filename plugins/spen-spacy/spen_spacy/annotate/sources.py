"""The input: files of documents, cut into pieces that are read one by one."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spen_plugins import ConfigError, DataError
from spen_spacy.annotate import parquet

SUFFIXES = {".txt": "text", ".text": "text", ".jsonl": "jsonl", ".ndjson": "jsonl"}
SUFFIXES |= {".parquet": "parquet", ".pq": "parquet", ".spacy": "docbin"}
"""The format of a file by its name; a file of another name that is given by itself is text."""
LONGEST = 1 << 26
"""Most bytes of a line."""
WORD = 6
"""Bytes of a word, with the blank after it, by which the size of a DocBin is counted."""


@dataclass(frozen=True)
class Source:
    """A file of the input.

    Attributes:
        path: where it is.
        name: how it was named.
        size: bytes.
        modified: time of the last change, in nanoseconds.
    """

    path: str
    name: str
    size: int
    modified: int


class Piece(NamedTuple):
    """A part of a file: bytes of lines or of a whole text, rows of a table, docs of a DocBin."""

    source: Source
    start: int
    end: int
    first: int
    """The number, from 1, of its first line, row or doc."""


class Document(NamedTuple):
    """A document as it is read."""

    name: str
    row: int
    """Its line, row or number in the file, from 1."""
    text: str | Doc | None
    """None where it can't be read."""
    fields: dict[str, Any]
    """What else its row holds."""
    error: str | None = None


@dataclass(frozen=True)
class Reading:
    """How files are read.

    Attributes:
        kind: "text", "jsonl", "parquet" or "docbin".
        documents: of text: "line" or "file", what a document is.
        field: of jsonl and parquet: the name of the field of text.
    """

    kind: str
    documents: str
    field: str

    def cut(self, path: Path, size: int) -> Iterator[tuple[int, int, int, int]]:
        """Start, end and first row of pieces of about `size` bytes of text, and how many bytes each has.

        Raises:
            DataError: the file is damaged, or has no field of this name.
        """
        if self.kind == "docbin":
            lengths = [len(tokens) * WORD for tokens in _docbin(path).tokens]
            yield from _groups(lengths, size)
        elif self.kind == "parquet":
            rows, bytes_of_text = parquet.size(path, self.field)
            step = max(1, size * rows // max(1, bytes_of_text))
            for start in range(0, rows, step):
                end = min(rows, start + step)
                yield start, end, start + 1, bytes_of_text * (end - start) // rows
        elif self.kind == "text" and self.documents == "file":
            yield 0, path.stat().st_size, 1, path.stat().st_size
        else:
            yield from _lines(path, size)

    def read(self, piece: Piece, vocab: Vocab) -> Iterator[Document]:
        """The documents of a piece, one at a time; those that can't be read have an error.

        Raises:
            DataError: the file is damaged.
        """
        source = piece.source
        if self.kind == "docbin":
            for row, doc in enumerate(_some(_docbin(Path(source.path)), piece).get_docs(vocab), piece.first):
                yield Document(source.name, row, doc, {})
        elif self.kind == "parquet":
            for row, fields in enumerate(parquet.rows(source.path, piece.start, piece.end), piece.first):
                yield self._of_fields(source, row, fields)
        elif self.documents == "file" and self.kind == "text":
            with Path(source.path).open("rb") as file:
                yield _decoded(source, 1, file.read())
        else:
            for row, line in _numbered(piece):
                document = _decoded(source, row, line.rstrip(b"\r\n"))
                if document.error is None and self.kind == "jsonl":
                    document = self._of_json(source, row, str(document.text))
                yield document

    def _of_json(self, source: Source, row: int, line: str) -> Document:
        try:
            fields = json.loads(line, parse_constant=lambda _: None)  # NaN and Infinity are not JSON
            if "\\ud" in line.lower():
                json.dumps(fields, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return _bad(source, row, "half a character", "whole ones: a pair of \\ud8… and \\udc…")
        except (ValueError, RecursionError) as error:
            return _bad(source, row, f"a line that is no JSON ({error})", "JSON, a table a line")
        if not isinstance(fields, dict):
            return _bad(source, row, f"{line[:40]!r}", f"a table such as {{{self.field!r}: …}}")
        return self._of_fields(source, row, fields)

    def _of_fields(self, source: Source, row: int, fields: dict[str, Any]) -> Document:
        text = fields.pop(self.field, None)
        if not isinstance(text, str):
            found = f"no field {self.field!r}" if text is None else f"{self.field}: {str(text)[:40]}"
            known = ", ".join(fields)[:200]
            bad = _bad(
                source, row, found, f"a text there (--text names another field{known and f'; there are {known}'})"
            )
            return bad._replace(fields=fields)
        return Document(source.name, row, text, fields)


def find(named: Sequence[str], given: str | None = None) -> tuple[str, list[Source]]:
    """The format and the files of what a user named, in order: files, folders with all below them, and patterns.

    Args:
        named: paths and patterns.
        given: the format; None: as the names end.

    Raises:
        ConfigError: there is no such file, or they are of several formats.
    """
    found = dict.fromkeys(path for name in named for path in _paths(name, given is not None))
    kinds: dict[str, Path] = {}
    for path in found:
        if not path.is_file():
            raise ConfigError(f"{path}: found no file; expected text, JSON lines, Parquet or DocBin")
        kinds.setdefault(given or SUFFIXES.get(path.suffix.lower(), "text"), path)
    if len(kinds) > 1:
        several = ", ".join(f"{path} ({kind})" for kind, path in kinds.items())
        raise ConfigError(f"found files of several formats: {several}; expected one format at a time, or --from")
    return next(iter(kinds)), [_source(path) for path in found]


def _paths(name: str, any_suffix: bool) -> list[Path]:
    """The files of a file's or a folder's name, or of a pattern."""
    path = Path(name).expanduser()
    if path.is_dir():
        inside = [p for p in sorted(path.rglob("*")) if not any(part[0] == "." for part in p.relative_to(path).parts)]
        files = [p for p in inside if p.is_file() and (any_suffix or p.suffix.lower() in SUFFIXES)]
        if not files:
            raise ConfigError(f"{name}: found no file that ends in {', '.join(SUFFIXES)}; expected some")
        return files
    files = [path] if path.exists() else [Path(p) for p in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
    if not files:
        raise ConfigError(f"{name}: found no such file; expected a file, a folder, or a pattern of files")
    return files


def _source(path: Path) -> Source:
    about = path.stat()
    return Source(str(path.resolve()), str(path), about.st_size, about.st_mtime_ns)


def _lines(path: Path, size: int) -> Iterator[tuple[int, int, int, int]]:
    """Pieces of lines; the file is read once, to number them."""
    start, row = 0, 1
    with path.open("rb") as file:
        while data := file.read(size):
            rest = file.readline(LONGEST)
            count = data.count(b"\n") + rest.count(b"\n")
            if len(rest) == LONGEST and not rest.endswith(b"\n"):
                raise DataError(path, row + count, f"a line of more than {LONGEST >> 20} MiB", "shorter lines")
            end = start + len(data) + len(rest)
            yield start, end, row, end - start
            start, row = end, row + count


def _numbered(piece: Piece) -> Iterator[tuple[int, bytes]]:
    """The lines of a piece that are not blank, with their numbers."""
    with Path(piece.source.path).open("rb") as file:
        file.seek(piece.start)
        left, row = piece.end - piece.start, piece.first
        while left > 0 and (line := file.readline(left)):
            left -= len(line)
            if line.strip():
                yield row, line
            row += 1


def _decoded(source: Source, row: int, data: bytes) -> Document:
    try:
        return Document(source.name, row, data.decode("utf-8-sig"), {})
    except UnicodeDecodeError as error:
        return _bad(source, row, f"byte 0x{data[error.start]:02x}, which is not UTF-8", "UTF-8 text")


def _bad(source: Source, row: int, found: str, expected: str) -> Document:
    return Document(source.name, row, None, {}, str(DataError(source.name, row, found, expected)))


def _docbin(path: Path) -> DocBin:
    try:
        return DocBin().from_disk(path)
    except Exception as error:  # of zlib, msgpack, numpy or spaCy, whatever is damaged
        found = f"a damaged file ({type(error).__name__})"
        raise DataError(path, None, found, "a DocBin, as spaCy's DocBin.to_disk writes it") from error


def _some(docs: DocBin, piece: Piece) -> DocBin:
    """The docs of a piece alone, so that no others are made."""
    for name in ("tokens", "spaces", "cats", "flags", "span_groups", "user_data"):
        if len(values := getattr(docs, name)):
            setattr(docs, name, values[piece.start : piece.end])
    return docs


def _groups(lengths: Sequence[int], size: int) -> Iterator[tuple[int, int, int, int]]:
    start = total = 0
    for end, length in enumerate(lengths, 1):
        total += length
        if total >= size or end == len(lengths):
            yield start, end, start + 1, total
            start, total = end, 0


def head(path: str, count: int) -> list[bytes]:
    """The first lines of a file that are not blank."""
    with Path(path).open("rb") as file:
        return list(islice((line for line in file if line.strip()), count))
