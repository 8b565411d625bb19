"""Tables of features and labels as numbers, whatever the format of their file."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Attribute:
    """One column: `kind` is numeric, nominal, hierarchical or text; `values` a nominal's values or the class paths."""

    name: str
    kind: str
    values: tuple[str, ...] = ()
    line: int = 0


@dataclass
class Table:
    """A file's contents as numbers: a numeric cell is its value, a nominal one the index of its value, NaN is missing.

    Exactly one of `dense` and the sparse triple (`start`, `column`, `code`, as in a CSR matrix) is not None.

    Attributes:
        dense: `(rows, attributes)` float32; a hierarchical or text column holds zeros.
        line: `(rows,)` line number of each row.
        paths: the cells of the hierarchical column, as text.
        sets: names of the labels of each row, None where they are unknown, if they are no attributes.
        listed: if true, these stood in a column of lists.
        format: the format of the file.
        own_labels: names of the attributes that are labels, in the files that say which these are.
        keys: names of the columns that number the rows, which are no features.
    """

    path: str
    attributes: list[Attribute]
    line: list[int] = field(default_factory=list)
    dense: np.ndarray | None = None
    start: np.ndarray | None = None
    column: np.ndarray | None = None
    code: np.ndarray | None = None
    paths: list[str] = field(default_factory=list)
    sets: list[tuple[str, ...] | None] | None = None
    listed: bool = False
    format: str = "ARFF"
    own_labels: tuple[str, ...] | None = None
    keys: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.line)

    @property
    def density(self) -> float:
        """Share of written cells; 1 for dense rows."""
        return 1.0 if self.column is None else len(self.column) / max(len(self) * len(self.attributes), 1)

    def filled(self) -> np.ndarray:
        """`dense`, or the dense form of the sparse rows, `(rows, attributes)` float32."""
        if self.dense is not None:
            return self.dense
        dense = np.zeros((len(self), len(self.attributes)), dtype=np.float32)
        dense[np.repeat(np.arange(len(self)), np.diff(self.start)), self.column] = self.code
        return dense


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

    @classmethod
    def of(cls, hit: np.ndarray) -> Ragged:
        """Column numbers of the true cells of a boolean `(rows, columns)` matrix."""
        start = np.concatenate([[0], np.count_nonzero(hit, axis=1).cumsum()])
        return cls(start, np.nonzero(hit)[1].astype(np.int32))
