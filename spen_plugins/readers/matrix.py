"""Rows of numbers given in Python: NumPy arrays, matrices of scipy.sparse and DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from spen_plugins.errors import DataError, did_you_mean
from spen_plugins.readers.scaling import Scaling
from spen_plugins.readers.table import Ragged


def is_matrix(value: Any) -> bool:
    """True for a NumPy array or a sparse matrix of two axes, and for a DataFrame."""
    return isinstance(value, Matrix) or getattr(value, "ndim", 0) == 2 or _is_frame(value)


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "dtypes")


@dataclass(frozen=True)
class Matrix:
    """Rows of numbers.

    Args:
        values: `(rows, columns)` float32, an array or a CSR array of scipy.sparse without duplicates.
        names: names of the columns; None if the data has none.
    """

    values: Any
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        names = self.names or ()
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError("columns", None, f"two columns {twice!r}", "different names")

    @classmethod
    def of(cls, data: Any, what: str) -> Matrix:
        """From anything that `is_matrix`, or a list of rows.

        Args:
            data: the numbers; NaN is a missing one.
            what: what it is, for messages.

        Raises:
            DataError: not two axes, no rows or columns, something that is no number, an infinite number.
        """
        if isinstance(data, Matrix):
            return data
        names = tuple(map(str, data.columns)) if _is_frame(data) else None
        values = _numbers(data, what)
        if values.ndim != 2 or not all(values.shape):
            raise DataError(what, None, f"an array of shape {values.shape}", "(rows, columns), of at least one each")
        stored = values if isinstance(values, np.ndarray) else values.data
        bad = np.isinf(stored) if isinstance(values, np.ndarray) else ~np.isfinite(stored)
        if bad.any():
            raise DataError(what, None, f"the number {stored[bad][0]:g}", "finite numbers within the range of float32")
        return cls(values, names)

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    def not_binary(self, columns: np.ndarray | None = None) -> tuple[float, int] | None:
        """A number that is neither 0 nor 1, and its column; None without one.

        Args:
            columns: mask of the columns to look at; None: all.
        """
        stored = self.values if isinstance(self.values, np.ndarray) else self.values.data
        wrong = (stored != 0) & (stored != 1)
        if columns is not None:
            wrong &= columns if wrong.ndim == 2 else columns[self.values.indices]
        if not wrong.any():
            return None
        at = int(wrong.argmax())
        return float(stored.flat[at]), at % self.width if wrong.ndim == 2 else int(self.values.indices[at])

    def ordered(self, names: Sequence[str], what: str) -> Matrix:
        """The columns of these names, in this order; without names of its own, all columns.

        Raises:
            DataError: other columns, or another number of them.
        """
        if self.names is None:
            if self.width != len(names):
                raise DataError(what, None, f"{self.width} columns", f"{len(names)}, as in training")
            return self
        known, own = set(names), set(self.names)
        for name in self.names:
            if name not in known:
                near = did_you_mean(name, names)
                raise DataError(what, None, f"the column {name!r}", f"the {len(names)} columns of training.{near}")
        absent = next((name for name in names if name not in own), None)
        if absent is not None:
            raise DataError(what, None, f"no column {absent!r}", f"the {len(names)} columns of training")
        place = {name: i for i, name in enumerate(self.names)}
        return Matrix(self.values[:, [place[name] for name in names]], tuple(names))

    def on(self) -> Ragged:
        """Column numbers of the ones in each row."""
        if isinstance(self.values, np.ndarray):
            return Ragged.of(self.values != 0)
        kept = self.values.copy()
        kept.eliminate_zeros()
        kept.sort_indices()
        return Ragged(kept.indptr, kept.indices.astype(np.int32))

    def scaling(self, rows: np.ndarray) -> Scaling:
        """Fitted to these rows, numbers or a mask."""
        values, real = self.values[rows], np.ones(self.width, dtype=bool)
        if isinstance(values, np.ndarray):
            return Scaling.fit(values, real)
        count, stored = values.shape[0], values.data.astype(np.float64)
        mean = np.bincount(values.indices, stored, self.width) / count
        squares = np.bincount(values.indices, (stored - mean[values.indices]) ** 2, self.width)
        squares += (count - np.bincount(values.indices, minlength=self.width)) * mean**2
        std = np.sqrt(squares / count)
        return Scaling(real, mean, np.where(std <= 1e-7 * np.abs(mean), 1.0, std))

    def scaled(self, scaling: Scaling) -> Sequence[Any]:
        """The rows' vectors; those of a sparse matrix are made where they are used."""
        if isinstance(self.values, np.ndarray):
            matrix = self.values.copy()
            scaling.apply(matrix)
            return matrix
        empty = np.zeros((1, self.width), dtype=np.float32)
        scaling.apply(empty)
        std = np.ones(self.width)
        std[scaling.real] = scaling.std
        columns, ends = self.values.indices, self.values.indptr
        values = (self.values.data / std[columns]).astype(np.float32)
        return [SparseRow(columns[a:b], values[a:b], empty[0]) for a, b in pairwise(ends)]


@dataclass(frozen=True)
class SparseRow:
    """A scaled row of a sparse matrix.

    Args:
        columns: numbers of the columns with a value.
        values: their values divided by the columns' deviations, float32.
        empty: the scaled row of zeros, `(columns,)`, shared by all rows.
    """

    columns: np.ndarray
    values: np.ndarray
    empty: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        row = self.empty.copy()
        row[self.columns] += self.values
        return row if dtype is None else row.astype(dtype)


def _numbers(data: Any, what: str) -> Any:
    """An array, or a CSR array, float32."""
    from scipy import sparse

    try:
        if sparse.issparse(data):
            values = sparse.csr_array(data, dtype=np.float32, copy=True)
            values.sum_duplicates()
            return values
        with np.errstate(over="ignore"):
            return np.asarray(data.to_numpy() if _is_frame(data) else data).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(what, None, f"something that is no number ({error})", "rows of numbers") from None
