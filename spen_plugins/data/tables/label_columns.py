"""Which columns of a user's table are labels, by its settings or the file itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

from spen_plugins.data.catalogue.places import locate
from spen_plugins.data.table import Table
from spen_plugins.data.tables.label_names import listed_labels, named_labels
from spen_plugins.errors import ConfigError


def chosen_labels(
    path: str, table: Table, labels: str | Sequence[str] | None, count: int | None, drop: Sequence[str] = ()
) -> tuple[Sequence[str] | int | None, str | None]:
    """Names of the label columns, or how many of the last ones are labels, or None of a hierarchy or sets; and the file
    that lists the names, if one does.

    Args:
        path: the table's file, as the user names it.
        table: its content; only the header is used.
        labels: a name, names, `tag_*`, or a file of names; None: of an ARFF file, the XML list beside it, if there is,
            or what the file itself says.
        drop: columns that a pattern does not take.
        count: how many of the last columns are labels; in a file that says which are, their number.

    Raises:
        ConfigError: a name is none of a column, the file's labels are no columns, or it says that others are.
        DataError: the file of names is missing or broken.
    """
    if table.sets is not None or any(a.kind == "hierarchical" for a in table.attributes):
        if (labels and not table.listed) or count is not None:
            what = "what its rows begin with" if table.sets is not None else "its hierarchical attribute's paths"
            key = "labels" if labels else "label_count"
            raise ConfigError(f"{key}=: labels of {path} are {what}; leave it out")
        return None, None
    beside = Path(path).with_suffix(".xml")
    if labels is None and count is None and table.format == "ARFF" and locate(str(beside)).exists():
        labels = str(beside)
    own = table.own_labels
    if labels is None:
        if own is not None and count not in (None, len(own)):
            raise ConfigError(f"label_count=: found {count}; @relation of {path} says {_some(own)}")
        return own or count, None
    listed = lists_names(labels)
    names = listed_labels(locate(labels), table) if listed else named_labels(table, labels, drop)
    if own is not None and {*names} != {*own}:
        raise ConfigError(f"labels=: found {_some(names)}; @relation of {path} says {_some(own)}")
    return names, labels if listed else None


def lists_names(labels: Any) -> TypeGuard[str]:
    """True if a setting `labels` is a file of names, and no column."""
    return isinstance(labels, str) and (labels.endswith((".xml", ".txt")) or locate(labels).is_file())


def _some(names: Sequence[str]) -> str:
    return f"{len(names)} labels ({', '.join(names[:8])}{', …' * (len(names) > 8)})"
