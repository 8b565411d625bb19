"""Predicted label sets as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spen_plugins.errors import DataError
from spen_plugins.readers.csv_rows import written
from spen_plugins.task import Writer


def columns_csv(labels: Sequence[str]) -> Writer:
    """A column of 0 and 1 for each label, and a record for each example."""

    def write(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        return written([labels, *([int(name in found["labels"]) for name in labels] for found in predictions)])

    return write


def texts_csv(separator: str) -> Writer:
    """Columns `text` and `labels`, these divided by `separator`."""

    def write(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        records = [["text", "labels"]]
        for found, example in zip(predictions, examples, strict=True):
            odd = next((name for name in found["labels"] if separator in name), None)
            if odd is not None:
                wanted = f"labels without {separator!r}, which divides them (task.separator); jsonl holds any"
                raise DataError("output", None, f"label {odd!r}", wanted)
            records.append([example.text, separator.join(found["labels"])])
        return written(records)

    return write
