"""Iterative stratification of rows by their labels; a validation part carved from the training file."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence, Set
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from spen_plugins.data.equal_inputs import describe_repeats, number_inputs
from spen_plugins.errors import DataError


def stratify(
    labels: np.ndarray, folds: int, seed: int, inputs: np.ndarray | None = None, max_folds: int = 1, home: int = 0
) -> np.ndarray:
    """Iterative stratification (Sechidis et al. 2011, Algorithm 1).

    Labels are taken from the rarest on. Each row of a label goes to the fold that still needs most rows of that label;
    ties go to the fold that needs most rows, remaining ties at random. Rows of equal inputs stay together, the most
    frequent inputs first.

    Args:
        labels: `(rows, labels)` boolean.
        folds: number of folds, of equal size.
        inputs: `(rows,)` number of each row's input, from 0 in the order of their first rows; None: all differ.
        max_folds, home: an input with more rows than `max_folds` folds have goes to fold `home`.

    Returns:
        The fold of each row, `(rows,)`.
    """
    inputs = np.arange(len(labels)) if inputs is None else inputs
    sizes = np.bincount(inputs)
    counts = np.zeros((len(sizes), labels.shape[1]), dtype=np.int32)  # each input's number of rows with each label
    np.add.at(counts, inputs, labels)
    frequent = np.flatnonzero(sizes > max(1, max_folds * len(labels) / folds))
    rng = np.random.default_rng(seed)
    fold = np.full(len(sizes), -1)

    def largest_first(groups: np.ndarray) -> np.ndarray:
        shuffled = rng.permutation(groups)
        return shuffled[np.argsort(-sizes[shuffled], kind="stable")]

    needed_rows = np.full(folds, len(labels) / folds)
    needed = np.tile(counts.sum(0) / folds, (folds, 1)).astype(float)
    remaining = counts.copy()
    fold[frequent], remaining[frequent] = home, 0
    needed[home] -= counts[frequent].sum(0)
    needed_rows[home] -= sizes[frequent].sum()
    total = remaining.sum(0)  # of each label, in the remaining rows
    while total.any():
        label = np.where(total > 0, total, len(labels) + 1).argmin()
        for group in largest_first(np.flatnonzero(remaining[:, label])):
            best = np.flatnonzero(needed[:, label] == needed[:, label].max())
            if len(best) > 1:
                best = best[needed_rows[best] == needed_rows[best].max()]
            chosen = rng.choice(best)
            fold[group] = chosen
            needed[chosen] -= counts[group]
            needed_rows[chosen] -= sizes[group]
            total = total - remaining[group]
            remaining[group] = 0
    for group in largest_first(np.flatnonzero(fold < 0)):  # rows without a label
        chosen = needed_rows.argmax()
        fold[group] = chosen
        needed_rows[chosen] -= sizes[group]
    return fold[inputs]


def label_matrix(labels: Sequence[Collection[Hashable]]) -> np.ndarray:
    """Boolean `(rows, labels)`; labels are in the order of their first row, and by name within a set."""
    numbers: dict[Hashable, int] = {}
    rows = (
        sorted(row_labels, key=str) if isinstance(row_labels, Set) else dict.fromkeys(row_labels)
        for row_labels in labels
    )
    column_lists = [[numbers.setdefault(label, len(numbers)) for label in row_labels] for row_labels in rows]
    matrix = np.zeros((len(labels), len(numbers)), dtype=bool)
    for row, columns in enumerate(column_lists):
        matrix[row, columns] = True
    return matrix


SEED = 0
FEW = 1000
"""Number of rows below which a fifth of them is carved off, instead of a tenth."""


class Carved(NamedTuple):
    """The training and validation rows of a training file, in its order; a sentence about them; "one of 5 folds"."""

    train: list[int]
    validation: list[int]
    description: str
    folds: str


def carve(
    labels: Sequence[Collection[Hashable] | None],
    path: object,
    noun: str = "labels",
    share: float | None = None,
    seed: int = SEED,
    inputs: Sequence[Hashable] | None = None,
) -> Carved:
    """Carve a validation part from a training file, the same each time, stratified by `labels`; equal inputs stay
    together.

    A row whose labels are unknown stays in the training part. `share` is the validation part's share of the other rows,
    above 0 and at most 0.5, matched as closely as 100 folds allow; by default 0.2, or 0.1 from `FEW` rows on.
    """
    numbers = np.arange(len(labels)) if inputs is None else number_inputs(inputs)
    unlabelled = set(numbers[[names is None for names in labels]].tolist())
    labelled = [
        (row, names) for row, names in enumerate(labels) if names is not None and numbers[row] not in unlabelled
    ]
    rows = [row for row, _ in labelled]
    unique_inputs, row_inputs = np.unique(numbers[rows], return_inverse=True)
    if len(unique_inputs) < 2:
        problem = f"{len(rows)} rows with {noun}" if len(rows) < 2 else f"{len(rows)} equal inputs with {noun}"
        raise DataError(path, None, problem, "at least two different inputs, so that one can be used for validation")
    validation_folds, folds = _find_folds(share or (0.2 if len(rows) < FEW else 0.1), len(unique_inputs))
    fold = stratify(
        label_matrix([names for _, names in labelled]), folds, seed, row_inputs, validation_folds, home=folds - 1
    )
    is_validation = fold < validation_folds
    if not is_validation.any():  # with very few rows, a fold may be empty
        sizes = np.bincount(fold)
        is_validation = fold == (
            sizes.argmax() if len(unique_inputs) == len(rows) else np.where(sizes, sizes, len(fold)).argmin()
        )
    validation = np.array(rows)[is_validation].tolist()
    portion = f"{'one' if validation_folds == 1 else validation_folds} of {folds} folds"
    train = sorted(set(range(len(labels))) - set(validation))
    note = (
        f"no validation file is named: {len(validation)} of the {len(labels)} rows of {path} are the validation part, "
        f"{portion} by iterative stratification over {noun} (Sechidis et al. 2011), seed {seed}"
        + describe_repeats(numbers)
    )
    return Carved(train, validation, note, portion)


def _find_folds(share: float, rows: int) -> tuple[int, int]:
    """The number of folds that make up a share of the rows, at least one, and the number of all folds."""
    fraction = Fraction(share).limit_denominator(min(100, rows)) or Fraction(1, min(rows, round(1 / share)))
    return fraction.numerator, fraction.denominator
