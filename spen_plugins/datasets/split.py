"""Stratified splits of a file's rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from spen_plugins.datasets.equal_inputs import count_repeats, number_inputs, repeats_said
from spen_plugins.datasets.places import locate
from spen_plugins.datasets.strata import strata_of
from spen_plugins.datasets.stratification import stratify
from spen_plugins.errors import DataError
from spen_plugins.files import save_text

FOLDS = {"train": range(0, 6), "valid": range(6, 8), "test": range(8, 10)}
"""Folds of ten for each part, as in the protocol of Lee et al. (2022)."""


def split_file(
    path: str | Path,
    out: str | Path | None = None,
    seed: int = 0,
    label_count: int | None = None,
    labels: str | Path | None = None,
    say: Callable[[str], None] = lambda sentence: None,
    together: bool = True,
) -> Path:
    """Split a file 6 : 2 : 2 by iterative stratification; write row numbers, counted from 0, as JSON.

    Rows of equal inputs go to the same part.

    Args:
        path: a file of label sets, texts, tags or roles in any format that a task reads.
        out: the split file; by default `NAME.split.json` next to the file.
        seed: equal seeds give equal splits.
        label_count: number of labels, which are the last columns.
        labels: what to stratify by: label columns, `a,b` or `tag_*`, or a file of their names; by default an ARFF
            file's name with .xml, if it exists, the column `labels` of a CSV file, and the tags, roles or labels of
            formats that say what they are. Of columns of tags, the number of a column.
        say: called with a sentence on what was recognised, and perhaps with a warning.
        together: if false, rows of equal inputs go to any part, as in published splits.

    Returns:
        The split file.
    """
    where = locate(str(path))
    found = strata_of(where, None if labels is None else str(labels), label_count, say)
    inputs = number_inputs(found.inputs if together else range(len(found.labels)))
    fold = stratify(found.labels, 10, seed, inputs, most=2)
    split = {name: np.flatnonzero(np.isin(fold, list(folds))).tolist() for name, folds in FOLDS.items()}
    if not all(split.values()):
        rows = f"{len(inputs)} rows" + f" of {inputs.max() + 1} different inputs" * bool(count_repeats(inputs))
        raise DataError(path, None, rows, "more rows, of which ten different ones are enough for three parts")
    target = Path(out) if out is not None else where.with_suffix(".split.json")
    save_text(json.dumps(split), target)
    sizes = " + ".join(str(len(rows)) for rows in split.values())
    say(f"{path}: {found.said}; {sizes} rows to train, validate and test on{repeats_said(inputs)}")
    return target
