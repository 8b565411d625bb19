"""Which columns of a table are labels: named one by one, by their beginning, in a file, or counted from the end."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from spen_plugins.data.table import Table
from spen_plugins.data.text import read_lines
from spen_plugins.errors import ConfigError, DataError, did_you_mean


def columns_named(value: Any) -> Any:
    """The names of `a,b` or `[a,b]` as a list; any other value as it is, of which texts are a name or a pattern."""
    if not isinstance(value, str) or not ("," in value or value[:1] + value[-1:] == "[]"):
        return value
    inside = value[1:-1] if value[:1] + value[-1:] == "[]" else value
    return [name.strip(" '\"") for name in inside.split(",")]


def named_labels(table: Table, labels: str | Sequence[str], drop: Sequence[str] = ()) -> list[str]:
    """Names of a table's label columns.

    Args:
        table: the table.
        labels: a name, or names; or `tag_*`, all columns that begin so.
        drop: columns that a pattern does not take.

    Raises:
        ConfigError: a name is none of a column or occurs twice, or no column begins so.
    """
    names = [a.name for a in table.attributes]
    if isinstance(labels, str) and labels.endswith("*"):
        found = [name for name in names if name.startswith(labels[:-1]) and name not in drop]
        if not found:
            raise ConfigError(f"labels=: no column of {table.path} begins with {labels[:-1]!r}; {_some(names)}")
        return found
    wanted = [labels] if isinstance(labels, str) else list(labels)
    for at, name in enumerate(wanted):
        if name in wanted[:at]:
            raise ConfigError(f"labels=: found {name!r} twice; expected each column once. {_some(names).capitalize()}")
        if name not in names:
            near = did_you_mean(name, names)
            raise ConfigError(f"labels=: {table.path} has no column {name!r}.{near} {_some(names).capitalize()}")
    return wanted


def read_names(path: str | Path) -> list[str]:
    """Label names, one per line, in the order of their numbers.

    Raises:
        DataError: a line is blank, or a name occurs twice.
    """
    names = [line.strip() for line in read_lines(path)]
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if not name or name in seen:
            found = f"label {name!r} again, as in line {seen[name]}" if name else "a blank line"
            raise DataError(path, number, found, "one label name a line, each once")
        seen[name] = number
    return names


def listed_labels(path: str | Path, table: Table) -> list[str]:
    """Label names in a file, Mulan's XML list or one a line; each must be a column of the table."""
    if read_lines(path)[0].lstrip().startswith("<"):
        return read_label_names(path, table)
    known, names = {a.name for a in table.attributes}, read_names(path)
    for line, name in enumerate(names, 1):
        if name not in known:
            near = did_you_mean(name, known)
            raise DataError(path, line, f"label {name!r}", f"names of columns of {table.path}.{near}")
    return names


def label_sets(tables: Iterable[Table]) -> list[str]:
    """All names in the tables' sets of labels; numbers in their order."""
    names = {name for table in tables for row in table.sets or () for name in row or ()}
    return sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))


def _some(names: Sequence[str]) -> str:
    return f"its columns are {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"


def label_columns(table: Table, labels: Sequence[str] | int | None) -> tuple[tuple[str, ...], str | None]:
    """Label names in the output's order, and the hierarchical attribute whose paths they are, if they are.

    Args:
        table: the file; only its header is used.
        labels: names, or the number of last attributes, or None with a hierarchical attribute.
    """
    names = [a.name for a in table.attributes]
    hierarchical = next((a for a in table.attributes if a.kind == "hierarchical"), None)
    if hierarchical is not None:
        return hierarchical.values, hierarchical.name
    if table.sets is not None:
        return tuple(labels or label_sets([table])), None
    if labels is None:
        raise ConfigError(
            f"{table.path} ({table.format}; {_some(names)}): which of them are labels? Give their names "
            "(labels=a,b or a beginning, labels=tag_*; the XML list of an ARFF file), or how many of the last ones "
            "(label_count=)"
        )
    if isinstance(labels, int):
        if not 0 < labels < len(names):
            raise ConfigError(f"label_count=: found {labels}; {table.path} has {len(names)} attributes")
        return tuple(names[-labels:]), None
    wanted = set(labels)
    return tuple(name for name in names if name in wanted), None


def read_label_names(path: str | Path, table: Table) -> list[str]:
    """Label names of Mulan's XML list; each must be an attribute of the table."""
    text = "\n".join(read_lines(path))
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise DataError(path, error.position[0], f"{error.msg}", "an XML list of <label name='...'>") from None
    names: list[Any] = [e.get("name") for e in root.iter() if e.tag.rpartition("}")[2] == "label"]
    known = {a.name for a in table.attributes}
    for name in names:
        if name not in known:
            near = did_you_mean(name or "", known)
            raise DataError(path, None, f"label {name!r}", f"names of attributes of {table.path}.{near}")
    if not names:
        raise DataError(path, None, "no label", "<label name='...'> elements")
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise DataError(path, None, f"label {twice!r} twice", "each label once")
    return names
