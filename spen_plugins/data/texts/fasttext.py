"""Texts with labels as fastText reads them: `__label__sport __label__music the text`, labels anywhere in the line."""

from __future__ import annotations

import re
from pathlib import Path

from spen_plugins.data.formats import Format, Head
from spen_plugins.data.text import read_lines
from spen_plugins.data.texts.text_columns import Row, is_header

_LABEL = re.compile(r"(?<![^\s,])__label__([^\s,]+)(?:\s*,|(?=\s|$))")
_SAMPLE_LINES = 50


def is_fasttext(head: Head) -> bool:
    """True if a line begins with `__label__`, or most lines have one; not below a header."""
    sample = head.filled[:_SAMPLE_LINES]
    if not sample or is_header(re.split(r"[\t,;|]", sample[0])):
        return False
    matches = [_LABEL.search(line) for line in sample]
    return any(match and not match.start() for match in matches) or 2 * sum(map(bool, matches)) > len(sample)


FASTTEXT = Format("fastText", "__label__LABEL for each label, then the text", is_fasttext)


def read_fasttext(path: Path, gold: bool | None) -> list[Row]:
    """Rows of a file; labels lose their prefix, and `gold` is as in `read_texts`.

    With gold, a line without labels has an empty set, and blank lines are skipped; otherwise such a line's labels are
    unknown.
    """
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        labels = tuple(dict.fromkeys(_LABEL.findall(line)))
        if line.strip() or not gold:
            text = _LABEL.sub("", line).strip()
            rows.append(Row(text, None if gold is None or not (labels or gold) else labels, number))
    return rows
