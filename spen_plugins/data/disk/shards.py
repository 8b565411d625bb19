"""Rows and cells of Parquet and Arrow files, single or sharded, read in batches by pyarrow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spen_plugins.data.catalogue import find_conll_2012_files, find_files, image_files, is_pattern
from spen_plugins.data.text import open_as_is, opened, sha256
from spen_plugins.errors import DataError, explain_missing
from spen_plugins.files import no_file

MOST_CELLS = 1 << 30
"""Maximum number of cells of a file that is kept in memory."""


def check_valid(path: str | Path, rows: Any) -> None:
    """Check a table's or batch's columns, which pyarrow reads unchecked; a DataError names the invalid column."""
    import pyarrow as pa

    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            reason = str(error).rpartition("Invalid: ")[2]
            raise DataError(path, None, f"column {name!r} damaged ({reason})", "valid values, texts in UTF-8") from None


def read_cells(path: str | Path, name: str, column: Any) -> list[Any]:
    """The cells of a valid column. Times in an unknown zone are texts, in UTC; times after the year 9999 are None."""
    import pyarrow as pa

    try:
        return column.to_pylist()
    except (ValueError, OverflowError, LookupError):  # Python has no such time, or no such zone
        pass
    try:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp(column.type.unit))
        texts = column.cast(pa.string()).to_pylist()
        return [None if text and text.startswith("<value out of range") else text for text in texts]
    except pa.ArrowException as error:
        problem = f"values in column {name!r} of type {column.type} that can't be read ({error})"
        raise DataError(path, None, problem, "texts, numbers, or lists of them") from None


def convert_cell(value: Any) -> Any:
    """A cell as text, a list of texts, or None where it is null or NaN."""
    if isinstance(value, list):
        return [convert_cell(item) for item in value]
    return None if value is None or value != value else str(value)


SUFFIXES = (".parquet", ".arrow")
AT_ONCE = 8192
"""Maximum number of rows of a batch."""


def shards(path: Path) -> list[Path]:
    """The files in a folder, or that match a pattern, sorted by name; for a file, the file itself."""
    if path.is_dir():
        files = _list_shards(path)
        if not files:
            raise DataError(path, None, "a folder without such files", "Parquet or Arrow files (*.parquet, *.arrow)")
        return files
    return [file for _, file in find_files(path)] if is_pattern(path) else [path]


def _list_shards(folder: Path) -> list[Path]:
    try:
        return sorted(filter(_is_shard, folder.iterdir()))
    except OSError as error:
        raise DataError(folder, None, f"a folder that can't be read ({error.strerror})", "a readable folder") from None


def _is_shard(file: Path) -> bool:
    """True for a Parquet or Arrow file, except those in which `datasets` caches computed tables."""
    return file.suffix in SUFFIXES and not file.name.startswith("cache-")


def is_sharded(path: Path) -> bool:
    """True for a folder or pattern of Parquet and Arrow files, and for such a file."""
    try:
        if path.is_dir():
            return any(map(_is_shard, path.iterdir()))
        if not path.exists():
            return is_pattern(path)
        if no_file(path):
            return False
        with path.open("rb") as file:
            return file.read(6).startswith((b"PAR1", b"ARROW1")) or path.suffix == ".arrow"
    except OSError:  # reading the file raises an error with the reason
        return False


def checksum(path: Path) -> str:
    """sha256 of a file; for a pattern, or a folder of shards, CoNLL-2012 files or images, sha256 of its files' names
    and checksums."""
    if path.is_dir():
        files = [*((file.name, file) for file in _list_shards(path)), *find_conll_2012_files(path)] or image_files(path)
    elif is_pattern(path):
        files = find_files(path)
    else:
        return sha256(path)
    lines = [f"{sha256(file)}  {name}\n" for name, file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def check_in_memory(path: Path) -> None:
    """Check that a file can be kept in memory; a DataError if it is too large or `pieces` can't read it."""
    opened(path).close()
    with _open_table(path) as table:
        metadata = getattr(table, "metadata", None)  # a few bytes of Parquet may stand for many equal cells
        cells = 0 if metadata is None else metadata.num_rows * metadata.num_columns
    if cells > MOST_CELLS:
        expected = f"at most {MOST_CELLS:,}, as they must fit in memory; task.on_disk=true keeps training data on disk"
        raise DataError(path, None, f"{cells:,} cells", expected)


def column_names(path: Path) -> list[str]:
    """Names of a file's columns; errors are as in `pieces`."""
    with _open_table(path) as table:
        return list(table.schema_arrow.names if hasattr(table, "schema_arrow") else table.schema.names)


def pieces(path: Path) -> Iterator[tuple[int, Any]]:
    """All rows of a Parquet or Arrow file: the number of the first row, from 1, and the rows, a `pyarrow.RecordBatch`.

    Numbers of Hugging Face's `ClassLabel` are replaced by the names.
    """
    first = 1
    with _open_table(path) as table:
        names = _read_class_labels(table.schema_arrow if hasattr(table, "schema_arrow") else table.schema)
        for rows in _read_batches(path, table):
            yield first, _decode_labels(rows, names)
            first += len(rows)


def _read_batches(path: Path, table: Any) -> Iterator[Any]:
    if hasattr(table, "iter_batches"):
        for rows in table.iter_batches(AT_ONCE):
            check_valid(path, rows)
            yield rows
        return
    batches = map(table.get_batch, range(table.num_record_batches)) if hasattr(table, "num_record_batches") else table
    for rows in batches:
        check_valid(path, rows)
        for start in range(0, len(rows), AT_ONCE):
            yield rows.slice(start, AT_ONCE)


@contextmanager
def _open_table(path: Path) -> Iterator[Any]:
    """An open file: a `ParquetFile`, or a reader of Arrow's file or stream format."""
    with explain_missing(
        f"{path} is a Parquet or Arrow file, which requires pyarrow: pip install 'spen-plugins[tables]'"
    ):
        import pyarrow as pa
        from pyarrow import parquet
    try:
        with open_as_is(path) as file:
            head = file.read(6)
        if head.startswith(b"PAR1"):
            with parquet.ParquetFile(path) as table:
                yield table
        elif head != b"ARROW1" and path.suffix != ".arrow":  # a stream of Arrow's has no mark
            raise DataError(path, None, "another format", "a Parquet or Arrow file")
        else:
            with pa.memory_map(str(path)) as memory_file:
                yield pa.ipc.open_file(memory_file) if head == b"ARROW1" else pa.ipc.open_stream(memory_file)
    except (pa.ArrowException, OSError) as error:
        kind = "Arrow" if path.suffix == ".arrow" else "Parquet"
        reason = " ".join(str(error).split())
        raise DataError(path, None, f"a damaged {kind} file ({reason:.200})", "a complete file") from None


def _read_class_labels(schema: Any) -> dict[str, list[str]]:
    """Each `ClassLabel` column's names, from Hugging Face's metadata in the file; cells are labels or lists of them."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return {}
    names = {}
    for column, feature in features.items() if isinstance(features, Mapping) else ():
        while isinstance(feature, Mapping) and "feature" in feature:
            feature = feature["feature"]
        if isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel" and feature.get("names"):
            names[column] = feature["names"]
    return names


def _decode_labels(rows: Any, names: Mapping[str, list[str]]) -> Any:
    """The rows, with the numbers in the columns of `names` replaced by the names."""
    import pyarrow as pa

    for column in rows.schema.names:
        if column not in names:
            continue
        cells, labels = rows.column(column), pa.array(names[column])
        if pa.types.is_integer(cells.type):
            decoded = labels.take(_mask_unlabelled(cells))
        elif pa.types.is_list(cells.type) and pa.types.is_integer(cells.type.value_type):
            ends = cells.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).cumsum(dtype="int32")
            offsets = pa.array([0, *ends.tolist()], pa.int32())
            decoded = pa.ListArray.from_arrays(
                offsets, labels.take(_mask_unlabelled(cells.flatten())), mask=cells.is_null()
            )
        else:
            continue
        rows = rows.set_column(rows.schema.get_field_index(column), column, decoded)
    return rows


def _mask_unlabelled(numbers: Any) -> Any:
    """Numbers of a `ClassLabel`, with null in place of -1, which `datasets` writes if there is no label."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.if_else(compute.equal(numbers, -1), pa.scalar(None, numbers.type), numbers)
