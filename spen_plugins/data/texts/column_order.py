"""Files whose first column has the labels and whose second one the texts, against the order that is read by default."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from spen_plugins.data.text import shorten
from spen_plugins.errors import DataError

_FEWEST = 5
"""Rows that show it."""


def check_order(path: str | Path, rows: Sequence[Sequence[str]]) -> None:
    """Raise a DataError if the second of two columns has texts, and the first one some words that recur: labels.

    Args:
        path: the file, without a header.
        rows: cells of its first rows.
    """
    if len(rows) < _FEWEST or any(len(row) != 2 for row in rows):
        return
    labels = [[label for label in re.split(r"[\s,;|]+", first) if label] for first, _ in rows]
    texts = [second for _, second in rows]
    lengths = [len(text.split()) for text in texts]
    names = {label for some in labels for label in some}
    recurring = 2 * len(names) <= len(rows)
    if recurring and len({*texts}) == len(texts) and sum(lengths) > 3 * max(sum(map(len, labels)), len(rows)):
        apart = next((sign for sign in " ;|" if any(sign in first.strip() for first, _ in rows)), None)
        found = f"labels before texts, as in {shorten(chr(9).join(rows[0]))}"
        keys = "text=2 labels=1" + (f" 'separator={apart}'" if apart else "")
        raise DataError(path, 1, found, f"a text and then its labels; or {keys}; or task.header=false, if it is so")
