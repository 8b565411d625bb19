"""Encodings of text files: UTF-8, what a byte order mark says, or the encoding that a user names."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from encodings.aliases import aliases
from io import BytesIO, TextIOWrapper
from pathlib import Path

from spen_plugins.errors import ConfigError, DataError, did_you_mean

UTF_8 = (
    "UTF-8 text; or pass the file's encoding, such as encoding=cp1252 (Western Windows), encoding=utf-16 or "
    "encoding=gb18030"
)
"""The expected text, in an error about a file that is not UTF-8."""
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
    """Text files that are read inside are in an encoding; None: in UTF-8. A byte order mark goes before it."""
    before = _ENCODING.set(None if encoding is None else check_encoding(encoding))
    try:
        yield
    finally:
        _ENCODING.reset(before)


def check_encoding(name: str) -> str:
    """The name of an encoding of text; a ConfigError with a similar one if it is unknown."""
    try:
        TextIOWrapper(BytesIO(), encoding=name)
    except (LookupError, ValueError):
        near = did_you_mean(name.lower(), {*aliases, *(known.replace("_", "-") for known in aliases.values())})
        wanted = "the name of an encoding, such as cp1252, latin-1, utf-16, gb18030 or shift_jis"
        raise ConfigError(f"encoding={name}: found no encoding of that name; expected {wanted}.{near}") from None
    return name


def detect_encoding(data: bytes) -> str | None:
    """The encoding of a file, given its first bytes; None: UTF-8."""
    return next((encoding for mark, encoding in _MARKS.items() if data.startswith(mark)), _ENCODING.get())


def recode_file(where: str | Path, data: bytes) -> bytes:
    """A file's content in UTF-8; what is in UTF-8 is returned as it is, not checked."""
    encoding = detect_encoding(data)
    if encoding is None:
        return data
    try:
        return data.decode(encoding).encode()
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(encoding, "replace").count("\n") + 1
        problem = f"byte 0x{data[error.start]:02x}, which is not {encoding}"
        raise DataError(where, line, problem, f"{encoding} text; or another encoding=") from None
    except UnicodeError as error:  # without a place: a byte order mark is missing, a surrogate stands alone
        raise DataError(where, None, f"what is not {encoding} ({error})", "another encoding=") from None


def recode_head(data: bytes) -> bytes:
    """The first bytes of a file in UTF-8; where they are not in its encoding, and at their end, with marks."""
    encoding = detect_encoding(data)
    return data if encoding is None else data.decode(encoding, "replace").encode("utf-8", "replace")
