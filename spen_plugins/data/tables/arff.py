"""ARFF files of Mulan, MEKA and Clus: dense and sparse rows, nominal and numeric attributes, a hierarchical class.

Weka's format (`@relation`, `@attribute`, `@data`, `%` comments, quoted names, `?` for missing, `{index value, ...}`
for sparse rows, where omitted values are 0 or the first nominal value), MEKA's option in a quoted name of the relation
(`'name: -C 3'`: the first 3 attributes are labels; -3: the last 3), and Clus' attribute type `hierarchical`
(Vens et al. 2008): the class paths, `01/01/03` below `01/01`, and in a row those of the example joined with `@`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from spen_plugins.data.table import Attribute, Table
from spen_plugins.data.tables.arff_rows import MISSING, read_dense, read_sparse, split_cells, unquote
from spen_plugins.data.text import ends_within_a_line, read_lines, shorten
from spen_plugins.errors import DataError, did_you_mean

_NAME = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s{]+"
_ATTRIBUTE = re.compile(rf"@attribute\s+({_NAME})\s*(.*)", re.IGNORECASE)
_KINDS = {"numeric": "numeric", "real": "numeric", "integer": "numeric", "string": "text", "date": "text"}
_OPTION = re.compile(r":\s*(?:.*\s)?-C\s*([+-]?\d+)")


def read_arff(path: Any) -> Table:
    """Reads a file."""
    lines = read_lines(path)
    attributes, start = _header(str(path), lines)
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


def _header(path: str, lines: list[str]) -> tuple[list[Attribute], int]:
    """The attributes, and the number of the header's lines, `@data` included."""
    attributes: list[Attribute] = []
    seen: dict[str, int] = {}
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
        attribute = _attribute(path, n, unquote(match[1]), match[2])
        seen[attribute.name] = seen.get(attribute.name, 0) + 1
        if seen[attribute.name] > 1:  # duplicate names, as in Clus' expr_FUN, get a number
            attribute = replace(attribute, name=f"{attribute.name} ({seen[attribute.name]})")
        attributes.append(attribute)
    raise DataError(path, len(lines), "the end of the file", "an @data line")


def _read_own_labels(path: object, header: list[str], attributes: list[Attribute]) -> tuple[str, ...] | None:
    """The labels by MEKA's option -C; None without it."""
    for line in header:
        if line.strip().lower().startswith("@relation") and (option := _OPTION.search(line)):
            count, names = int(option[1]), [a.name for a in attributes]
            if not 0 < abs(count) < len(names):
                raise DataError(
                    path, None, f"-C {count} in @relation", f"a number of labels from 1 to {len(names) - 1}"
                )
            return tuple(names[:count] if count > 0 else names[count:])
    return None


def _attribute(path: str, line: int, name: str, kind: str) -> Attribute:
    word = kind.split(None, 1)[0].lower() if kind else ""
    if kind.startswith("{"):
        values = split_cells(kind.removeprefix("{").removesuffix("}"))
        if not kind.endswith("}") or "" in values or len(set(values)) < len(values):
            wanted = "different values between commas, in braces"
            raise DataError(path, line, f"{shorten(kind)} for attribute {name!r}", wanted)
        return Attribute(name, "nominal", tuple(values), line)
    if word == "hierarchical":
        return Attribute(name, "hierarchical", _add_ancestors(split_cells(kind[len(word) :])), line)
    if word not in _KINDS:
        wanted = "numeric, {values}, string, date or hierarchical"
        raise DataError(path, line, f"{shorten(kind)} as the type of attribute {name!r}", wanted)
    return Attribute(name, _KINDS[word], (), line)


def _add_ancestors(paths: list[str]) -> tuple[str, ...]:
    """The paths in order, each after its ancestors, including those that the header omits."""
    own = set(paths)
    return tuple(dict.fromkeys(p for path in paths for p in ancestry(path) if p == path or p not in own))


def ancestry(path: str) -> list[str]:
    """`"01/01/03"` -> `["01", "01/01", "01/01/03"]`."""
    parts = path.split("/")
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def class_sets(table: Table) -> list[np.ndarray | None]:
    """The classes of each row with all their ancestors, as sorted indices into the header's list; None if missing."""
    values = next(a for a in table.attributes if a.kind == "hierarchical").values
    place = {value: i for i, value in enumerate(values)}
    sets: list[np.ndarray | None] = []
    for line, cell in zip(table.line, table.paths, strict=True):
        if cell == MISSING:
            sets.append(None)
            continue
        names = [name.strip() for name in cell.split("@")] if cell else []
        for name in names:
            if name not in place:
                wanted = f"a path of the header's hierarchy.{did_you_mean(name, values)}"
                raise DataError(table.path, line, f"class {shorten(name)}", wanted)
        if not names and line == table.line[-1] and ends_within_a_line(table.path):
            wanted = "classes joined with @, or ? for none known; was the file cut off?"
            raise DataError(table.path, line, "no class, where the file ends without a line break", wanted)
        sets.append(np.array(sorted({place[a] for name in names for a in ancestry(name)}), dtype=np.int32))
    return sets
