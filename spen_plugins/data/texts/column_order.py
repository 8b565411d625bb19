"""Labels before texts, against the order that is read by default."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spen_plugins.data.text import shorten
from spen_plugins.data.texts.text_columns import Row
from spen_plugins.errors import DataError

_FEWEST = 5
"""Rows that show it."""


def check_order(path: Path, rows: Sequence[Row]) -> None:
    """Raise a DataError if texts recur below labels that all differ and are longer: their columns are swapped."""
    texts, labels = [row.text for row in rows], [" ".join(row.labels or ()) for row in rows]
    is_longer = sum(len(cell.split()) for cell in labels) > 3 * sum(len(text.split()) for text in texts)
    is_headed = bool(rows) and rows[0].line > 1
    if not is_headed and len(rows) >= _FEWEST and 2 * len({*texts}) <= len(rows) == len({*labels}) and is_longer:
        wanted = "a text and then its labels; or text=2 labels=1; or task.header=false, if it is so"
        raise DataError(path, rows[0].line, f"labels before texts, as in {shorten(texts[0])}", wanted)
