"""Text files, read strictly, plain or gzipped, in UTF-8, a given encoding, or the encoding of their byte order mark."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from encodings.aliases import aliases
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, Protocol

from spen_plugins.errors import ConfigError, DataError, did_you_mean
from spen_plugins.files import no_file, open_file

UTF_8 = (
    "UTF-8 text; or pass the file's encoding, such as encoding=cp1252 (Western Windows), encoding=utf-16 or "
    "encoding=gb18030"
)
"""The expected text, in an error about a file that is not UTF-8."""
DIGITS = str.maketrans("123456789", "000000000")
"""For `str.translate`: every digit becomes 0."""
_MARKS = {
    codecs.BOM_UTF8: None,
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16's, with which it begins
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ENCODING: ContextVar[str | None] = ContextVar("encoding", default=None)


@contextmanager
def read_in_encoding(encoding: str | None) -> Iterator[None]:
    """Text files are read in this encoding inside the context; None: UTF-8. A byte order mark takes precedence."""
    token = _ENCODING.set(None if encoding is None else check_encoding(encoding))
    try:
        yield
    finally:
        _ENCODING.reset(token)


def check_encoding(name: str) -> str:
    """The name of a text encoding; a ConfigError with a similar name if it is unknown."""
    try:
        TextIOWrapper(BytesIO(), encoding=name)
    except (LookupError, ValueError):
        suggestion = did_you_mean(name.lower(), {*aliases, *(alias.replace("_", "-") for alias in aliases.values())})
        expected = "the name of an encoding, such as cp1252, latin-1, utf-16, gb18030 or shift_jis"
        raise ConfigError(f"encoding={name}: unknown encoding; expected {expected}.{suggestion}") from None
    return name


def detect_encoding(data: bytes) -> str | None:
    """The encoding of a file, given its first bytes; None: UTF-8."""
    return next((encoding for mark, encoding in _MARKS.items() if data.startswith(mark)), _ENCODING.get())


def recode_file(source: str | Path, data: bytes) -> bytes:
    """A file's content in UTF-8; content that is in UTF-8 already is returned unchecked."""
    encoding = detect_encoding(data)
    if encoding is None:
        return data
    try:
        return data.decode(encoding).encode()
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(encoding, "replace").count("\n") + 1
        problem = f"byte 0x{data[error.start]:02x}, which is not {encoding}"
        raise DataError(source, line, problem, f"{encoding} text; or pass another encoding=") from None
    except UnicodeError as error:  # without a place: a byte order mark is missing, a surrogate stands alone
        raise DataError(source, None, f"text that is not {encoding} ({error})", "another encoding=") from None


def recode_head(data: bytes) -> bytes:
    """The first bytes of a file in UTF-8; replacement characters stand for invalid bytes and a cut-off last one."""
    encoding = detect_encoding(data)
    return data if encoding is None else data.decode(encoding, "replace").encode("utf-8", "replace")


LARGEST = 1 << 30
"""Maximum size of a file that is read, in bytes."""


def read_lines(path: str | Path, largest: int = LARGEST) -> list[str]:
    r"""Lines of a text file, without line ends (`\n` or `\r\n`; `\r` in a file without `\n`) and byte order mark; line
    n of the file is item n - 1. A file of more than `largest` bytes is an error."""
    with open_text(path, largest) as file:
        data = file.read()
    if not data.strip():
        raise DataError(path, None, "an empty file", "data")
    return split_lines(decoded(path, data))


def split_lines(text: str) -> list[str]:
    r"""Lines of a text, which end at `\n` or `\r\n`, or at `\r` in a text without `\n`; `str.splitlines` splits at
    other characters too."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    if not lines[-1]:
        lines.pop()
    return lines


def decoded(source: str | Path, data: bytes) -> str:
    """The text of UTF-8 data, without a byte order mark; a DataError with the line of an invalid or zero byte."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(source, line, f"byte 0x{data[error.start]:02x}, which is not UTF-8", UTF_8) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(source, line, "a zero byte", UTF_8)
    return text


def opened(path: str | Path, largest: int = LARGEST) -> BinaryIO:
    """A file opened in binary mode, decompressed if it is gzipped; a DataError if it is not a file, is damaged, or has
    more than `largest` bytes when decompressed."""
    file = open_as_is(path)
    if file.peek(2)[:2] != b"\x1f\x8b":
        if (size := os.fstat(file.fileno()).st_size) > largest:
            file.close()
            raise _make_size_error(path, f"a file of {size / 1e9:.1f} GB", largest)
        return file
    data = bytearray()
    try:
        with file:
            archive = gzip.GzipFile(fileobj=file)
            while len(data) <= largest and (piece := archive.read(1 << 20)):  # `read(largest)` would reserve as much
                data += piece
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(path, None, f"a damaged gzip file ({error})", "a complete file") from None
    if len(data) > largest:
        raise _make_size_error(path, f"a gzip file of more than {largest / 1e9:.1f} GB when decompressed", largest)
    return BytesIO(data)


def open_text(path: str | Path, largest: int = LARGEST) -> BinaryIO:
    """A text file opened in binary mode, converted to UTF-8 from its encoding."""
    file = opened(path, largest)
    start = file.read(4)
    file.seek(0)
    if detect_encoding(start) is None:
        return file
    with file:
        return BytesIO(recode_file(path, file.read()))


def _make_size_error(path: str | Path, size: str, largest: int) -> DataError:
    expected = f"at most {largest / 1e9:.1f} GB, as the whole file must fit in memory; use a part of it"
    return DataError(path, None, size, expected)


def open_as_is(path: str | Path) -> BufferedReader:
    """A file opened in binary mode, of any size and not decompressed; raises the other DataErrors of `opened`."""
    try:
        if kind := no_file(path):
            raise DataError(path, None, kind, "a file")
        return open_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(path, None, "no such file", "a file that exists") from None
    except OSError as error:
        raise DataError(path, None, f"a file that can't be opened ({error.strerror})", "a readable file") from None


def ends_within_a_line(path: str | Path) -> bool:
    """True if a (non-empty) file ends without a line break, so that it may be truncated."""
    with open_text(path) as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def sha256(path: str | Path) -> str:
    """Hexadecimal sha256 of a file as it is, perhaps compressed; raises the DataErrors of `open_as_is`."""
    with open_as_is(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def shorten(text: str, length: int = 60) -> str:
    """A piece of a file for an error message, quoted and at most about `length` characters."""
    return repr(text if len(text) <= length else text[: length - 3] + "...")


def is_number(cell: str) -> bool:
    """True for a text that is a number, with a decimal point if it is not an integer."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


class RawText(Protocol):
    """Raw text, and methods that find the sentences and predicates in it."""

    text: str

    def sentences(self) -> list[list[str]]:
        """The words of each sentence."""

    def predicates(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """The indices of each sentence's predicates, from 0."""
