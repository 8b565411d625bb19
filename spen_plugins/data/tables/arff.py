"""ARFF files of Mulan, MEKA and Clus: dense and sparse rows, nominal and numeric attributes, a hierarchical class.

Weka's format (`@relation`, `@attribute`, `@data`, `%` comments, quoted names, `?` for missing, `{index value, ...}`
for sparse rows, where omitted values are 0 or the first nominal value), MEKA's option in a quoted name of the relation
(`'name: -C 3'`: the first 3 attributes are labels; -3: the last 3), and Clus' attribute type `hierarchical`
(Vens et al. 2008): the class paths, `01/01/03` below `01/01`, and in a row those of the example joined with `@`.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spen_plugins.data.table import Attribute, Table
from spen_plugins.data.text import ends_within_a_line, read_lines, shorten
from spen_plugins.errors import DataError, did_you_mean

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
    cells, position = [], 0
    while position <= len(text):
        match = _CELL.match(text, position)
        cells.append(unquote(match[1]))
        position = match.end() + 1
    return cells


def unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _parse_number(text: str) -> float:
    """A finite float32, NaN for `?`; ValueError for anything else, `nan`, `inf` and `1_000` included."""
    if text == MISSING:
        return math.nan
    value = float(text)
    if not abs(value) <= _LARGEST or "_" in text:
        raise ValueError
    return value


def _make_converter(attribute: Attribute) -> Callable[[str], float]:
    """The function that turns a cell into its number; it raises a KeyError or ValueError for an invalid cell."""
    if attribute.kind == "numeric":
        return _parse_number
    if attribute.kind == "nominal":
        return ({MISSING: math.nan} | {value: float(i) for i, value in enumerate(attribute.values)}).__getitem__
    return lambda cell: 0.0


def read_sparse(table: Table, rows: Sequence[tuple[int, str]]) -> None:
    """Fill a table with rows `{index value, ...}`."""
    from scipy.sparse import csr_array

    attributes = table.attributes
    if any(attribute.kind in ("hierarchical", "text") for attribute in attributes):
        raise DataError(table.path, rows[0][0], "a sparse row", "dense rows, as one attribute is text or hierarchical")
    converters = [_make_converter(attribute) for attribute in attributes]
    columns, codes, ends = array("i"), array("f"), [0]
    for line, text in rows:
        if text[0] != "{" or text[-1] != "}":
            raise DataError(table.path, line, shorten(text), "a sparse row {index value, ...}")
        cell, row_columns = "", set()
        try:
            for cell in split_cells(text[1:-1]) if text[1:-1].strip() else ():
                index, value = cell.split(None, 1)
                column = int(index)
                codes.append(converters[column](unquote(value)))
                if column < 0 or column in row_columns:
                    raise ValueError
                row_columns.add(column)
                columns.append(column)
        except _UNREADABLE:
            expected = f"INDEX VALUE, with each index from 0 to {len(attributes) - 1} at most once and a valid value"
            raise DataError(table.path, line, shorten(cell), expected) from None
        ends.append(len(columns))
    structure = np.array(columns, dtype=np.int32), np.array(ends)
    table.sparse = csr_array((np.array(codes, dtype=np.float32), *structure), shape=(len(rows), len(attributes)))


def read_dense(table: Table, rows: Sequence[tuple[int, str]]) -> None:
    """Fill a table with rows of one cell per attribute."""
    converters = [_make_converter(attribute) for attribute in table.attributes]
    blocks = []
    for first in range(0, len(rows), _BLOCK):
        block_rows = rows[first : first + _BLOCK]
        cells = [split_cells(text) for _, text in block_rows]
        for (line, _), row in zip(block_rows, cells, strict=True):
            if len(row) != len(converters):
                problem = f"{len(row)} cell{'s' * (len(row) != 1)}"
                raise DataError(table.path, line, problem, f"{len(converters)}, one for each @attribute")
        block = np.zeros((len(block_rows), len(converters)), dtype=np.float32)
        for index, (convert, column) in enumerate(zip(converters, zip(*cells, strict=True), strict=True)):
            try:
                block[:, index] = [convert(cell) for cell in column]
            except _UNREADABLE:
                raise _find_error(
                    table, table.attributes[index], convert, [line for line, _ in block_rows], column
                ) from None
            if table.attributes[index].kind == "hierarchical":
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
            values = ", ".join(attribute.values[:8]) + ", ..." * (len(attribute.values) > 8)
            expected = f"one of {values}, or ? for missing" if values else "a finite number, or ? for missing"
            return DataError(table.path, line, f"{shorten(cell)} for attribute {attribute.name!r}", expected)
    raise AssertionError


_NAME = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s{]+"
_ATTRIBUTE = re.compile(rf"@attribute\s+({_NAME})\s*(.*)", re.IGNORECASE)
_KINDS = {"numeric": "numeric", "real": "numeric", "integer": "numeric", "string": "text", "date": "text"}
_OPTION = re.compile(r":\s*(?:.*\s)?-C\s*([+-]?\d+)")


def read_arff(path: Any) -> Table:
    """Reads an ARFF file."""
    lines = read_lines(path)
    attributes, start = _read_header(str(path), lines)
    rows = [(n, text) for n, line in enumerate(lines[start:], start + 1) if (text := line.strip()) and text[0] != "%"]
    if not rows or not attributes:
        raise DataError(path, len(lines), "no rows" if attributes else "no attributes", "@attribute lines, @data, rows")
    table = Table(
        str(path), attributes, [n for n, _ in rows], own_labels=_read_own_labels(path, lines[:start], attributes)
    )
    if rows[0][1][0] == "{":
        read_sparse(table, rows)
    else:
        read_dense(table, rows)
    return table


def _read_header(path: str, lines: list[str]) -> tuple[list[Attribute], int]:
    """The attributes, and the number of lines of the header, including `@data`."""
    attributes: list[Attribute] = []
    counts: dict[str, int] = {}
    for n, line in enumerate(lines, 1):
        text = line.strip()
        word = text.split(None, 1)[0].lower() if text else ""
        if not text or text[0] == "%" or word == "@relation":
            continue
        if word == "@data":
            return attributes, n
        match = _ATTRIBUTE.fullmatch(text)
        if match is None:
            raise DataError(path, n, shorten(text), "@relation, @attribute NAME TYPE, @data or a % comment")
        attribute = _parse_attribute(path, n, unquote(match[1]), match[2])
        counts[attribute.name] = counts.get(attribute.name, 0) + 1
        if counts[attribute.name] > 1:  # duplicate names, as in Clus' expr_FUN, get a number
            attribute = replace(attribute, name=f"{attribute.name} ({counts[attribute.name]})")
        attributes.append(attribute)
    raise DataError(path, len(lines), "the end of the file", "an @data line")


def _read_own_labels(path: object, header: list[str], attributes: list[Attribute]) -> tuple[str, ...] | None:
    """The labels that MEKA's option -C declares; None without it."""
    for line in header:
        if line.strip().lower().startswith("@relation") and (option := _OPTION.search(line)):
            count, names = int(option[1]), [a.name for a in attributes]
            if not 0 < abs(count) < len(names):
                raise DataError(
                    path, None, f"-C {count} in @relation", f"a number of labels from 1 to {len(names) - 1}"
                )
            return tuple(names[:count] if count > 0 else names[count:])
    return None


def _parse_attribute(path: str, line: int, name: str, kind: str) -> Attribute:
    word = kind.split(None, 1)[0].lower() if kind else ""
    if kind.startswith("{"):
        values = split_cells(kind.removeprefix("{").removesuffix("}"))
        if not kind.endswith("}") or "" in values or len(set(values)) < len(values):
            expected = "different values in braces, separated by commas"
            raise DataError(path, line, f"{shorten(kind)} for attribute {name!r}", expected)
        return Attribute(name, "nominal", tuple(values), line)
    if word == "hierarchical":
        return Attribute(name, "hierarchical", _add_ancestors(split_cells(kind[len(word) :])), line)
    if word not in _KINDS:
        expected = "numeric, {values}, string, date or hierarchical"
        raise DataError(path, line, f"{shorten(kind)} as the type of attribute {name!r}", expected)
    return Attribute(name, _KINDS[word], (), line)


def _add_ancestors(paths: list[str]) -> tuple[str, ...]:
    """The paths in order, each after its ancestors, including those that the header omits."""
    header_paths = set(paths)
    return tuple(dict.fromkeys(p for path in paths for p in ancestry(path) if p == path or p not in header_paths))


def ancestry(path: str) -> list[str]:
    """`"01/01/03"` -> `["01", "01/01", "01/01/03"]`."""
    parts = path.split("/")
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def class_sets(table: Table) -> list[np.ndarray | None]:
    """The classes of each row with all their ancestors, as sorted indices into the header's list; None if missing."""
    values = next(a for a in table.attributes if a.kind == "hierarchical").values
    numbers = {value: i for i, value in enumerate(values)}
    sets: list[np.ndarray | None] = []
    for line, cell in zip(table.line, table.paths, strict=True):
        if cell == MISSING:
            sets.append(None)
            continue
        names = [name.strip() for name in cell.split("@")] if cell else []
        for name in names:
            if name not in numbers:
                expected = f"a path of the header's hierarchy.{did_you_mean(name, values)}"
                raise DataError(table.path, line, f"class {shorten(name)}", expected)
        if not names and line == table.line[-1] and ends_within_a_line(table.path):
            expected = "classes joined by @, or ? if they are unknown; was the file cut off?"
            raise DataError(table.path, line, "no class in the last line, which has no line break", expected)
        sets.append(np.array(sorted({numbers[a] for name in names for a in ancestry(name)}), dtype=np.int32))
    return sets
