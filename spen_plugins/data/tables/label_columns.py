"""Label columns of a user's table, by its settings or the file itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

from spen_plugins.data.catalogue.places import locate
from spen_plugins.data.table import Table
from spen_plugins.data.tables.label_names import find_labels, label_sets, read_names, some_of
from spen_plugins.errors import ConfigError


def chosen_labels(
    path: str, table: Table, labels: str | Sequence[str] | None, count: int | None, drop: Sequence[str] = ()
) -> tuple[Sequence[str] | int | None, str | None]:
    """Names of the label columns, or how many of the last ones are labels, or None of a hierarchy or sets; and the file
    that lists the names, if one does. Of the table only the header is used.

    `labels` is a name, names, `tag_*` without columns of `drop`, or a file of names; None: of an ARFF file, the XML
    list beside it, if there is, or the labels that the file itself names.
    """
    if table.sets is not None or any(a.kind == "hierarchical" for a in table.attributes):
        if (labels and not table.listed) or count is not None:
            key = "labels" if labels else "label_count"
            raise ConfigError(f"{key}=: labels of {path} are no columns; leave it out")
        return None, None
    beside = Path(path).with_suffix(".xml")
    if labels is None and count is None and table.format == "ARFF" and locate(str(beside)).exists():
        labels = str(beside)
    if labels is None:
        own = table.own_labels
        if own is not None and count not in (None, len(own)):
            raise ConfigError(f"label_count=: found {count}; @relation of {path} says {len(own)} labels")
        return own or count, None
    if lists_names(labels):
        return _check_own(table, find_labels(table, read_names(locate(labels)), source=labels)), labels
    return _check_own(table, find_labels(table, labels, drop)), None


def _check_own(table: Table, names: list[str]) -> list[str]:
    own = table.own_labels
    if own is not None and {*names} != {*own}:
        raise ConfigError(f"labels=: found {', '.join(names[:8])}; @relation of {table.path} says {', '.join(own[:8])}")
    return names


def lists_names(labels: Any) -> TypeGuard[str]:
    """True if a setting `labels` is a file of names, and no column."""
    return isinstance(labels, str) and (labels.endswith((".xml", ".txt")) or locate(labels).is_file())


def find_label_columns(table: Table, labels: Sequence[str] | int | None) -> tuple[tuple[str, ...], str | None]:
    """Label names in the output's order, and the hierarchical attribute whose paths they are, if they are; `labels` as
    of `chosen_labels`."""
    names = [a.name for a in table.attributes]
    hierarchical = next((a for a in table.attributes if a.kind == "hierarchical"), None)
    if hierarchical is not None:
        return hierarchical.values, hierarchical.name
    if table.sets is not None:
        return tuple(labels or label_sets([table])), None
    if labels is None:
        raise ConfigError(
            f"{table.path} ({table.format}; {some_of(names)}): which of them are labels? Give their names "
            "(labels=a,b or a beginning, labels=tag_*; the XML list of an ARFF file), or how many of the last ones "
            "(label_count=)"
        )
    if not isinstance(labels, int):
        wanted = {*labels}
        return tuple(name for name in names if name in wanted), None
    if not 0 < labels < len(names):
        raise ConfigError(f"label_count=: found {labels}; {table.path} has {len(names)} attributes")
    return tuple(names[-labels:]), None
