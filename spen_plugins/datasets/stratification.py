"""Iterative stratification of rows by their labels."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

import numpy as np


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


def label_matrix(labels: Sequence[Collection[Hashable]]) -> np.ndarray:
    """Boolean `(rows, labels)`, labels in the order of their first row."""
    place: dict[Hashable, int] = {}
    at = [[place.setdefault(label, len(place)) for label in dict.fromkeys(some)] for some in labels]
    matrix = np.zeros((len(labels), len(place)), dtype=bool)
    for row, columns in enumerate(at):
        matrix[row, columns] = True
    return matrix
