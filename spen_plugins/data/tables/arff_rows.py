"""The rows of an ARFF file: a fast reader, and a strict one that explains errors if the fast one fails."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from spen_plugins.data.table import Attribute, Table
from spen_plugins.data.text import shorten
from spen_plugins.errors import DataError

MISSING = "?"
_QUOTED = r"""(?<![^\s,])(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""  # after a blank or a comma only: "it's" is a value
_CELL = re.compile(rf"\s*((?:{_QUOTED}|[^,])*?)\s*(?=,|$)")
_BLOCK = 512  # dense rows converted at a time: text takes twenty times the memory
_LARGEST = float(np.finfo(np.float32).max)


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


def _codes(attribute: Attribute) -> dict[str, float] | None:
    """Cell -> number for a nominal attribute; None for a numeric one."""
    if attribute.kind == "numeric":
        return None
    return {MISSING: math.nan} | {value: float(i) for i, value in enumerate(attribute.values)}


def read_sparse(table: Table, rows: list[tuple[int, str]]) -> None:
    for attribute in table.attributes:
        if attribute.kind in ("hierarchical", "text"):
            _refuse(
                table, rows[0][0], "a sparse row", f"dense rows, as attribute {attribute.name!r} is {attribute.kind}"
            )
    columns, values, ends = array("i"), [], [0]
    try:
        for _, text in rows:
            body = text[1:-1].strip()
            if text[0] != "{" or text[-1] != "}":
                raise ValueError
            quoted = "'" in body or '"' in body
            for cell in (split_cells(body) if quoted else body.split(",")) if body else ():
                index, value = cell.strip().split(None, 1)
                columns.append(int(index))
                values.append(unquote(value) if quoted else value)
            ends.append(len(columns))
        lookup = [_codes(attribute) for attribute in table.attributes]
        code = np.array(
            [_number(v) if (codes := lookup[c]) is None else codes[v] for c, v in zip(columns, values, strict=True)],
            dtype=np.float32,
        )
    except (ValueError, IndexError, KeyError, OverflowError):
        _explain(table, rows, _check_sparse)
    table.start, table.column, table.code = np.array(ends), np.array(columns, dtype=np.int32), code
    width = len(table.attributes)
    places = np.repeat(np.arange(len(rows), dtype=np.int64) * width, np.diff(table.start)) + table.column
    if len(places) and (table.column.min() < 0 or len(np.unique(places)) < len(places)):
        _explain(table, rows, _check_sparse)


def read_dense(table: Table, rows: list[tuple[int, str]]) -> None:
    width, attributes = len(table.attributes), table.attributes
    lookup = [_codes(attribute) for attribute in attributes]
    numeric = [i for i, attribute in enumerate(attributes) if attribute.kind == "numeric"]
    blocks = []
    for first in range(0, len(rows), _BLOCK):
        some = rows[first : first + _BLOCK]
        cells = [split_cells(text) for _, text in some]
        if any(len(row) != width for row in cells) or (numeric and any("_" in text for _, text in some)):
            _check_dense_all(table, some)
        block = np.zeros((len(some), width), dtype=np.float32)
        try:
            for j, column in enumerate(zip(*cells, strict=True)):
                codes = lookup[j]
                if attributes[j].kind == "hierarchical":
                    table.paths.extend(column)
                elif attributes[j].kind == "nominal":
                    block[:, j] = [codes[cell] for cell in column]
                elif attributes[j].kind == "numeric":
                    with np.errstate(over="ignore"):
                        block[:, j] = [math.nan if cell == MISSING else float(cell) for cell in column]
        except (ValueError, KeyError):
            _explain(table, some, _check_dense)
        missing = sum(row[j] == MISSING for row in cells for j in numeric) if numeric else 0
        if np.count_nonzero(~np.isfinite(block[:, numeric])) != missing:
            _explain(table, some, _check_dense)
        blocks.append(block)
    table.dense = np.concatenate(blocks)


def _check_dense_all(table: Table, rows: list[tuple[int, str]]) -> None:
    for line, text in rows:
        _check_dense(table, line, text)


def _explain(table: Table, rows: list[tuple[int, str]], check: Callable[[Table, int, str], None]) -> NoReturn:
    """Raise the first error among rows that the fast path could not read."""
    for line, text in rows:
        check(table, line, text)
    raise AssertionError(f"{table.path}: the strict and the fast reader disagree")  # pragma: no cover


def _check_dense(table: Table, line: int, text: str) -> None:
    width = len(table.attributes)
    if text[0] == "{":
        _refuse(table, line, "a sparse row", f"a dense row of {width} cells, as the first one")
    cells = split_cells(text)
    if len(cells) != width:
        cut = "; was the file cut off?" if len(cells) < width and line == table.line[-1] else ""
        _refuse(table, line, f"{len(cells)} cells", f"{width}, one for each @attribute{cut}")
    for attribute, cell in zip(table.attributes[:-1], cells, strict=False):
        _check_cell(table, line, attribute, cell)
    last = table.attributes[-1]
    cut = line == table.line[-1] and (not cells[-1] or any(value.startswith(cells[-1]) for value in last.values))
    _check_cell(table, line, last, cells[-1], "; was the file cut off?" if cut else "")


def _check_sparse(table: Table, line: int, text: str) -> None:
    if text[0] != "{":
        _refuse(table, line, shorten(text), "a sparse row {index value, ...}, as the first one")
    if text[-1] != "}":
        _refuse(table, line, f"a sparse row that ends in {shorten(text[-20:])}", "a closing }; was the file cut off?")
    seen: set[int] = set()
    for cell in split_cells(text[1:-1]) if text[1:-1].strip() else ():
        parts = cell.split(None, 1)
        if len(parts) != 2 or not re.fullmatch(r"-?\d+", parts[0]):
            _refuse(table, line, shorten(cell), "an attribute's number and a value, as in '12 1'")
        index = int(parts[0])
        if not 0 <= index < len(table.attributes):
            _refuse(table, line, f"attribute number {index}", f"0 to {len(table.attributes) - 1}")
        if index in seen:
            _refuse(table, line, f"attribute number {index} twice", "each number once")
        seen.add(index)
        _check_cell(table, line, table.attributes[index], unquote(parts[1].strip()))


def _check_cell(table: Table, line: int, attribute: Attribute, cell: str, hint: str = "") -> None:
    if attribute.kind == "nominal" and cell != MISSING and cell not in attribute.values:
        known = ", ".join(attribute.values[:8]) + (", ..." if len(attribute.values) > 8 else "")
        _refuse(table, line, f"{shorten(cell)} for attribute {attribute.name!r}", f"one of {known}{hint}")
    if attribute.kind == "numeric" and cell != MISSING:
        try:
            _number(cell)
        except ValueError:
            found, wanted = f"{shorten(cell)} for attribute {attribute.name!r}", "a finite number, or ? for missing"
            _refuse(table, line, found, wanted + hint)


def _refuse(table: Table, line: int, found: str, expected: str) -> NoReturn:
    raise DataError(table.path, line, found, expected)
