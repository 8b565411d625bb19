"""Tables of features and labels as numbers, whatever the format of their file: yes-no columns, numbers, categories."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from spen_plugins.data.text import is_number, shorten
from spen_plugins.errors import DataError


@dataclass(frozen=True)
class Attribute:
    """One column: `kind` is numeric, nominal, hierarchical or text; `values` are a nominal's values or the class
    paths."""

    name: str
    kind: str
    values: tuple[str, ...] = ()
    line: int = 0


@dataclass
class Table:
    """A file's contents as numbers: a numeric cell is its value, a nominal one the index of its value, NaN is missing.

    Attributes:
        dense: `(rows, attributes)` float32; a hierarchical or text column holds zeros. None for sparse rows.
        sparse: the same for sparse rows, a `csr_array`.
        line: `(rows,)` line number of each row.
        paths: the cells of the hierarchical column, as text.
        sets: each row's label names (None if unknown), if labels are not attributes.
        listed: if true, `sets` come from a column of lists.
        format: the format of the file.
        own_labels: names of the attributes that the file declares to be labels, if it does.
        keys: names of the columns that number the rows and are not features.
    """

    path: str
    attributes: list[Attribute]
    line: list[int] = field(default_factory=list)
    dense: np.ndarray | None = None
    sparse: Any = None
    paths: list[str] = field(default_factory=list)
    sets: list[tuple[str, ...] | None] | None = None
    listed: bool = False
    format: str = "ARFF"
    own_labels: tuple[str, ...] | None = None
    keys: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.line)

    @property
    def note(self) -> str:
        """The format and the number of rows, for the user."""
        return f"{self.format} ({len(self)} row{'s' * (len(self) != 1)})"

    @property
    def density(self) -> float:
        """Share of written cells; 1 for dense rows."""
        return 1.0 if self.sparse is None else self.sparse.nnz / max(len(self) * len(self.attributes), 1)

    def filled(self) -> np.ndarray:
        """`dense`, or the dense form of the sparse rows, `(rows, attributes)` float32."""
        return self.sparse.toarray() if self.dense is None else self.dense


@dataclass(frozen=True)
class Ragged:
    """Lists of numbers of different lengths: row i is `value[start[i]:start[i + 1]]`.

    With `weight` these numbers are indices, and their values are `weight[start[i]:start[i + 1]]`.
    """

    start: np.ndarray
    value: np.ndarray
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        return self.value[self.start[i] : self.start[i + 1]]

    def weights(self, i: int) -> np.ndarray:
        """Values of row i."""
        assert self.weight is not None
        return self.weight[self.start[i] : self.start[i + 1]]

    def measure_columns(self, rows: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """The columns in which some of the rows are not 0, and the root mean square of these values, `(column,)`."""
        columns, values = (np.concatenate([read(i) for i in rows]) for read in (self.__getitem__, self.weights))
        columns, values = columns[values != 0], values[values != 0]
        counts = np.bincount(columns)
        nonzero_columns = np.flatnonzero(counts)
        return nonzero_columns, np.sqrt(
            np.bincount(columns, values.astype(np.float64) ** 2)[nonzero_columns] / counts[nonzero_columns]
        )

    @classmethod
    def from_mask(cls, hit: np.ndarray) -> Ragged:
        """Column numbers of the true cells of a boolean `(rows, columns)` matrix."""
        start = np.concatenate([[0], np.count_nonzero(hit, axis=1).cumsum()])
        return cls(start, np.nonzero(hit)[1].astype(np.int32))


BINARY = ("0", "1")
CATEGORIES = 100
"""Maximum number of different texts in a column of categories; one with more holds names or texts, not a feature."""
MISSING = frozenset(("", "?"))
"""Cells without a value."""

_TRUE_VALUES = {("0", "1"): "1", ("no", "yes"): "yes", ("false", "true"): "true", ("f", "t"): "t", ("n", "y"): "y"}

KEYS = ("id", "uid", "uuid", "index")
"""Names, in any case, of columns that number the rows if their values all differ."""

ColumnValues = Mapping[str, tuple[str, ...]]
"""Columns of the training file: name -> a category's values, `BINARY`, or () for a number."""
Cells: TypeAlias = np.ndarray | list[str | None]
"""A column: numbers `(rows,)` with NaN for missing ones, or texts, None for missing ones."""


def true_value(values: Sequence[str]) -> int | None:
    """Index of the "true" value of a yes-no attribute; None for any other nominal."""
    true_text = _TRUE_VALUES.get(tuple(sorted(value.lower() for value in values)))
    return None if true_text is None else [value.lower() for value in values].index(true_text)


def is_key(name: str, cells: Collection[str]) -> bool:
    """True for a column that only identifies rows: it has a usual name, and different texts or whole numbers."""
    is_whole = all(not is_number(cell) or float(cell).is_integer() for cell in cells)
    return name.casefold() in KEYS and is_whole and len({*cells}) == len(cells)


def left_out(name: str) -> str:
    """A note that a key column is ignored."""
    return f"column {name!r} is ignored: its values all differ"


def make_table(
    path: object,
    columns: Mapping[str, Cells],
    line: list[int],
    training_columns: ColumnValues | None = None,
    unused: Collection[str] = (),
) -> Table:
    """A table of columns, by name; `training_columns` and `unused` are as in `read_table`, `line` is each row's
    line, `(rows,)`.

    A column of 0 and 1 is binary, other columns of numbers are numeric. Texts are categories if there are few different
    ones, otherwise of kind text, as are unused columns.
    """
    table = Table(str(path), [], line, np.zeros((len(line), len(columns)), dtype=np.float32))
    assert table.dense is not None
    for column, (name, cells) in enumerate(columns.items()):
        values: tuple[str, ...] | None = None
        if name not in unused:
            values = (training_columns or {}).get(name)
            values = _list_values(table, name, cells) if values is None else values
        if values is not None:
            table.dense[:, column] = _encode_cells(table, name, cells, values)
        kind = "text" if values is None else "nominal" if values else "numeric"
        table.attributes.append(Attribute(name, kind, values or (), 1))
    return table


def _list_values(table: Table, name: str, cells: Cells) -> tuple[str, ...] | None:
    """`BINARY`, () for numbers, or a category's values in order; None for too many texts to be categories."""
    if isinstance(cells, np.ndarray):
        is_binary = np.isin(cells, (0, 1)).any() and (np.isin(cells, (0, 1)) | np.isnan(cells)).all()
        return BINARY if is_binary else ()
    filled = [cell for cell in cells if cell is not None]
    values = sorted({*filled})
    numbers = {value for value in values if is_number(value.replace(",", ".", 1))}
    is_mostly_numbers = 2 * len(numbers) > len(values) or 2 * sum(cell in numbers for cell in filled) > len(filled)
    row = next((i for i, cell in enumerate(cells) if cell is not None and not is_number(cell)), None)
    if row is not None and is_mostly_numbers:
        expected = "a number with a decimal point, like most of its values, or an empty cell if it is missing"
        problem = f"{shorten(cells[row] or '')} in column {name!r}"
        raise DataError(table.path, table.line[row], problem, f"{expected}; drop={name} ignores the column")
    return tuple(values) if len(values) <= CATEGORIES else None


def _encode_cells(table: Table, name: str, cells: Cells, values: Sequence[str]) -> np.ndarray:
    """The cells as numbers, `(rows,)`; categories as indices into `values`. A category that is not in `values` is
    missing, but raises a DataError in a yes-no column, or if no cell is in `values`."""
    codes: np.ndarray
    if not values or values == BINARY:
        expected = "0 or 1" if values else "numbers"
        codes = cells if isinstance(cells, np.ndarray) else np.full(len(cells), np.inf)
        is_wrong = ~np.isin(codes, (0, 1)) & ~np.isnan(codes) if values else np.isinf(codes)
    else:
        expected = f"{', '.join(values[:8])}{', …' * (len(values) > 8)}, or an empty cell"
        code_of_value: dict[object, float] = {value: float(i) for i, value in enumerate(values)} | {None: np.nan}
        codes = np.array([code_of_value.get(cell, np.inf) for cell in cells], dtype=np.float32)
        is_wrong = np.isinf(codes)
        if true_value(values) is None and is_wrong.any() and np.isfinite(codes).any():
            _warn_of_unseen(table, name, [str(cells[row]) for row in np.flatnonzero(is_wrong)])
            codes[is_wrong], is_wrong = np.nan, np.zeros_like(is_wrong)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        cell = cells[row]
        problem = f"{shorten(cell) if isinstance(cell, str) else f'{cell:g}'} in column {name!r}"
        raise DataError(table.path, table.line[row], problem, f"{expected}, as in the training file")
    return codes


def _warn_of_unseen(table: Table, name: str, cells: Sequence[str]) -> None:
    warnings.warn(
        f"{table.path}: column {name!r} has values that the training file lacks, such as {shorten(cells[0])}, in "
        f"{len(cells):,} of {len(table):,} rows; they count as empty cells",
        stacklevel=2,
    )
