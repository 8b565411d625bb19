"""Predicted label sets as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from spen_plugins.errors import DataError
from spen_plugins.readers.csv_rows import written
from spen_plugins.readers.label_cells import SEPARATOR
from spen_plugins.readers.text_columns import Layout
from spen_plugins.task import Writer


def columns_csv(labels: Sequence[str]) -> Writer:
    """A column of 0 and 1 for each label, and a record for each example."""

    def write(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        return written([labels, *([int(name in found["labels"]) for name in labels] for found in predictions)])

    return write


def texts_csv(layout: Layout, labels: Sequence[str], place: Mapping[str, int]) -> Writer:
    """Texts with their labels, in columns where a run with this layout finds them.

    Args:
        layout: the run's.
        labels: all labels.
        place: index of each label, by all its names.
    """
    text = layout.text if isinstance(layout.text, str) else "text"
    switches = _switches(layout, labels, place)
    one = layout.labels if isinstance(layout.labels, str) else "labels"
    columns = list(switches) or [one]
    places = _places(layout, len(columns))

    def record(text: str, cells: Sequence[Any]) -> list[Any]:
        at = dict(zip(places, [text, *cells], strict=True))
        return [at.get(place, "") for place in range(max(places) + 1)]

    def write(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        records = [] if layout.header is False else [record(text, columns)]
        for found, example in zip(predictions, examples, strict=True):
            on: Sequence[str] = found["labels"]
            cells = [int(label in on) for label in switches.values()] or [_joined(on, layout.separator or SEPARATOR)]
            records.append(record(example.text, cells))
        return written(records)

    return write


def _switches(layout: Layout, labels: Sequence[str], place: Mapping[str, int]) -> dict[str, str]:
    """The label of each column of 0 and 1, by the column's name; none if all labels are in one column."""
    if isinstance(layout.labels, int) or (isinstance(layout.labels, str) and not layout.labels.endswith("*")):
        return {}
    named = [] if isinstance(layout.labels, str) else layout.labels
    found = {name: labels[place[name]] if name in place else name for name in named}  # some may occur nowhere
    return found | {label: label for label in labels if label not in found.values()}


def _places(layout: Layout, labels: int) -> list[int]:
    """Places, from 0, of the text and of so many columns of labels: the layout's, or the first ones that are free.

    What a layout doesn't name is found by the header's names, wherever it is.
    """
    usual = (Layout.text, Layout.labels) if layout.header is not False else (None, None)
    named = zip((layout.text, layout.labels), usual, strict=True)
    given = [column - 1 if isinstance(column, int) and column != by_name else None for column, by_name in named]
    given += [None] * (labels - 1)
    free = (place for place in count() if place not in given)
    return [next(free) if place is None else place for place in given]


def _joined(labels: Sequence[str], separator: str) -> str:
    odd = next((name for name in labels if separator in name), None)
    if odd is not None:
        wanted = f"labels without {separator!r}, which divides them (separator=); jsonl holds any"
        raise DataError("output", None, f"label {odd!r}", wanted)
    return separator.join(labels)
