"""Multi-label files of libsvm, by scikit-learn: `3,17 1:0.5 4:2` has the labels 3 and 17, and two features.

A first line of three numbers (rows, features, labels), as in the Extreme Classification Repository, is skipped. A
blank line is a row without labels and features, as scikit-learn writes it; empty lines at the end are ignored.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from spen_plugins.data.formats import Format, Head
from spen_plugins.data.table import BINARY, Attribute, ColumnValues, Table
from spen_plugins.data.text import open_text, shorten
from spen_plugins.errors import DataError

_NUMBER = r"-?\d+(?:\.\d+)?"
_ROW = re.compile(rf"(?:{_NUMBER}(?:,{_NUMBER})*)?\s*(?:\d+:\S+\s*)*(?:#.*)?")
_SIZES = re.compile(r"\s*\d+\s+\d+\s+\d+\s*")
_BLANK = b"0:0"  # a row without labels and features, which scikit-learn reads
_EXPECTED = "labels separated by commas, then FEATURE:VALUE pairs in ascending order, as in `3,17 1:0.5 4:2`"


def _is_libsvm(head: Head) -> bool:
    lines = head.filled[1:] if head.filled and _SIZES.fullmatch(head.filled[0]) else head.filled
    sample = lines[:20]
    return (
        bool(sample) and any(re.search(r"\s\d+:", " " + line) for line in sample) and all(map(_ROW.fullmatch, sample))
    )


LIBSVM = Format("libsvm", "labels separated by commas, then FEATURE:VALUE pairs, as in `3,17 1:0.5 4:2`", _is_libsvm)


def read_libsvm(path: str | Path, training_columns: ColumnValues | None = None) -> Table:
    """Reads a file as a sparse table with sets of labels; features are named by their numbers.

    A row without labels has an empty set; if no row has any, the labels are unknown. Features above the training file's
    last feature are ignored. Arguments and errors are those of `read_table`.
    """
    with open_text(path) as file:
        texts = file.read().rstrip(b"\r\n").split(b"\n")
    has_sizes = _SIZES.fullmatch(texts[0].decode("latin-1")) is not None
    numbered = [(n, text.strip() or _BLANK) for n, text in enumerate(texts, 1) if not text.lstrip().startswith(b"#")]
    lines, rows = [n for n, _ in numbered[has_sizes:]], [text for _, text in numbered[has_sizes:]]
    try:
        matrix, labels = _load(b"\n".join(rows))
    except (ValueError, OverflowError):
        raise _find_error(path, lines, rows) from None
    matrix.eliminate_zeros()
    if not matrix.nnz:
        raise DataError(path, lines[0] if lines else None, "no feature in any row", _EXPECTED)
    _check_numbers(path, lines, matrix, np.abs(matrix.data) <= np.finfo(np.float32).max, "a finite number")
    sets = [tuple(str(int(label)) if label.is_integer() else str(label) for label in row) for row in labels]
    return _make_table(str(path), lines, matrix, sets, training_columns)


def _load(text: bytes) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(io.BytesIO(text), dtype=np.float64, multilabel=True, zero_based=True)


def _find_error(path: str | Path, lines: list[int], rows: list[bytes]) -> DataError:
    for line, text in zip(lines, rows, strict=True):
        try:
            _load(text)
        except (ValueError, OverflowError) as error:
            return DataError(path, line, f"{shorten(text.decode('utf-8', 'replace'))} ({error})", _EXPECTED)
    raise AssertionError


def _check_numbers(path: str | Path, lines: list[int], matrix: Any, is_valid: np.ndarray, expected: str) -> None:
    """Raise a DataError for the first stored number that is not valid; `is_valid` is `(stored,)`."""
    if not is_valid.all():
        index = int(is_valid.argmin())
        row = int(np.searchsorted(matrix.indptr, index, side="right")) - 1
        raise DataError(path, lines[row], f"{matrix.data[index]:g} for feature {matrix.indices[index]}", expected)


def _make_table(
    path: str, lines: list[int], matrix: Any, sets: list[tuple[str, ...]], training_columns: ColumnValues | None
) -> Table:
    from scipy.sparse import csr_array

    if training_columns is None:
        first, last = int(matrix.indices.min()), int(matrix.indices.max())
        names, values = [str(n) for n in range(min(first, 1), last + 1)], () if (matrix.data != 1).any() else BINARY
    else:
        names, values = list(training_columns), next(iter(training_columns.values()))
        matrix = matrix[:, : int(names[-1]) + 1].tocsr()
    offset = int(names[0])
    _check_numbers(path, lines, matrix, matrix.indices >= offset, f"features from {offset}, as in the training file")
    if values:
        _check_numbers(path, lines, matrix, matrix.data == 1, "1, as everywhere in the training file")
    structure = (matrix.indices - offset).astype(np.int32), matrix.indptr
    return Table(
        path,
        [Attribute(name, "nominal" if values else "numeric", values) for name in names],
        lines,
        sparse=csr_array((matrix.data.astype(np.float32), *structure), shape=(len(lines), len(names))),
        sets=[row if any(sets) else None for row in sets],
    )
