"""Examples that stay on disk: lists of words and labels as numbers, in an Arrow file that is mapped into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np

from spen_plugins.data.equal_inputs import hash_rows
from spen_plugins.errors import explain_missing

T = TypeVar("T")
BLOCK = 1024
"""Number of rows that are stored together in the file and read together in an epoch."""
MAPPED = 1 << 18
"""Number of rows after which the file is mapped again, so that rows read earlier leave the process's memory."""
ROWS, LEXICONS = "rows.arrow", "lexicons.arrow"


class Lists(NamedTuple):
    """A column of some rows: numbers of a lexicon, one row after another, and the end of each row."""

    numbers: np.ndarray
    ends: np.ndarray

    def cut(self, values: np.ndarray) -> list[np.ndarray]:
        """One value per number -> the values of each row."""
        return np.split(values, self.ends[:-1])


class Lexicon:
    """The different values of a column, in the order in which they first occur, and how often each occurs."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.counts = np.zeros(1024, dtype=np.int64)

    def encode(self, values: Any) -> np.ndarray:
        """Numbers, int32, of the strings of a `pyarrow.Array`; new ones get the next numbers."""
        encoded = values.dictionary_encode()
        number_list = [self.number.setdefault(value, len(self.number)) for value in encoded.dictionary.to_pylist()]
        numbers = np.array(number_list, dtype=np.int32)
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        if len(self.number) > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(2 * len(self.number), dtype=np.int64)])
        self.counts[numbers] += np.bincount(codes, minlength=len(numbers))
        return numbers[codes]


def write_index(folder: Path, columns: Sequence[str], batches: Iterable[Mapping[str, Any]]) -> int:
    """Writes an index of examples into a folder; returns their number.

    Each of `batches` has some examples' lists of strings, by column: `pyarrow.ListArray`s of equal lengths without
    nulls.
    """
    import pyarrow as pa

    lexicons = {name: Lexicon() for name in columns}
    schema = pa.schema([(name, pa.list_(pa.int32())) for name in columns])
    rows = 0
    with pa.OSFile(str(folder / ROWS), "wb") as file, pa.ipc.new_stream(file, schema) as out:
        for batch in batches:
            lists = []
            for name, lexicon in lexicons.items():
                ends = batch[name].value_lengths().to_numpy(zero_copy_only=False).cumsum(dtype=np.int32)
                numbers = lexicon.encode(batch[name].flatten())
                lists.append(pa.ListArray.from_arrays(np.append(np.int32(0), ends), numbers))
            table = pa.Table.from_arrays(lists, schema=schema)
            out.write_table(table)
            rows += len(table)
    contents = {
        "column": list(lexicons),
        "values": pa.array([list(x.number) for x in lexicons.values()], pa.large_list(pa.large_string())),
        "counts": [x.counts[: len(x.number)] for x in lexicons.values()],
    }
    table = pa.table(contents)
    with pa.OSFile(str(folder / LEXICONS), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table)
    return rows


class Index:
    """An index that `write_index` wrote.

    Attributes:
        values: column -> its different values, `(value,)` of str.
        counts: column -> how often each occurs, `(value,)`.
        lengths: `(example,)` length of each list of the first column.
    """

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        from pyarrow import compute

        self._file, self._rows_read = folder / ROWS, 0
        self._rows, self._file_stat = self._map_rows(), self._file.stat()
        with pa.OSFile(str(folder / LEXICONS)) as file:
            lexicons = pa.ipc.open_file(file).read_all()
        names, values, counts = (lexicons.column(key) for key in ("column", "values", "counts"))
        names = names.to_pylist()
        self.values, self.counts = (
            {name: array.values.to_numpy(zero_copy_only=False) for name, array in zip(names, lists, strict=True)}
            for lists in (values, counts)
        )
        self.lengths = compute.list_value_length(self._rows.data.column(names[0])).to_numpy()

    def __len__(self) -> int:
        return len(self._rows)

    def whole_numbers(self, column: str) -> np.ndarray:
        """A column whose lists have one whole number each, written as text, `(example,)`."""
        rows = self._rows.data.column(column).combine_chunks().flatten().to_numpy()
        return self.values[column].astype(np.int32)[rows]

    def gather(self, rows: Sequence[int] | np.ndarray) -> dict[str, Lists]:
        """The columns of some rows, at least one."""
        self._rows_read += len(rows)
        if self._rows_read > MAPPED:
            self._rows_read = len(rows)
            if self._is_same_file():
                self._rows = self._map_rows()
        table = self._rows[rows]
        lists = {name: table.column(name).combine_chunks() for name in table.column_names}
        return {
            name: Lists(cells.flatten().to_numpy(), cells.value_lengths().to_numpy().cumsum())
            for name, cells in lists.items()
        }

    def contains(self, rows: Mapping[str, Sequence[Sequence[str]]]) -> np.ndarray:
        """Returns which rows are in the index, `(row,)` boolean, by hashes of 64 bits; `rows`: column -> each row's
        list."""
        import pyarrow as pa
        from pyarrow import compute

        columns = []
        for name, values in rows.items():
            lists = pa.array(values, pa.list_(pa.string()))
            numbers = compute.index_in(lists.flatten(), pa.array(self.values[name], pa.string())).fill_null(-1)
            columns.append((numbers, lists.value_lengths()))
        hashes = hash_rows(columns)
        is_contained = np.zeros(len(hashes), dtype=bool)
        for batch in self._rows.data.table.select(list(rows)).to_batches():
            is_contained |= np.isin(
                hashes, hash_rows([(lists.flatten(), lists.value_lengths()) for lists in batch.columns])
            )
        self._rows = self._map_rows() if self._is_same_file() else self._rows
        return is_contained

    def _map_rows(self) -> Any:
        return dataset_class().from_file(str(self._file)).with_format("arrow")

    def _is_same_file(self) -> bool:
        """False if another file has replaced the mapped one; the new file is not read, and the mapping stays."""
        try:
            return os.path.samestat(self._file.stat(), self._file_stat)
        except OSError:
            return False


class OnDisk(Sequence[T]):
    """The examples of an index, made by `make` on demand; `take` makes all examples of a batch at once.

    `lengths` `(example,)` are as `Task.length` returns them; or a function that returns them, if networks decide them.
    """

    block = BLOCK

    def __init__(
        self,
        index: Index,
        make: Callable[[Mapping[str, Lists]], list[T]],
        lengths: np.ndarray | Callable[[], np.ndarray],
    ) -> None:
        self._index, self._make, self._lengths = index, make, lengths

    @property
    def lengths(self) -> np.ndarray:
        return self._lengths() if callable(self._lengths) else self._lengths

    def take(self, rows: Sequence[int] | np.ndarray) -> list[T]:
        """The examples of some rows."""
        return self._make(self._index.gather(rows)) if len(rows) else []

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, row: int) -> T: ...

    @overload
    def __getitem__(self, row: slice) -> list[T]: ...

    def __getitem__(self, row: int | slice) -> T | list[T]:
        if isinstance(row, slice):
            return self.take(range(*row.indices(len(self))))
        return self.take([range(len(self))[row]])[0]

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self), BLOCK):
            yield from self[start : start + BLOCK]


def chosen(examples: Sequence[T], rows: Sequence[int]) -> list[T]:
    """The examples of some rows."""
    return examples.take(rows) if isinstance(examples, OnDisk) else [examples[row] for row in rows]


def dataset_class() -> Any:
    """`datasets.Dataset`; a ConfigError where it is missing."""
    requirement = "training data on disk require Hugging Face's datasets: pip install 'spen-plugins[arrow]'"
    with explain_missing(f"{requirement}; task.on_disk=false keeps them in memory"):
        from datasets import Dataset
    return Dataset
