"""Predicted label sets as CSV, after the user's own columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spen_plugins.builtin.tasks.labels.label_parts import Columns
from spen_plugins.data.records import written
from spen_plugins.errors import DataError
from spen_plugins.task import Writer

PREDICTED, PROBABILITY = "predicted", "p"


def label_csv(
    labels: Sequence[str], columns: Callable[[Sequence[Any]], Columns], separator: str | None = None
) -> Writer:
    """The user's columns as they are, then the predicted labels, then a probability for each label.

    Predicted labels are in columns `predicted_LABEL` of 0 and 1, or in one column `predicted`; probabilities are in
    columns `p_LABEL`. An underscore is added to names that the user's columns have.

    Args:
        labels: all labels.
        columns: the user's columns, given the examples.
        separator: the separator of labels in one column; None for a column per label.

    Raises:
        DataError: a label contains the separator.
    """
    _check_separator(labels, separator)

    def write(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        names, rows = columns(examples)
        if separator is None:
            new_names = _rename_taken(names, [f"{PREDICTED}_{label}" for label in labels])
        else:
            new_names = _rename_taken(names, [PREDICTED])
        new_names += _rename_taken(names, [f"{PROBABILITY}_{label}" for label in labels])
        records: list[Sequence[Any]] = [[*names, *new_names]]
        for cells, prediction in zip(rows, predictions, strict=True):
            on_labels, p = prediction["labels"], prediction["probabilities"]
            label_cells = [separator.join(on_labels)] if separator else [int(label in on_labels) for label in labels]
            records.append([*cells, *label_cells, *(p[label] for label in labels)])
        return written(records)

    return write


def _rename_taken(used_names: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names, each with the same number of underscores appended, so that none is taken."""
    while {*used_names} & {*names}:
        names = [f"{name}_" for name in names]
    return list(names)


def _check_separator(labels: Sequence[str], separator: str | None) -> None:
    label = next((name for name in labels if separator and separator in name), None)
    if label is not None:
        unused = next((mark for mark in ";|/" if not any(mark in name for name in labels)), None)
        remedy = f'pass "separator={unused}", or ' if unused else ""
        expected = f"labels without the separator {separator!r}; {remedy}use --format jsonl, which allows any label"
        raise DataError("--format csv", None, f"label {label!r}", expected)
