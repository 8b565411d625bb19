"""Facts about label sets besides their labels: the hierarchy, from a file or from paths, and the largest set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.on_disk import chosen
from spen_plugins.data.tables.table_columns import ROOT
from spen_plugins.data.text import read_lines, shorten
from spen_plugins.errors import ConfigError, DataError, did_you_mean
from spen_plugins.task import COUNTED


def find_largest(examples: Sequence[Any]) -> int:
    """The number of labels of the largest set among training examples; 0 without gold."""
    sample = chosen(examples, range(0, len(examples), max(1, -(-len(examples) // COUNTED))))
    return max((len(example.gold) for example in sample if example.gold is not None), default=0)


def read_parents(hierarchy: str | Mapping[str, str], labels: Sequence[str]) -> list[int | None]:
    """The index of each label's parent, None for a root, from a table {child: parent} or a file of lines with a child
    and its parent, separated by a tab or, if there is none, by a blank.

    Raises:
        ConfigError: a label has two parents, or a table has an unknown label.
        DataError: a line has another number of labels, or an unknown label.
    """
    indices = {label: i for i, label in enumerate(labels)}
    parents: list[int | None] = [None] * len(labels)
    if isinstance(hierarchy, str):
        pairs = [(n, _split(hierarchy, n, line)) for n, line in enumerate(read_lines(locate(hierarchy)), 1) if line]
    else:
        pairs = [(0, pair) for pair in hierarchy.items()]
    for line, pair in pairs:
        for name in pair:
            if name not in indices:
                problem, expected = f"label {name!r}", f"one of the {len(labels)} labels"
                suggestion = did_you_mean(name, labels)
                if line:
                    advice = "; remove lines whose labels do not occur in the data"
                    raise DataError(hierarchy, line, problem, f"{expected}{advice}.{suggestion}")
                raise ConfigError(f"task.hierarchy: found {problem}; expected {expected}.{suggestion}")
        child, parent = (indices[name] for name in pair)
        if parents[child] not in (None, parent):
            raise ConfigError(
                f"task.hierarchy: {pair[0]!r} has two parents, {labels[parents[child] or 0]!r} and {pair[1]!r}; "
                "expected at most one per label"
            )
        parents[child] = parent
    return parents


def _split(path: str, number: int, line: str) -> tuple[str, str]:
    cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]
    if len(cells) != 2:
        raise DataError(path, number, shorten(line), "a label and its parent, separated by a tab or a blank")
    return cells[0], cells[1]


def list_path_parents(labels: Sequence[str]) -> list[int | None]:
    """The index of each label's parent, for labels that are paths: the parent of `01/01` is `01`, and that of `01` is
    the root, if the root is a label."""
    indices = {label: i for i, label in enumerate(labels)}
    root = indices.get(ROOT)
    return [None if label == ROOT else indices.get(label.rpartition("/")[0], root) for label in labels]
