"""Reads texts, one a line, whose fields are tagged inline: <author> A. Writer. </author> <title> A Title. </title>."""

from __future__ import annotations

import re
from pathlib import Path

from spen_plugins.data.formats import Format, Head
from spen_plugins.data.text import read_lines

_FIELD = re.compile(r"<\s*([A-Za-z][\w-]*)\s*>(.*?)<\s*/\s*\1\s*>")
_TAG = re.compile(r"<\s*/?\s*[A-Za-z][\w-]*\s*/?>")
_WORD = re.compile(r"\w+|[^\w\s]")


def read_fields(path: Path) -> list[tuple[tuple[str, ...], set[str]]]:
    """The words and marks of punctuation of each text of a file, and the names of its fields; lines without a word are
    skipped."""
    rows = [(tuple(_words(line)), _FIELD.findall(line)) for line in read_lines(path)]
    return [(words, {name for name, text in found if _words(text)}) for words, found in rows if words]


def _words(text: str) -> list[str]:
    return _WORD.findall(_TAG.sub(" ", text))


def _begins_with_a_field(head: Head) -> bool:
    begun = [re.match(r"\s*<\s*([A-Za-z][\w-]*)\s*>.*<\s*/\s*\1\s*>", line) for line in head.filled[:50]]
    return bool(begun) and all(begun)


INLINE = Format(
    "tagged fields", "texts, one a line, <author> A. Writer. </author> <title> A Title. </title>", _begins_with_a_field
)
