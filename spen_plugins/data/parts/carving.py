"""A validation part carved from the training file of a user's data."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from spen_plugins.data.equal_inputs import describe_repeats, number_inputs
from spen_plugins.data.parts.stratification import label_matrix, stratify
from spen_plugins.errors import DataError

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
        found = f"{len(known)} rows with {what}" if len(known) < 2 else f"{len(known)} rows of equal inputs with {what}"
        raise DataError(path, None, found, "at least two different ones, one of them to validate on")
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
