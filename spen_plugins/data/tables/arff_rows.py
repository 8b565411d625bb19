"""The rows of an ARFF file."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Sequence

import numpy as np

from spen_plugins.data.table import Attribute, Table
from spen_plugins.data.text import shorten
from spen_plugins.errors import DataError

MISSING = "?"
_QUOTED = r"""(?<![^\s,])(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""  # after a blank or a comma only: "it's" is a value
_CELL = re.compile(rf"\s*((?:{_QUOTED}|[^,])*?)\s*(?=,|$)")
_BLOCK = 512  # dense rows converted at a time: text takes twenty times the memory
_LARGEST = float(np.finfo(np.float32).max)

_UNREADABLE = (ValueError, IndexError, KeyError, OverflowError)


def split_cells(text: str) -> list[str]:
    """Cells of a comma-separated line, without surrounding blanks and quotes."""
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    cells, at = [], 0
    while at <= len(text):
        match = _CELL.match(text, at)
        cells.append(unquote(match[1]))
        at = match.end() + 1
    return cells


def unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _number(text: str) -> float:
    """A finite float32, NaN for `?`; ValueError for anything else, `nan`, `inf` and `1_000` included."""
    if text == MISSING:
        return math.nan
    value = float(text)
    if not abs(value) <= _LARGEST or "_" in text:
        raise ValueError
    return value


def _converter(attribute: Attribute) -> Callable[[str], float]:
    """Turns a cell into its number; a KeyError or ValueError for a cell that the attribute can't have."""
    if attribute.kind == "numeric":
        return _number
    if attribute.kind == "nominal":
        return ({MISSING: math.nan} | {value: float(i) for i, value in enumerate(attribute.values)}).__getitem__
    return lambda cell: 0.0


def read_sparse(table: Table, rows: Sequence[tuple[int, str]]) -> None:
    """Fill a table with rows `{index value, ...}`."""
    attributes = table.attributes
    if any(attribute.kind in ("hierarchical", "text") for attribute in attributes):
        raise DataError(table.path, rows[0][0], "a sparse row", "dense rows, as an attribute is a text or hierarchical")
    converters = [_converter(attribute) for attribute in attributes]
    columns, codes, ends = array("i"), array("f"), [0]
    for line, text in rows:
        if text[0] != "{" or text[-1] != "}":
            raise DataError(table.path, line, shorten(text), "a sparse row {index value, ...}")
        cell, seen = "", set()
        try:
            for cell in split_cells(text[1:-1]) if text[1:-1].strip() else ():
                index, value = cell.split(None, 1)
                column = int(index)
                codes.append(converters[column](unquote(value)))
                if column < 0 or column in seen:
                    raise ValueError
                seen.add(column)
                columns.append(column)
        except _UNREADABLE:
            wanted = (
                f"INDEX VALUE, each index from 0 to {len(attributes) - 1} at most once, and a value of its attribute"
            )
            raise DataError(table.path, line, shorten(cell), wanted) from None
        ends.append(len(columns))
    table.start, table.column = np.array(ends), np.array(columns, dtype=np.int32)
    table.code = np.array(codes, dtype=np.float32)


def read_dense(table: Table, rows: Sequence[tuple[int, str]]) -> None:
    """Fill a table with rows of a cell for each attribute."""
    converters = [_converter(attribute) for attribute in table.attributes]
    blocks = []
    for first in range(0, len(rows), _BLOCK):
        some = rows[first : first + _BLOCK]
        cells = [split_cells(text) for _, text in some]
        for (line, _), row in zip(some, cells, strict=True):
            if len(row) != len(converters):
                raise DataError(table.path, line, f"{len(row)} cells", f"{len(converters)}, one for each @attribute")
        block = np.zeros((len(some), len(converters)), dtype=np.float32)
        for at, (convert, column) in enumerate(zip(converters, zip(*cells, strict=True), strict=True)):
            try:
                block[:, at] = [convert(cell) for cell in column]
            except _UNREADABLE:
                raise _find_error(table, table.attributes[at], convert, [line for line, _ in some], column) from None
            if table.attributes[at].kind == "hierarchical":
                table.paths.extend(column)
        blocks.append(block)
    table.dense = np.concatenate(blocks)


def _find_error(
    table: Table, attribute: Attribute, convert: Callable[[str], float], lines: Sequence[int], cells: Sequence[str]
) -> DataError:
    for line, cell in zip(lines, cells, strict=True):
        try:
            convert(cell)
        except _UNREADABLE:
            shown = ", ".join(attribute.values[:8]) + ", ..." * (len(attribute.values) > 8)
            wanted = f"one of {shown}, or ? for missing" if shown else "a finite number, or ? for missing"
            return DataError(table.path, line, f"{shorten(cell)} for attribute {attribute.name!r}", wanted)
    raise AssertionError
