"""Iterative stratification of rows by their labels."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence, Set

import numpy as np


def stratify(
    labels: np.ndarray, folds: int, seed: int, inputs: np.ndarray | None = None, most: int = 1, home: int = 0
) -> np.ndarray:
    """Iterative stratification (Sechidis et al. 2011, Algorithm 1).

    Rarest label first; each of its rows goes to the fold that still needs most rows of that label; ties go to the fold
    that needs most rows, remaining ties at random. Rows of equal inputs go together, the most frequent inputs first.

    Args:
        labels: `(rows, labels)` boolean.
        folds: number of folds, of equal size.
        inputs: `(rows,)` number of each row's input, from 0 in the order of their first rows; None: all differ.
        most, home: an input with more rows than so many folds goes to fold `home`.

    Returns:
        The fold of each row, `(rows,)`.
    """
    inputs = np.arange(len(labels)) if inputs is None else inputs
    sizes = np.bincount(inputs)
    counts = np.zeros((len(sizes), labels.shape[1]), dtype=np.int32)  # of each input's rows with each label
    np.add.at(counts, inputs, labels)
    frequent = np.flatnonzero(sizes > max(1, most * len(labels) / folds))
    rng = np.random.default_rng(seed)
    fold = np.full(len(sizes), -1)

    def largest_first(groups: np.ndarray) -> np.ndarray:
        shuffled = rng.permutation(groups)
        return shuffled[np.argsort(-sizes[shuffled], kind="stable")]

    wanted_rows = np.full(folds, len(labels) / folds)
    wanted = np.tile(counts.sum(0) / folds, (folds, 1)).astype(float)
    left = counts.copy()
    fold[frequent], left[frequent] = home, 0
    wanted[home] -= counts[frequent].sum(0)
    wanted_rows[home] -= sizes[frequent].sum()
    total = left.sum(0)  # of each label, in the rows that are left
    while total.any():
        label = np.where(total > 0, total, len(labels) + 1).argmin()
        for group in largest_first(np.flatnonzero(left[:, label])):
            best = np.flatnonzero(wanted[:, label] == wanted[:, label].max())
            if len(best) > 1:
                best = best[wanted_rows[best] == wanted_rows[best].max()]
            chosen = rng.choice(best)
            fold[group] = chosen
            wanted[chosen] -= counts[group]
            wanted_rows[chosen] -= sizes[group]
            total = total - left[group]
            left[group] = 0
    for group in largest_first(np.flatnonzero(fold < 0)):  # rows without a label
        chosen = wanted_rows.argmax()
        fold[group] = chosen
        wanted_rows[chosen] -= sizes[group]
    return fold[inputs]


def label_matrix(labels: Sequence[Collection[Hashable]]) -> np.ndarray:
    """Boolean `(rows, labels)`, labels in the order of their first row, those of a set by name."""
    place: dict[Hashable, int] = {}
    rows = (sorted(some, key=str) if isinstance(some, Set) else dict.fromkeys(some) for some in labels)
    at = [[place.setdefault(label, len(place)) for label in some] for some in rows]
    matrix = np.zeros((len(labels), len(place)), dtype=bool)
    for row, columns in enumerate(at):
        matrix[row, columns] = True
    return matrix
