"""Rows and cells of Parquet and Arrow files, one or several that belong together, a batch at a time, by pyarrow."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from spen_plugins.data.catalogue import find_conll_2012_files, find_files, image_files, is_pattern
from spen_plugins.data.text import open_as_is, opened, sha256
from spen_plugins.errors import DataError, explain_missing
from spen_plugins.files import no_file

MOST_CELLS = 1 << 30
"""Most cells of a file that is kept in memory."""


def check_valid(path: str | Path, rows: Any) -> None:
    """Check a table's or batch's columns, which pyarrow believes when it reads them; a DataError names the column."""
    import pyarrow as pa

    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            reason = str(error).rpartition("Invalid: ")[2]
            raise DataError(path, None, f"column {name!r} damaged ({reason})", "valid values, texts in UTF-8") from None


def read_cells(path: str | Path, name: str, column: Any) -> list[Any]:
    """The cells of a valid column. Times in an unknown zone are texts, in UTC; those after the year 9999 are None."""
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


SUFFIXES = (".parquet", ".arrow")
AT_ONCE = 8192
"""Most rows of a batch."""


class Piece(NamedTuple):
    """Some rows of a file: a `pyarrow.RecordBatch`, and the number of its first row, from 1."""

    path: Path
    first: int
    rows: Any


def shards(path: Path) -> list[Path]:
    """The files that a folder or a pattern stands for, by name; a file itself."""
    if path.is_dir():
        found = _shards_in(path)
        if not found:
            raise DataError(path, None, "a folder without such files", "Parquet or Arrow files (*.parquet, *.arrow)")
        return found
    return [file for _, file in find_files(path)] if is_pattern(path) else [path]


def _shards_in(folder: Path) -> list[Path]:
    try:
        return sorted(filter(_is_shard, folder.iterdir()))
    except OSError as error:
        raise DataError(folder, None, f"a folder that can't be read ({error.strerror})", "a readable folder") from None


def _is_shard(file: Path) -> bool:
    """True of a Parquet or Arrow file; what `datasets` keeps of computed tables beside them is none."""
    return file.suffix in SUFFIXES and not file.name.startswith("cache-")


def is_sharded(path: Path) -> bool:
    """True of a folder or pattern of Parquet and Arrow files, and of such a file."""
    try:
        if path.is_dir():
            return any(map(_is_shard, path.iterdir()))
        if not path.exists():
            return is_pattern(path)
        if no_file(path):
            return False
        with path.open("rb") as file:
            return file.read(6).startswith((b"PAR1", b"ARROW1")) or path.suffix == ".arrow"
    except OSError:  # who reads the file says why
        return False


def checksum(path: Path) -> str:
    """sha256 of a file; of a pattern, or of a folder of shards, CoNLL-2012 files or images, of its files' names and
    sums."""
    if path.is_dir():
        files = [*((file.name, file) for file in _shards_in(path)), *find_conll_2012_files(path)] or image_files(path)
    elif is_pattern(path):
        files = find_files(path)
    else:
        return sha256(path)
    sums = [f"{sha256(file)}  {name}\n" for name, file in files]
    return hashlib.sha256("".join(sums).encode()).hexdigest()


def check_in_memory(path: Path) -> None:
    """Check that a file can be kept in memory; a DataError if it is too large, or as `pieces`."""
    opened(path).close()
    with _table(path) as table:
        about = getattr(table, "metadata", None)  # a few bytes of Parquet may stand for many equal cells
        cells = 0 if about is None else about.num_rows * about.num_columns
    if cells > MOST_CELLS:
        wanted = f"at most {MOST_CELLS:,}, as they must fit in memory; task.on_disk=true keeps training data on disk"
        raise DataError(path, None, f"{cells:,} cells", wanted)


def column_names(path: Path) -> list[str]:
    """Names of a file's columns; errors as `pieces`."""
    with _table(path) as table:
        return list(table.schema_arrow.names if hasattr(table, "schema_arrow") else table.schema.names)


def pieces(path: Path) -> Iterator[Piece]:
    """All rows of a Parquet or Arrow file; numbers that stand for names, by Hugging Face's `ClassLabel`, as these."""
    first = 1
    with _table(path) as table:
        names = _class_labels(table.schema_arrow if hasattr(table, "schema_arrow") else table.schema)
        for rows in _batches(path, table):
            yield Piece(path, first, _named(rows, names))
            first += len(rows)


def _batches(path: Path, table: Any) -> Iterator[Any]:
    if hasattr(table, "iter_batches"):
        for rows in table.iter_batches(AT_ONCE):
            check_valid(path, rows)
            yield rows
        return
    whole = map(table.get_batch, range(table.num_record_batches)) if hasattr(table, "num_record_batches") else table
    for rows in whole:
        check_valid(path, rows)
        for start in range(0, len(rows), AT_ONCE):
            yield rows.slice(start, AT_ONCE)


@contextmanager
def _table(path: Path) -> Iterator[Any]:
    """A file, open: a `ParquetFile`, or a reader of Arrow's file or stream format."""
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
            with pa.memory_map(str(path)) as mapped:
                yield pa.ipc.open_file(mapped) if head == b"ARROW1" else pa.ipc.open_stream(mapped)
    except (pa.ArrowException, OSError) as error:
        kind = "Arrow" if path.suffix == ".arrow" else "Parquet"
        reason = " ".join(str(error).split())
        raise DataError(path, None, f"a damaged {kind} file ({reason:.200})", "a complete file") from None


def _class_labels(schema: Any) -> dict[str, list[str]]:
    """The names of columns of Hugging Face's `ClassLabel`, alone or in lists, as the file's metadata have them."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return {}
    found = {}
    for column, feature in features.items() if isinstance(features, Mapping) else ():
        while isinstance(feature, Mapping) and "feature" in feature:
            feature = feature["feature"]
        if isinstance(feature, Mapping) and feature.get("_type") == "ClassLabel" and feature.get("names"):
            found[column] = feature["names"]
    return found


def _named(rows: Any, names: Mapping[str, list[str]]) -> Any:
    """The rows, in which numbers of the columns `names` are names."""
    import pyarrow as pa

    for column in rows.schema.names:
        if column not in names:
            continue
        given, known = rows.column(column), pa.array(names[column])
        if pa.types.is_integer(given.type):
            named = known.take(_labelled(given))
        elif pa.types.is_list(given.type) and pa.types.is_integer(given.type.value_type):
            ends = given.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).cumsum(dtype="int32")
            offsets = pa.array([0, *ends.tolist()], pa.int32())
            named = pa.ListArray.from_arrays(offsets, known.take(_labelled(given.flatten())), mask=given.is_null())
        else:
            continue
        rows = rows.set_column(rows.schema.get_field_index(column), column, named)
    return rows


def _labelled(numbers: Any) -> Any:
    """Numbers of a `ClassLabel`, null in place of -1, by which `datasets` says that there is no label."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.if_else(compute.equal(numbers, -1), pa.scalar(None, numbers.type), numbers)
