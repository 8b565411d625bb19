"""First lines of CSV that are headers, by the lines below them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spen_plugins.data.text import is_number

_NAME = re.compile(r"[^\W\d]\w*([ ._/-]\w+){0,2}")  # is_joy, Review Text


def looks_like_header(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """True if a first record without usual names is a header all the same, by the records below it.

    Its cells are different names that don't recur in their columns, and there is a column of numbers, or of texts most
    of which have more words than its name. The first cell may be empty, as over a table's index.
    """
    columns = list(zip(*below, strict=False))
    filled = names[1:] if not names[0] else names
    if not (columns and filled and all(map(_NAME.fullmatch, filled)) and len({*filled}) == len(filled)):
        return False
    if any(name and name in map(str.strip, cells) for name, cells in zip(names, columns, strict=False)):
        return False
    return any(_differs(name, cells) for name, cells in zip(names, columns, strict=False))


def _differs(name: str, cells: Sequence[str]) -> bool:
    """True if cells are numbers, or most have more words than the name above them."""
    filled = [cell for cell in cells if cell.strip()]
    longer = sum(len(cell.split()) > len(name.split()) for cell in filled)
    return bool(filled) and (all(map(is_number, filled)) or (name != "" and 2 * longer > len(filled)))
