"""Labels in the cells of a file: names with a separator, or a list."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

from spen_plugins.data.text import shorten
from spen_plugins.errors import DataError

SEPARATOR = ","
TRUE, FALSE = ("1", "1.0", "true"), ("0", "0.0", "false")

_OTHER_SEPARATORS = (";", "|", " ")  # separators that a file may have instead
_ITEM = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+""")


class LabelCells:
    """Reads a file's cells of labels, divided by `separator`; None: by `SEPARATOR`, and `check` finds another one."""

    def __init__(self, path: Path, separator: str | None) -> None:
        self._path, self._separator = path, separator
        self._labels: set[str] = set()
        self._lines: dict[str, int] = {}  # each label of a split cell -> its first line
        self._last: tuple[int, tuple[str, ...]] | None = None
        self._are_pairs = True  # all rows have two labels

    def read(self, line: int, cell: str | Sequence[str]) -> tuple[str, ...]:
        """The labels of a cell, without surrounding blanks; the items of a list, or of a text such as "['a', 'b']"."""
        labels = self._split(line, cell) if isinstance(cell, str) else tuple(cell)
        if None in labels:
            raise DataError(self._path, line, "null among the labels", "label names")
        if len({*labels}) < len(labels):
            self._reject_flags(line, labels, labels)
        self._labels.update(labels)
        self._last, self._are_pairs = (line, labels), self._are_pairs and len(labels) == 2
        return labels

    def _reject_flags(self, line: int, row: Sequence[str], labels: Iterable[str]) -> None:
        """Raise a DataError if all labels are 0 or 1."""
        if {label.casefold() for label in labels} <= {*TRUE, *FALSE}:
            expected = "label names; or one column of 0 and 1 per label, with the columns in labels="
            raise DataError(self._path, line, f"labels {shorten(', '.join(row))}, a list of 0 and 1", expected)

    def _split(self, line: int, cell: str) -> tuple[str, ...]:
        cell = cell.strip()
        if (items := _parse_items(cell)) is not None:
            return items
        if self._separator is None and cell[:1] + cell[-1:] == "[]":
            expected = f"a list such as ['a', 'b'], or just names; pass \"separator={SEPARATOR}\" to keep the brackets"
            raise DataError(self._path, line, f"labels {shorten(cell)}", expected)
        pieces = _split_names(cell, self._separator or SEPARATOR)
        for label in pieces:
            self._lines.setdefault(label, line)
        return pieces

    def check(self) -> None:
        """Raise a DataError if a label consists of others with another separator, or all labels are 0 and 1."""
        if self._last is not None and self._are_pairs:
            self._reject_flags(*self._last, self._labels)
        for separator in _OTHER_SEPARATORS if self._separator is None else ():
            if (label := joined_label(self._lines, self._labels, separator)) is not None:
                problem = (
                    f"label {label!r} beside {' and '.join(map(repr, dict.fromkeys(_split_names(label, separator))))}"
                )
                expected = (
                    f'labels separated by {SEPARATOR!r}; pass "separator={separator}" to split it, or '
                    f'"separator={SEPARATOR}" to keep it as it is'
                )
                raise DataError(self._path, self._lines[label], problem, expected)


def joined_label(labels: Iterable[str], known_labels: Set[str], separator: str) -> str | None:
    """The first label whose pieces are all known labels; None without one."""
    pieces = ((label, {*_split_names(label, separator)}) for label in labels if separator in label)
    return next((label for label, parts in pieces if parts and parts <= known_labels), None)


def _split_names(cell: str, separator: str) -> tuple[str, ...]:
    return tuple(label for piece in cell.split(separator) if (label := piece.strip()))


def _parse_items(cell: str) -> tuple[str, ...] | None:
    """The items of a list, set or tuple as Python, JSON or NumPy writes it; None for any other text."""
    content, brackets = cell[1:-1], cell[:1] + cell[-1:]
    if brackets not in ("[]", "{}", "()") or not {*re.split(r"[\s,]+", _ITEM.sub("\0", content))} <= {"\0", ""}:
        return None
    if brackets != "[]" and content.lstrip()[:1] not in ("'", '"'):  # (1) is a name
        return None
    try:
        return tuple(str(literal_eval(item)).strip() for item in _ITEM.findall(content))
    except (SyntaxError, ValueError):
        return None
