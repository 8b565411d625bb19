"""Iterative stratification of rows by their labels; a validation part carved from the training file."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence, Set
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from spen_plugins.data.equal_inputs import describe_repeats, number_inputs
from spen_plugins.errors import DataError


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


SEED = 0
FEW = 1000
"""Rows below which a fifth of them is carved off, instead of a tenth."""


class Carved(NamedTuple):
    """Rows of a training file, in its order: those that stay, those that validate; a sentence; "one of 5 folds"."""

    train: list[int]
    validation: list[int]
    said: str
    folds: str


def carve(
    labels: Sequence[Collection[Hashable] | None],
    path: object,
    what: str = "labels",
    share: float | None = None,
    seed: int = SEED,
    inputs: Sequence[Hashable] | None = None,
) -> Carved:
    """Carve a validation part from a training file, the same each time, stratified by `labels`; equal inputs stay
    together.

    A row whose labels are unknown stays in the training part. `share` is of the rows that validate, above 0 and at most
    0.5, kept to as closely as 100 folds allow; by default 0.2, or 0.1 from `FEW` rows on.
    """
    numbers = np.arange(len(labels)) if inputs is None else number_inputs(inputs)
    without = set(numbers[[found is None for found in labels]].tolist())
    some = [(row, found) for row, found in enumerate(labels) if found is not None and numbers[row] not in without]
    known = [row for row, _ in some]
    different, own = np.unique(numbers[known], return_inverse=True)
    if len(different) < 2:
        found = f"{len(known)} rows with {what}" if len(known) < 2 else f"{len(known)} equal inputs with {what}"
        raise DataError(path, None, found, "at least two different inputs, so that one can be used for validation")
    held, folds = _folds(share or (0.2 if len(known) < FEW else 0.1), len(different))
    fold = stratify(label_matrix([found for _, found in some]), folds, seed, own, held, home=folds - 1)
    holds = fold < held
    if not holds.any():  # of very few rows, a fold may be empty
        sizes = np.bincount(fold)
        holds = fold == (sizes.argmax() if len(different) == len(known) else np.where(sizes, sizes, len(fold)).argmin())
    validation = np.array(known)[holds].tolist()
    of = f"{'one' if held == 1 else held} of {folds} folds"
    train = sorted(set(range(len(labels))) - set(validation))
    said = (
        f"no validation file is named: {len(validation)} of the {len(labels)} rows of {path} are the validation part, "
        f"{of} by iterative stratification over {what} (Sechidis et al. 2011), seed {seed}" + describe_repeats(numbers)
    )
    return Carved(train, validation, said, of)


def _folds(share: float, rows: int) -> tuple[int, int]:
    """The number of folds, and of all folds, that make up a share of the rows; at least one."""
    part = Fraction(share).limit_denominator(min(100, rows)) or Fraction(1, min(rows, round(1 / share)))
    return part.numerator, part.denominator
