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
        seed: equal seeds give equal folds (under one version of NumPy's generators).
        inputs: `(rows,)` number of each row's input, from 0 in the order of their first rows; None: all differ.
        most, home: an input with more rows than so many folds goes to fold `home`.

    Returns:
        The fold of each row, `(rows,)`.
    """
    if inputs is not None and len(inputs) > inputs.max(initial=-1) + 1:
        sizes = np.bincount(inputs)
        counts = np.zeros((len(sizes), labels.shape[1]), dtype=np.int32)
        np.add.at(counts, inputs, labels)
        frequent = np.flatnonzero(sizes > max(1, most * len(labels) / folds))
        return _stratify(counts, sizes, folds, seed, frequent, home)[inputs]
    return _stratify(labels, np.ones(len(labels), dtype=np.int64), folds, seed, np.arange(0), home)


def _stratify(
    labels: np.ndarray, sizes: np.ndarray, folds: int, seed: int, frequent: np.ndarray, home: int
) -> np.ndarray:
    """The fold of each group of rows, `(groups,)`.

    Args:
        labels: `(groups, labels)` how many of a group's rows have each label.
        sizes: `(groups,)` number of rows.
        frequent: numbers of the groups that go to fold `home`.
    """
    rng = np.random.default_rng(seed)
    rows = int(sizes.sum())
    fold = np.full(len(sizes), -1)

    def largest_first(groups: np.ndarray) -> np.ndarray:
        shuffled = rng.permutation(groups)
        return shuffled[np.argsort(-sizes[shuffled], kind="stable")]

    wanted_rows = np.full(folds, rows / folds)
    wanted = np.tile(labels.sum(0) / folds, (folds, 1)).astype(float)
    left = labels.copy()
    fold[frequent], left[frequent] = home, 0
    wanted[home] -= labels[frequent].sum(0)
    wanted_rows[home] -= sizes[frequent].sum()
    counts = left.sum(0)  # of each label, in the rows that are left
    while counts.any():
        label = np.where(counts > 0, counts, rows + 1).argmin()
        for group in largest_first(np.flatnonzero(left[:, label])):
            best = np.flatnonzero(wanted[:, label] == wanted[:, label].max())
            if len(best) > 1:
                best = best[wanted_rows[best] == wanted_rows[best].max()]
            chosen = rng.choice(best)
            fold[group] = chosen
            wanted[chosen] -= labels[group]
            wanted_rows[chosen] -= sizes[group]
            counts = counts - left[group]
            left[group] = False
    for group in largest_first(np.flatnonzero(fold < 0)):  # rows without a label
        chosen = wanted_rows.argmax()
        fold[group] = chosen
        wanted_rows[chosen] -= sizes[group]
    return fold


def label_matrix(labels: Sequence[Collection[Hashable]]) -> np.ndarray:
    """Boolean `(rows, labels)`, labels in the order of their first row, those of a set by name."""
    place: dict[Hashable, int] = {}
    rows = (sorted(some, key=str) if isinstance(some, Set) else dict.fromkeys(some) for some in labels)
    at = [[place.setdefault(label, len(place)) for label in some] for some in rows]
    matrix = np.zeros((len(labels), len(place)), dtype=bool)
    for row, columns in enumerate(at):
        matrix[row, columns] = True
    return matrix
