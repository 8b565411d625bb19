"""Recognition of a file's format by its content; the file's name counts only if the content leaves a choice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from spen_plugins.data.text import opened, recode_head, shorten, split_lines
from spen_plugins.errors import DataError

LOOKED_AT = 1 << 16
"""Number of leading bytes by which a file is recognised."""
_BINARY_KINDS = {
    b"PK\x03\x04": "a zip archive (an Excel sheet is one)",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF",
}


@dataclass(frozen=True)
class Head:
    """A file's first bytes, at most `LOOKED_AT`, converted to UTF-8 if it is text; `whole` if they are the entire
    file."""

    path: Path
    data: bytes
    whole: bool

    @cached_property
    def lines(self) -> list[str]:
        """The complete lines, including empty ones; a binary file has none."""
        if b"\0" in self.data:
            return []
        lines = split_lines(self.data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))
        return lines if self.whole or len(lines) < 2 else lines[:-1]

    @cached_property
    def filled(self) -> list[str]:
        """The lines that are not blank."""
        return [line for line in self.lines if line.strip()]

    @property
    def first(self) -> int | None:
        """Number of the first line that is not blank, from 1; None for a binary file."""
        return self.lines.index(self.filled[0]) + 1 if self.filled else None

    @property
    def is_json_list(self) -> bool:
        """True for one list of JSON objects, which is not read: its lines would be taken for cells or text."""
        return re.match(r"\s*\[\s*\{\s*[\"\r\n]", "\n".join(self.filled[:3])) is not None

    @property
    def found(self) -> str:
        """The content, for a message."""
        kind = next((kind for magic, kind in _BINARY_KINDS.items() if self.data.startswith(magic)), None)
        if self.is_json_list:
            return "one JSON list"
        return kind or (shorten(self.filled[0]) if self.filled else "binary data, or text with another encoding=")


@dataclass(frozen=True)
class Format:
    """A file format: its name in configs and messages, a description of such files for messages that list formats, and
    a function that recognises the head of such a file."""

    name: str
    shape: str
    fits: Callable[[Head], bool]


def read_head(path: str | Path) -> Head:
    """The beginning of a file."""
    with opened(path) as file:
        data = file.read(LOOKED_AT + 1)
    if not data.strip():
        raise DataError(path, None, "an empty file", "data")
    return Head(Path(path), recode_head(data[:LOOKED_AT]), len(data) <= LOOKED_AT)


def recognise(path: str | Path, formats: Sequence[Format]) -> Format:
    """The first of `formats` that fits a file."""
    head = read_head(path)
    form = next((form for form in formats if form.fits(head)), None)
    if form is None:
        raise DataError(path, head.first, head.found, one_of(formats))
    return form


def one_of(formats: Sequence[Format]) -> str:
    """'one of these formats: CSV (…); ARFF (…)'."""
    return "one of these formats: " + "; ".join(f"{form.name} ({form.shape})" for form in formats)


def _is_arff(head: Head) -> bool:
    first = next((line.strip().lower() for line in head.filled if line.strip()[0] != "%"), "")
    return first.startswith(("@relation", "@attribute"))


def _is_json_lines(head: Head) -> bool:
    return bool(head.filled) and re.match(r'\s*\{\s*"', head.filled[0]) is not None


ARFF = Format("ARFF", "@relation, @attribute and @data lines", _is_arff)
PARQUET = Format("Parquet", "a binary file that begins with PAR1", lambda head: head.data.startswith(b"PAR1"))
JSON_LINES = Format("JSONL", "one JSON object per line", _is_json_lines)


_SENTENCE_END = re.compile(r"\w[.!?…][\"'”’)]*$")


def is_prose(head: Head) -> bool:
    """True for raw text: each line is one or more sentences, not one token.

    No line has a tab, some have several words, and one of these holds: most lines end a sentence, with a mark after the
    last word; or most have several words, and either blank lines separate them all or their numbers of words differ.
    """
    lines = [line.strip() for line in head.lines if not line.startswith("#")]
    word_counts = [len(line.split()) for line in lines if line]
    if not any(n > 1 for n in word_counts) or any("\t" in line for line in lines) or head.filled[0][0] in "{[":
        return False
    if sum(bool(_SENTENCE_END.search(line)) for line in lines) * 2 > len(word_counts):
        return True
    run_lengths = [len(list(block)) for is_filled, block in groupby(lines, bool) if is_filled]
    (length, frequency), *_ = Counter(word_counts).most_common(1)
    has_several_words = sum(n > 1 for n in word_counts) * 2 > len(word_counts)
    return has_several_words and (
        (max(run_lengths) == 1 and length > 2) or (len(word_counts) > 2 and frequency * 2 < len(word_counts))
    )
