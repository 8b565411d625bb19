"""Multi-label files of libsvm, by scikit-learn: `3,17 1:0.5 4:2` has the labels 3 and 17, and two features.

A first line of three numbers (rows, features, labels), as in the Extreme Classification Repository, is skipped. A
blank line is a row without labels and features, as scikit-learn writes it; empty lines at the end are none.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spen_plugins.data.formats import Format, Head
from spen_plugins.data.table import Attribute, Table
from spen_plugins.data.tables.cells import BINARY, Known
from spen_plugins.data.text import opened_text, shorten
from spen_plugins.errors import DataError

_NUMBER = r"-?\d+(?:\.\d+)?"
_ROW = re.compile(rf"(?:{_NUMBER}(?:,{_NUMBER})*)?\s*(?:\d+:\S+\s*)*(?:#.*)?")
_SIZES = re.compile(r"\s*\d+\s+\d+\s+\d+\s*")


def _is_libsvm(head: Head) -> bool:
    lines = head.filled[1:] if head.filled and _SIZES.fullmatch(head.filled[0]) else head.filled
    some = lines[:20]
    return bool(some) and any(re.search(r"\s\d+:", " " + line) for line in some) and all(map(_ROW.fullmatch, some))


LIBSVM = Format("libsvm", "labels separated by commas, then FEATURE:VALUE pairs, as in `3,17 1:0.5 4:2`", _is_libsvm)


def read_libsvm(path: str | Path, known: Known | None = None) -> Table:
    """Read a file as a sparse table with sets of labels; features go by their numbers.

    A row without labels has none; if no row has any, the labels are unknown. Features above the training file's last
    are left out.

    Args:
        path: the file.
        known: features of the training file, if this is another.

    Raises:
        DataError: with the line, what was found and what was expected.
    """
    from sklearn.datasets import load_svmlight_file

    with opened_text(path) as file:
        data = file.read()
    first, skipped = data.partition(b"\n")[0].decode("latin-1"), 0
    if _SIZES.fullmatch(first):
        skipped, data = 1, data.partition(b"\n")[2]
    texts = data.rstrip(b"\r\n").split(b"\n")
    kept = [(n, text) for n, text in enumerate(texts, 1 + skipped) if not text.lstrip().startswith(b"#")]
    lines = [n for n, _ in kept]
    filled = np.array([bool(text.strip()) for _, text in kept], dtype=bool)
    if not filled.any():
        raise DataError(path, None, "no row", "at least one")

    def load(text: bytes) -> tuple[Any, Sequence[tuple[float, ...]]]:
        return load_svmlight_file(io.BytesIO(text), dtype=np.float64, multilabel=True, zero_based=True)

    try:
        matrix, labels = load(data)
    except (ValueError, OverflowError) as error:
        raise _explained(path, data.split(b"\n"), skipped, load, error) from None
    matrix, labels = _with_blank(matrix, labels, filled)
    bad = np.flatnonzero(~(np.abs(matrix.data) <= np.finfo(np.float32).max))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        found = f"{matrix.data[bad[0]]:g} for feature {matrix.indices[bad[0]]}"
        raise DataError(path, lines[row], found, "a finite number")
    if not len(matrix.data):
        raise DataError(path, lines[0], "no feature in any row", "FEATURE:VALUE pairs, as in `3,17 1:0.5 4:2`")
    sets = [tuple(map(_name, row)) for row in labels]
    return _table(str(path), lines, matrix, sets, known)


def _table(path: str, lines: list[int], matrix: Any, sets: list[tuple[str, ...]], known: Known | None) -> Table:
    if known is None:
        first, last = int(matrix.indices.min()), int(matrix.indices.max())
        names, values = [str(n) for n in range(min(first, 1), last + 1)], () if (matrix.data != 1).any() else BINARY
    else:
        names, values = list(known), next(iter(known.values()))
        last = int(names[-1])
        matrix = matrix[:, : last + 1].tocsr()
        odd = np.flatnonzero(matrix.data != 1) if values else ()
        if len(odd):
            row = int(np.searchsorted(matrix.indptr, odd[0], side="right")) - 1
            raise DataError(path, lines[row], f"value {matrix.data[odd[0]]:g}", "1, as everywhere in the training file")
    offset = int(names[0])
    if len(matrix.indices) and matrix.indices.min() < offset:
        row = int(np.searchsorted(matrix.indptr, int(matrix.indices.argmin()), side="right")) - 1
        raise DataError(path, lines[row], "feature 0", "features from 1, as in the training file")
    kind = "nominal" if values else "numeric"
    return Table(
        path,
        [Attribute(name, kind, values) for name in names],
        lines,
        start=matrix.indptr.astype(np.int64),
        column=(matrix.indices - offset).astype(np.int32),
        code=matrix.data.astype(np.float32),
        sets=[row if any(sets) else None for row in sets],
    )


def _with_blank(matrix: Any, labels: Sequence[tuple[float, ...]], filled: np.ndarray) -> tuple[Any, list[tuple]]:
    """The rows with those of blank lines, which scikit-learn leaves out; `filled` `(rows,)` is false for these."""
    from scipy.sparse import csr_matrix

    lengths = np.zeros(len(filled), dtype=np.int64)
    lengths[filled] = np.diff(matrix.indptr)
    start = np.concatenate([[0], lengths.cumsum()])
    some = iter(labels)
    shape = len(filled), matrix.shape[1]
    return csr_matrix((matrix.data, matrix.indices, start), shape), [next(some) if there else () for there in filled]


def _name(label: float) -> str:
    return str(int(label)) if label.is_integer() else str(label)


def _explained(path: str | Path, lines: list[bytes], skipped: int, load: Any, error: Exception) -> DataError:
    """The error of the first line that can't be read."""
    wanted = (
        "labels separated by commas, then FEATURE:VALUE pairs in the order of their numbers, as in `3,17 1:0.5 4:2`"
    )
    for n, text in enumerate(lines, 1 + skipped):
        try:
            load(text + b"\n")
        except (ValueError, OverflowError) as found:
            return DataError(path, n, f"{shorten(text.decode('utf-8', 'replace').strip())} ({found})", wanted)
    return DataError(path, None, str(error), wanted)
