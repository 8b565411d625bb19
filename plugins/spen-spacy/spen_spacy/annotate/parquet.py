"""Parquet files of documents, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spen_plugins import ConfigError, DataError

ROWS = 1000
"""Number of rows that are decoded at once."""


def require() -> None:
    """Raises a `ConfigError` if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"Parquet requires pyarrow ({error}): pip install 'spen-plugins[tables]', or write --to jsonl"
        ) from None


def count_failed(path: str | Path) -> int:
    """Rows of a shard that have an error."""
    with _open(path) as file:
        errors = file.read(columns=["error"]).column("error")
        return len(errors) - errors.null_count


def measure(path: str | Path, field: str) -> tuple[int, int]:
    """The number of rows, and the bytes of this column; `DataError` if the file is damaged."""
    with _open(path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        columns = (group.column(number) for group in groups for number in range(group.num_columns))
        return file.metadata.num_rows, sum(
            column.total_uncompressed_size for column in columns if column.path_in_schema == field
        )


def read_types(path: str | Path, field: str) -> dict[str, Any]:
    """The Arrow type of each column but this one; `DataError` if the file lacks this one, or is damaged."""
    with _open(path) as file:
        if field not in file.schema_arrow.names:
            names = ", ".join(file.schema_arrow.names)
            raise DataError(path, None, f"no column {field!r}", f"one of {names}, named by --text")
        return {column.name: column.type for column in file.schema_arrow if column.name != field}


def read_rows(path: str | Path, start: int, end: int) -> Iterator[dict[str, Any] | str]:
    """The rows from `start` to `end` (exclusive), or the fault of a damaged row; groups of rows outside are not read.
    `DataError` if the file is damaged."""
    first = 0
    with _open(path) as file:
        for group in range(file.num_row_groups):
            next_first = first + file.metadata.row_group(group).num_rows
            if first < end and next_first > start:
                for batch in file.iter_batches(ROWS, row_groups=[group]):
                    offset = max(0, start - first)
                    yield from _list_rows(batch.slice(offset, max(0, end - first - offset)))
                    first += batch.num_rows
            first = next_first


def _list_rows(batch: Any) -> Iterator[dict[str, Any] | str]:
    """The rows of a batch; the fault of a row in place of one with a value that Python does not have."""
    try:
        yield from batch.to_pylist()
    except Exception:  # text that is not UTF-8, a year after 9999, an unknown time zone, …, from several libraries
        for number in range(batch.num_rows):
            row, name = {}, ""
            try:
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    row[name] = column[number].as_py()
            except Exception as error:
                yield f"a value in column {name!r} that can't be read ({type(error).__name__}: {error})"
            else:
                yield row


@contextmanager
def _open(path: str | Path) -> Iterator[Any]:
    require()
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise DataError(path, None, f"a damaged Parquet file ({error})", "a whole one") from None
