"""Names of labels: one by one, by their beginning, or in a file."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from spen_plugins.data.table import Table
from spen_plugins.data.text import read_lines
from spen_plugins.errors import ConfigError, DataError, did_you_mean


def split_names(value: Any) -> Any:
    """The names of `a,b` or `[a,b]` as a list; any other value as it is, of which texts are a name or a pattern."""
    if not isinstance(value, str) or not ("," in value or value[:1] + value[-1:] == "[]"):
        return value
    inside = value[1:-1] if value[:1] + value[-1:] == "[]" else value
    return [name.strip(" '\"") for name in inside.split(",")]


def find_labels(
    table: Table, labels: str | Sequence[str], drop: Sequence[str] = (), source: str = "labels="
) -> list[str]:
    """Names of a table's label columns: a name, names, or `tag_*`, all columns that begin so and are not in `drop`."""
    names = [a.name for a in table.attributes]
    if isinstance(labels, str) and labels.endswith("*"):
        begun = [name for name in names if name.startswith(labels[:-1]) and name not in drop]
        if not begun:
            raise ConfigError(f"labels=: no column of {table.path} begins with {labels[:-1]!r}; {some_of(names)}")
        return begun
    for name in (wanted := dict.fromkeys([labels] if isinstance(labels, str) else labels)):
        if name not in names:
            near = did_you_mean(name, names)
            columns = some_of(names).replace("its", "Its", 1)
            raise ConfigError(f"{source}: {table.path} has no column {name!r}.{near} {columns}")
    return list(wanted)


def some_of(names: Sequence[str]) -> str:
    """The first columns' names, for a message."""
    return f"its columns are {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"


def read_names(path: str | Path) -> list[str]:
    """Label names in a file, Mulan's XML list or one per line, in the order of their numbers."""
    lines = read_lines(path)
    is_xml = lines[0].lstrip().startswith("<")
    names = _xml_names(path, "\n".join(lines)) if is_xml else [line.strip() for line in lines]
    seen: set[str] = set()
    for number, name in enumerate(names, 1):
        if not name or name in seen:
            problem = f"label {name!r} twice" if name else "an empty name"
            raise DataError(path, None if is_xml else number, problem, "label names, each once")
        seen.add(name)
    return names


def _xml_names(path: str | Path, text: str) -> list[str]:
    wanted = "an XML list of <label name='...'>"
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise DataError(path, error.position[0], error.msg, wanted) from None
    names = [e.get("name", "") for e in root.iter() if e.tag.rpartition("}")[2] == "label"]
    if not names:
        raise DataError(path, None, "no label", wanted)
    return names


def label_sets(tables: Iterable[Table]) -> list[str]:
    """All names in the tables' sets of labels; numbers in their order."""
    names = {name for table in tables for row in table.sets or () for name in row or ()}
    return sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))
