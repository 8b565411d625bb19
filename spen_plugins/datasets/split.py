"""Stratified splits of a multi-label file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from spen_plugins.datasets.places import locate
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.readers.arff import read_arff
from spen_plugins.readers.label_names import label_columns, read_label_names
from spen_plugins.readers.table import Columns

FOLDS = {"train": range(0, 6), "valid": range(6, 8), "test": range(8, 10)}
"""Folds of ten for each part, as in the protocol of Lee et al. (2022)."""


def split_file(
    path: str | Path,
    out: str | Path | None = None,
    seed: int = 0,
    label_count: int | None = None,
    labels: str | Path | None = None,
) -> Path:
    """Split an ARFF file 6 : 2 : 2 by iterative stratification; write row numbers, counted from 0, as JSON.

    Args:
        path: the ARFF file.
        out: the split file; by default `NAME.split.json` next to the ARFF file.
        seed: equal seeds give equal splits.
        label_count: number of labels, which are the last attributes.
        labels: the XML list of labels; by default the file's name with .xml, if it exists.

    Returns:
        The split file.
    """
    where = locate(str(path))
    matrix = _label_matrix(where, label_count, labels)
    fold = stratify(matrix, 10, seed)
    split = {name: np.flatnonzero(np.isin(fold, list(folds))).tolist() for name, folds in FOLDS.items()}
    target = Path(out) if out is not None else where.with_suffix(".split.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_text(json.dumps(split))
    part.replace(target)
    return target


def _label_matrix(path: Path, label_count: int | None, labels: str | Path | None) -> np.ndarray:
    """`(rows, labels)` boolean."""
    table = read_arff(path)
    beside = path.with_suffix(".xml")
    if labels is not None and label_count is not None:
        raise ConfigError("labels and label_count: found both; expected one of the two")
    xml = locate(str(labels)) if labels is not None else beside if label_count is None and beside.exists() else None
    names, classes = label_columns(table, label_count if xml is None else read_label_names(xml, table))
    columns = Columns({}, names, classes)  # features are ignored, so they may have any type
    gold = columns.gold(table)
    if any(row is None for row in gold):
        raise DataError(path, None, "rows without labels", "labels in every row, to stratify by")
    matrix = np.zeros((len(gold), len(columns.labels)), dtype=bool)
    for row, numbers in enumerate(gold):
        matrix[row, numbers] = True
    return matrix


def stratify(labels: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """Iterative stratification (Sechidis et al. 2011, Algorithm 1).

    Rarest label first; each of its rows goes to the fold that still needs most rows of that label; ties go to the fold
    that needs most rows, remaining ties at random.

    Args:
        labels: `(rows, labels)` boolean.
        folds: number of folds, of equal size.
        seed: equal seeds give equal folds (under one version of NumPy's generators).

    Returns:
        The fold of each row, `(rows,)`.
    """
    rng = np.random.default_rng(seed)
    rows = len(labels)
    fold = np.full(rows, -1)
    wanted_rows = np.full(folds, rows / folds)
    wanted = np.tile(labels.sum(0) / folds, (folds, 1)).astype(float)
    left = labels.copy()
    counts = labels.sum(0)  # of each label, in the rows that are left
    while counts.any():
        label = np.where(counts > 0, counts, rows + 1).argmin()
        for row in rng.permutation(np.flatnonzero(left[:, label])):
            best = np.flatnonzero(wanted[:, label] == wanted[:, label].max())
            if len(best) > 1:
                best = best[wanted_rows[best] == wanted_rows[best].max()]
            chosen = rng.choice(best)
            fold[row] = chosen
            wanted[chosen] -= labels[row]
            wanted_rows[chosen] -= 1
            counts = counts - left[row]
            left[row] = False
    for row in rng.permutation(np.flatnonzero(fold < 0)):  # rows without a label
        chosen = wanted_rows.argmax()
        fold[row] = chosen
        wanted_rows[chosen] -= 1
    return fold
