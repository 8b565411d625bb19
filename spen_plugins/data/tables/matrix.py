"""Vectors from Python: one example, or rows as NumPy arrays, matrices of scipy.sparse and DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from spen_plugins.data.table import Ragged, true_value
from spen_plugins.data.tables.arff import ancestry
from spen_plugins.data.tables.table_columns import Columns
from spen_plugins.errors import DataError, did_you_mean


def is_matrix(value: Any) -> bool:
    """True for a NumPy array or a sparse matrix of two axes, and for a DataFrame."""
    return isinstance(value, Matrix) or getattr(value, "ndim", 0) == 2 or _is_frame(value)


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "dtypes")


def _find_text_column(data: Any) -> str | None:
    """Name of the first column of a DataFrame that has texts, dates or other values than numbers; None without one."""
    from sklearn.utils import check_array

    if not _is_frame(data) or len({*data.columns}) < len(data.columns):
        return None
    for name, kind in zip(data.columns, data.dtypes, strict=True):
        try:
            check_array(data[[name]], dtype=np.float32, ensure_all_finite=False)
        except (TypeError, ValueError):
            return str(name)
        if getattr(kind, "kind", None) in ("m", "M"):
            return str(name)
    return None


@dataclass(frozen=True)
class Matrix:
    """Rows of numbers, `(rows, columns)` float32, an array or a CSR array of scipy.sparse without duplicates; and the
    columns' names, None if the data has none."""

    values: Any
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        names = self.names or ()
        if self.names is not None and (len(names) != self.width or len({*names}) < len(names)):
            sample = ", ".join(names[:8]) + ", …" * (len(names) > 8)
            raise DataError("columns", None, f"{len(names)} names ({sample})", f"{self.width} different names")

    @classmethod
    def from_data(cls, data: Any, source: str, expected: str | None = None) -> Matrix:
        """From any value that passes `is_matrix`, or a list of rows; NaN is missing, and an error in a sparse matrix.

        Error messages call the data `source`, and say what was `expected`, by default numbers.
        """
        if isinstance(data, Matrix):
            return data
        from scipy import sparse
        from sklearn.utils import check_array

        finite: Any = True if sparse.issparse(data) else "allow-nan"
        try:
            with np.errstate(over="ignore"):
                values = check_array(data, accept_sparse="csr", dtype=np.float32, ensure_all_finite=finite, copy=True)
        except (TypeError, ValueError) as error:
            if (name := _find_text_column(data)) is not None:
                description = expected or "numbers; encode the column, or train from a file, which may have categories"
                raise DataError(source, None, f"values other than numbers in column {name!r}", description) from None
            reason = " ".join(str(error).split())
            description = expected or "rows of equal length"
            raise DataError(source, None, f"no rows of finite numbers ({reason})", description) from None
        if sparse.issparse(values):
            values = sparse.csr_array(values)
            values.sum_duplicates()
        return cls(values, tuple(map(str, data.columns)) if _is_frame(data) else None)

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    def not_binary(self, columns: np.ndarray | None = None) -> tuple[float, int] | None:
        """A number in the mask `columns` (None: all) that is neither 0 nor 1, and its column; None without one."""
        stored = self.values if isinstance(self.values, np.ndarray) else self.values.data
        is_wrong = (stored != 0) & (stored != 1)
        if columns is not None:
            is_wrong &= columns if is_wrong.ndim == 2 else columns[self.values.indices]
        if not is_wrong.any():
            return None
        index = int(is_wrong.argmax())
        return float(stored.flat[index]), index % self.width if is_wrong.ndim == 2 else int(self.values.indices[index])

    def check_binary(self, names: Sequence[str], source: str, columns: np.ndarray | None = None) -> None:
        """Raise a DataError if a feature that is binary in training is neither 0 nor 1; `columns` is the mask of these
        features, None: all."""
        if (cell := self.not_binary(columns)) is not None:
            value, column = cell
            expected = "0 or 1, as in training, where no other value occurs"
            expected += "" if np.isnan(value) else "; for word counts, use CountVectorizer(binary=True)"
            raise DataError(source, None, f"{value:g} for feature {names[column]!r}", expected)

    def ordered(self, names: Sequence[str], source: str) -> Matrix:
        """The columns of these names, in this order; all columns if the matrix has no names."""
        if self.names is None:
            if self.width != len(names):
                raise DataError(source, None, f"{self.width} columns", f"{len(names)}, as in training")
            return self
        if difference := {*self.names} ^ {*names}:
            column = min(difference, key=[*self.names, *names].index)
            suggestion = did_you_mean(column, names) if column in self.names else ""
            problem = f"{'the' if column in self.names else 'no'} column {column!r}"
            raise DataError(source, None, problem, f"the {len(names)} columns of training.{suggestion}")
        indices = {name: i for i, name in enumerate(self.names)}
        return Matrix(self.values[:, [indices[name] for name in names]], tuple(names))

    @property
    def sparse(self) -> bool:
        """True if zeros are not stored."""
        return not isinstance(self.values, np.ndarray)

    def on(self) -> Ragged:
        """Column numbers of the ones in each row."""
        return replace(self.listed(), weight=None)

    def listed(self) -> Ragged:
        """Each row's numbers that are not 0, and their column numbers; a missing number is 0."""
        from scipy import sparse

        matrix = self.values.copy() if self.sparse else sparse.csr_array(np.nan_to_num(self.values))
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return Ragged(matrix.indptr, matrix.indices.astype(np.int32), matrix.data)

    def dense(self) -> np.ndarray:
        """A copy, `(rows, columns)` float32."""
        return self.values.toarray() if self.sparse else self.values.copy()


_KEYS = {"vector", "features", "labels"}
_make_error = partial(DataError, "item", None)


def parse_item(columns: Columns, item: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """`{"vector": [...]}` or `{"features": ...}`, `"labels"` optional -> features `(size,)` float32, gold numbers."""
    keys = set(item) if isinstance(item, Mapping) else set()
    if len({"vector", "features"} & keys) != 1 or keys - _KEYS:
        problem = f"keys {', '.join(map(repr, item))}" if isinstance(item, Mapping) else type(item).__name__
        raise _make_error(problem, '{"vector": [...]} or {"features": {...}}, optionally with "labels"')
    vector = _read_vector(columns, item["vector"]) if "vector" in keys else _read_features(columns, item["features"])
    return vector, None if item.get("labels") is None else _number_labels(columns, item["labels"])


def _read_vector(columns: Columns, values: Any) -> np.ndarray:
    real, names = columns.real, columns.names
    try:
        vector = np.array(values, dtype=np.float32)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (len(names),):
        raise _make_error(f"a vector {values!r:.60}", f"{len(names)} numbers")
    invalid_columns = np.flatnonzero(np.where(real, np.isinf(vector), ~np.isin(vector, (0, 1))))
    if len(invalid_columns):
        expected = "a finite number" if real[invalid_columns[0]] else "0 or 1"
        raise _make_error(f"{vector[invalid_columns[0]]:g} for feature {names[invalid_columns[0]]!r}", expected)
    return vector


def _read_features(columns: Columns, features: Any) -> np.ndarray:
    if not isinstance(features, (Mapping, list, tuple)):
        raise _make_error(f"features {features!r:.80}", "{name: value} or a list of names")
    vector = np.where(columns.real, np.nan, 0).astype(np.float32)
    for name, value in features.items() if isinstance(features, Mapping) else ((name, 1) for name in features):
        _check_name("feature", name, columns.places)
        offset, number = _encode_value(name, columns.features[name], value)
        vector[columns.places[name] + offset] = number
    return vector


def _encode_value(name: str, values: Sequence[str], value: Any) -> tuple[int, float]:
    """The place of a value among its attribute's features, and the feature's number there."""
    if not values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
            raise _make_error(f"{value!r} for feature {name!r}", "a finite number")
        return 0, value
    true_index = true_value(values)
    if value in values:
        return (values.index(value), 1) if true_index is None else (0, value == values[true_index])
    if true_index is None or value not in (0, 1):
        expected = ", ".join(values) if true_index is None else f"0, 1, {' or '.join(values)}"
        raise _make_error(f"{value!r} for feature {name!r}", f"one of {expected}")
    return 0, value


def _number_labels(columns: Columns, names: Any) -> np.ndarray:
    if not isinstance(names, (list, tuple)):
        raise _make_error(f"labels {names!r:.80}", 'a list of label names, as in ["a", "b"]')
    numbers = {name: i for i, name in enumerate(columns.labels)}
    for name in names:
        _check_name("label", name, numbers)
    if columns.classes is not None:
        names = {a for name in names for a in ancestry(name)}
    return np.array(sorted({numbers[name] for name in names}), dtype=np.int32)


def _check_name(kind: str, name: Any, indices: Mapping[str, int]) -> None:
    if not isinstance(name, str) or name not in indices:
        raise _make_error(
            f"{kind} {name!r}", f"one of the {len(indices)} known {kind}s.{did_you_mean(str(name), indices)}"
        )
