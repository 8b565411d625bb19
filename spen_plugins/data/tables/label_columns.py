"""Label columns of a user's table, by its settings, keys of a command or the file itself."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from typing import Any, TypeGuard

import numpy as np

from spen_plugins.data.catalogue import locate
from spen_plugins.data.table import Table
from spen_plugins.data.text import read_lines
from spen_plugins.errors import ConfigError, DataError, did_you_mean


def split_names(value: Any) -> Any:
    """The names of `a,b` or `[a,b]` as a list; any other value, such as a name or a pattern, as it is."""
    if not isinstance(value, str) or not ("," in value or value[:1] + value[-1:] == "[]"):
        return value
    content = value[1:-1] if value[:1] + value[-1:] == "[]" else value
    return [name.strip(" '\"") for name in content.split(",")]


def find_labels(
    table: Table, labels: str | Sequence[str], drop: Sequence[str] = (), source: str = "labels="
) -> list[str]:
    """Names of a table's label columns, from a name, names, or `tag_*`: all columns with this prefix, except `drop`."""
    names = [a.name for a in table.attributes]
    if isinstance(labels, str) and labels.endswith("*"):
        matches = [name for name in names if name.startswith(labels[:-1]) and name not in drop]
        if not matches:
            raise ConfigError(f"labels=: no column of {table.path} begins with {labels[:-1]!r}; {some_of(names)}")
        return matches
    for name in (chosen := dict.fromkeys([labels] if isinstance(labels, str) else labels)):
        if name not in names:
            suggestion = did_you_mean(name, names)
            columns = some_of(names).replace("its", "Its", 1)
            raise ConfigError(f"{source}: {table.path} has no column {name!r}.{suggestion} {columns}")
    return list(chosen)


def some_of(names: Sequence[str]) -> str:
    """The first columns' names, for a message."""
    return f"its columns are {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"


def read_names(path: str | Path) -> list[str]:
    """Label names in a file, Mulan's XML list or one per line, in the order of their numbers."""
    lines = read_lines(path)
    is_xml = lines[0].lstrip().startswith("<")
    names = _parse_xml_names(path, "\n".join(lines)) if is_xml else [line.strip() for line in lines]
    previous_names: set[str] = set()
    for number, name in enumerate(names, 1):
        if not name or name in previous_names:
            problem = f"label {name!r} twice" if name else "an empty name"
            raise DataError(path, None if is_xml else number, problem, "label names, each once")
        previous_names.add(name)
    return names


def _parse_xml_names(path: str | Path, text: str) -> list[str]:
    expected = "an XML list of <label name='...'>"
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise DataError(path, error.position[0], error.msg, expected) from None
    names = [e.get("name", "") for e in root.iter() if e.tag.rpartition("}")[2] == "label"]
    if not names:
        raise DataError(path, None, "no label", expected)
    return names


def number_labels(
    names: Iterable[str], numbers: Mapping[str, int], labels: Sequence[str], kind: str, source: object, line: int | None
) -> np.ndarray:
    """Numbers of an example's labels, sorted, int32.

    Args:
        names: the example's labels.
        numbers: the number of each label, by every name that it may have.
        labels, kind: all labels, and what they are, for messages.
        source, line: the example's file and line, for messages.

    Raises:
        DataError: a label is not in `numbers`.
    """
    names = list(names)
    for name in names:
        if name not in numbers:
            expected = f"one of the {len(labels)} {kind}.{did_you_mean(name, labels)}"
            raise DataError(source, line, f"label {name!r}", expected)
    return np.array(sorted({numbers[name] for name in names}), dtype=np.int32)


def label_sets(tables: Iterable[Table]) -> list[str]:
    """All names in the tables' sets of labels, sorted; numbers come first, in numeric order."""
    names = {name for table in tables for row in table.sets or () for name in row or ()}
    return sorted(names, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))


def chosen_labels(
    path: str, table: Table, labels: str | Sequence[str] | None, count: int | None, drop: Sequence[str] = ()
) -> tuple[Sequence[str] | int | None, str | None]:
    """Names of the label columns, or the number of last columns that are labels, or None for a hierarchy or sets; and
    the file that lists the names, if one does. Only the table's header is used.

    `labels` is a name, names, `tag_*` without columns of `drop`, or a file of names. None: for an ARFF file, the XML
    list beside it, if it exists, or the labels that the file itself names.
    """
    if table.sets is not None or any(a.kind == "hierarchical" for a in table.attributes):
        if (labels and not table.listed) or count is not None:
            key = "labels" if labels else "label_count"
            raise ConfigError(f"{key}=: labels of {path} are not columns; remove the key")
        return None, None
    xml_path = Path(path).with_suffix(".xml")
    if labels is None and count is None and table.format == "ARFF" and locate(str(xml_path)).exists():
        labels = str(xml_path)
    if labels is None:
        own_labels = table.own_labels
        if own_labels is not None and count not in (None, len(own_labels)):
            raise ConfigError(f"label_count=: found {count}; expected {len(own_labels)}, as in @relation of {path}")
        return own_labels or count, None
    if lists_names(labels):
        return _check_own_labels(table, find_labels(table, read_names(locate(labels)), source=labels)), labels
    return _check_own_labels(table, find_labels(table, labels, drop)), None


def _check_own_labels(table: Table, names: list[str]) -> list[str]:
    own_labels = table.own_labels
    if own_labels is not None and {*names} != {*own_labels}:
        raise ConfigError(
            f"labels=: found {', '.join(names[:8])}; @relation of {table.path} has {', '.join(own_labels[:8])}"
        )
    return names


def lists_names(labels: Any) -> TypeGuard[str]:
    """True if a setting `labels` is a file of names, not a column."""
    return isinstance(labels, str) and (labels.endswith((".xml", ".txt")) or locate(labels).is_file())


def find_label_columns(table: Table, labels: Sequence[str] | int | None) -> tuple[tuple[str, ...], str | None]:
    """Label names in the output's order, and the hierarchical attribute whose paths they are, if there is one;
    `labels` is as `chosen_labels` returns it."""
    names = [a.name for a in table.attributes]
    class_attribute = next((a for a in table.attributes if a.kind == "hierarchical"), None)
    if class_attribute is not None:
        return class_attribute.values, class_attribute.name
    if table.sets is not None:
        return tuple(labels or label_sets([table])), None
    if labels is None:
        raise ConfigError(
            f"{table.path} ({table.format}; {some_of(names)}): which of them are labels? Pass their names "
            "(labels=a,b), a prefix (labels=tag_*), the XML list of an ARFF file (labels=FILE), or the number of the "
            "last columns (label_count=)"
        )
    if not isinstance(labels, int):
        chosen = {*labels}
        return tuple(name for name in names if name in chosen), None
    if not 0 < labels < len(names):
        raise ConfigError(f"label_count=: found {labels}; {table.path} allows 1 to {len(names) - 1} of its columns")
    return tuple(names[-labels:]), None


@dataclass(frozen=True)
class ColumnKeys:
    """Columns of a file, as configs and commands name them.

    Args:
        text: the texts' column, by name or number from 1.
        labels: a column of labels, by name or number from 1; several names, or `tag_*`, of columns of 0 and 1; or a
            file of names.
        label_count: the number of last columns that are labels, for vectors.
        separator: separates the labels in one cell.
        drop: columns that are not used.
        words, tags: the columns of tagged words, by number from 0 or name.
        scheme: the scheme of tags that are spans; selects these tags in a file that also has parts of speech.
    """

    text: int | str | None = None
    labels: int | str | Sequence[str] | None = None
    label_count: int | None = None
    separator: str | None = None
    drop: Sequence[str] = ()
    words: int | str | None = None
    tags: int | str | None = None
    scheme: str | None = None

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> ColumnKeys:
        """From values by key, as given on a command line or in Python."""
        for key in settings:
            if key not in KEYS:
                raise ConfigError(f"Unknown key {key!r}.{did_you_mean(key, KEYS)} Keys: {', '.join(KEYS)}")
        values = {key: split_names(value) if key in ("labels", "drop") else value for key, value in settings.items()}
        if (drop := values.get("drop")) is not None:
            values["drop"] = list(map(str, drop)) if isinstance(drop, (list, tuple)) else [str(drop)]
        if values.get("labels") is not None and values.get("label_count") is not None:
            raise ConfigError("labels= and label_count=: found both; expected one of the two")
        return cls(**{key: value for key, value in values.items() if value is not None})

    @classmethod
    def from_config(cls, config: Any) -> ColumnKeys:
        """The keys that a task's config sets."""
        keys = [key for key in KEYS if key != "words" or hasattr(config, "tags")]  # `words` of texts is not a column
        values = {key: getattr(config, key, None) for key in keys}
        values["drop"] = getattr(config, "unused", None)
        if values["scheme"] == "none" or getattr(config, "format", None) == "predicates":
            values["scheme"] = None
        return cls.from_settings(values)

    def settings(self) -> dict[str, Any]:
        """The keys with values."""
        values = {key: getattr(self, key) for key in KEYS}
        return {key: value for key, value in values.items() if value not in (None, (), [])}

    def spelled(self) -> str:
        """The keys as words of a command line."""
        settings = self.settings().items()
        texts = {key: ",".join(value) if isinstance(value, (list, tuple)) else str(value) for key, value in settings}
        return " ".join(quote(f"{key}={text}") for key, text in texts.items())


KEYS = tuple(field.name for field in fields(ColumnKeys))
