"""Predictions in file formats."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spen_plugins.errors import ConfigError
from spen_plugins.files import save_bytes, to_json
from spen_plugins.runs.predict.predictor import Predictor
from spen_plugins.task_parts import ListsLabels, WritesFormats

JSON_LINES = "jsonl"


def make_writer(
    predictor: Predictor, form: str, out: Path | None, energy: bool = False
) -> Callable[[Sequence[Any], Sequence[Any]], None]:
    """A function that writes predictions and their examples in a format, to a file or to standard output."""
    task = predictor.task
    has_formats = form != JSON_LINES and isinstance(task, WritesFormats)
    formats = {JSON_LINES: json_lines, **(task.formats() if has_formats else {})}
    if form not in formats:
        kind, names = predictor.experiment.task.type, ", ".join(formats)
        raise ConfigError(f"found --format {form}; expected {names} for this run's task {kind!r}")
    if energy and form != JSON_LINES:
        raise ConfigError(f"--energy adds a field to JSON, which --format {form} can't hold; omit one of them")
    if form == "docbin" and out is None:
        raise ConfigError("--format docbin is binary; name a file: --out corpus.spacy")

    def write(predictions: Sequence[Any], examples: Sequence[Any]) -> None:
        content = formats[form](predictions, examples)
        data = content.encode() if isinstance(content, str) else content
        if out is None:
            sys.stdout.write(data.decode())
            return
        save_bytes(data, out, parents=True)

    return write


def json_lines(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
    """One JSON value per line; null for a number that is NaN or infinite."""
    return "".join(to_json(value) + "\n" for value in predictions)


def choose_labels_shown(predictor: Predictor, all_labels: bool, form: str = JSON_LINES) -> Iterator[str]:
    """Set how many labels' probabilities are listed; yields a note if not all are."""
    task = predictor.task
    if not isinstance(task, ListsLabels):
        if all_labels:
            kind = predictor.experiment.task.type
            raise ConfigError(f"--all requires label sets, which this run's task {kind!r} does not predict; omit it")
        return
    labels = len(getattr(task.space, "labels", ()))
    if all_labels or form != JSON_LINES:  # a table has a column for each label
        task.shown = None
    elif task.shown is not None and labels > task.shown:
        yield f"probabilities of the {task.shown} likeliest of {labels} labels, and of those predicted; --all lists all"
