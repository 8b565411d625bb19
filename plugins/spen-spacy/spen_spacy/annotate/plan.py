"""The plan: the shards of a corpus, written before the first is annotated and kept beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from spacy.vocab import Vocab

import spen_plugins as sp
from spen_spacy.annotate import fields, parquet
from spen_spacy.annotate.pipeline import Pipeline, describe_identity
from spen_spacy.annotate.sources import PLAN, Piece, Reader, Source
from spen_spacy.annotate.tables import read_header

SUFFIX = {"parquet": ".parquet", "jsonl": ".jsonl", "docbin": ".spacy"}
_UNFINISHED = re.compile(r"(shard-\d{6,}\.(parquet|jsonl|spacy)|_plan\.json)\.[0-9a-f]{8}-\d+-[0-9a-f]{16}\.partial")
SHARDS = 64
"""Default number of shards, if the size of each is then between `SIZES`, in bytes of text."""
SIZES = 1 << 16, 1 << 22


@dataclass(frozen=True)
class Job:
    """Everything that all shards share, as plain values for other processes and machines."""

    pipeline: Pipeline
    identity: Mapping[str, str]
    """The pipeline's, when the plan was made."""
    reader: Reader
    kinds: Mapping[str, str]
    """As in `Plan`."""
    out: str
    form: str
    """A key of `SUFFIX`."""
    columns: tuple[str, ...] | None
    """For Parquet and JSON lines, the columns of annotations; None: all."""
    keeps_errors: bool
    """If true, a document that fails is a row with an error; otherwise it ends the job."""


@dataclass(frozen=True)
class Shard:
    """A file of the output and the pieces of the input that it is made of."""

    number: int
    pieces: tuple[Piece, ...]

    def path(self, job: Job) -> Path:
        """The path of the finished shard."""
        return Path(job.out) / f"shard-{self.number:06d}{SUFFIX[job.form]}"


@dataclass(frozen=True)
class Plan:
    """The facts that may not change between calls, and the shards, in order."""

    options: Mapping[str, Any]
    identity: Mapping[str, str]
    sources: Sequence[Source]
    kinds: Mapping[str, str]
    """For JSON and CSV, the type of each field but the text."""
    size: int
    """Approximate number of bytes of text in a shard."""
    shards: Sequence[Shard]


_PLAN = TypeAdapter(Plan)


def check_sources(reader: Reader, sources: Sequence[Source], keeps_errors: bool) -> None:
    """Raises a `DataError` if tables are damaged, have no field of text, or are of Parquet with different columns; a
    `RunError` if the first document can't be read and errors end the job.
    """
    _infer_kinds(reader, sources)
    first = next(reader.read(Piece(sources[0], 0, 1 << 60, 1), Vocab()), None)
    if first is not None and first.error and not keeps_errors:
        raise sp.RunError(first.error)


def read_or_make_plan(
    out: Path, options: Mapping[str, Any], identity: Mapping[str, str], sources: Sequence[Source], size: int | None
) -> Plan:
    """Reads the plan in `out`, whose lock this process holds, or makes and writes one. Without a size, the plan keeps
    its size, or a new one gets it from the size of the input. `ConfigError` if the plan is for another pipeline, input
    or choice, or the folder holds something else; `DataError` if a file of the input can't be read.
    """
    path = out / PLAN
    if path.exists():
        try:
            plan = _PLAN.validate_json(path.read_bytes())
        except ValueError as error:
            raise sp.RunError(f"{path} is damaged and can't be read: {error}") from error
        if difference := next(_list_differences(plan, options, identity, sources, size), None):
            raise sp.ConfigError(
                f"{out} holds annotations of another job: {difference}. Use another --out, or remove {out} to start "
                "again"
            )
        return plan
    if others := [entry.name for entry in out.iterdir() if entry.name != ".lock" and not _is_unfinished(entry)]:
        raise sp.ConfigError(f"{out} holds {others[0]!r} and no {PLAN}; expected an empty or a new folder")
    reader = Reader(options["--from"], options["--documents"], options["--text"])
    if size is None:
        smallest, largest = SIZES
        size = min(largest, max(smallest, sum(source.size for source in sources) // SHARDS))
    shards = tuple(_cut_shards(reader, sources, size))
    plan = Plan(options, identity, sources, _infer_kinds(reader, sources), size, shards)
    with sp.writing(path) as temporary:
        temporary.write_bytes(_PLAN.dump_json(plan))
    return plan


def remove_unfinished(out: Path) -> None:
    """Removes the plan and the shards that killed processes left unfinished; this process holds the folder's lock."""
    for path in filter(_is_unfinished, out.iterdir()):
        path.unlink(missing_ok=True)


def _is_unfinished(path: Path) -> bool:
    """True for a plan or a shard under its temporary name (`spen_plugins.writing`), false for any other file."""
    return bool(_UNFINISHED.fullmatch(path.name)) and path.is_file()


def _cut_shards(reader: Reader, sources: Sequence[Source], size: int) -> Iterator[Shard]:
    pieces: list[Piece] = []
    number = total = 0
    for source in sources:
        for start, end, first, length in reader.cut(Path(source.path), size):
            pieces.append(Piece(source, start, end, first))
            total += length
            if total >= size:
                yield Shard(number, tuple(pieces))
                pieces, number, total = [], number + 1, 0
    if pieces:
        yield Shard(number, tuple(pieces))


def _infer_kinds(reader: Reader, sources: Sequence[Source]) -> dict[str, str]:
    """The types of the other fields of JSON and CSV. Tables of Parquet must have equal columns."""
    if reader.kind in ("jsonl", "json"):
        pieces = (Piece(source, 0, 1 << 60, 1) for source in sources)
        heads = (islice(reader.read(piece, Vocab()), fields.LOOKED_AT) for piece in pieces)
        return fields.infer_kinds((document.fields for head in heads for document in head), reader.field)
    if reader.kind == "csv":
        names = (name for source in sources for name in read_header(source.path, reader.field).names)
        return {name: "string" for name in names if name != reader.field}
    if reader.kind == "parquet":
        first = parquet.read_types(sources[0].path, reader.field)
        for source in sources[1:]:
            if (types := parquet.read_types(source.path, reader.field)) != first:
                column = next(name for name in {**first, **types} if first.get(name) != types.get(name))
                expected = f"that of {sources[0].name}, {first.get(column)}"
                raise sp.DataError(source.name, None, f"the column {column!r} of type {types.get(column)}", expected)
    return {}


def _list_differences(
    plan: Plan, options: Mapping[str, Any], identity: Mapping[str, str], sources: Sequence[Source], size: int | None
) -> Iterator[str]:
    """Sentences about options, pipeline and files that differ from the plan's."""
    for name, value in options.items():
        if value != plan.options.get(name):
            yield f"found {name} {value}; expected {plan.options.get(name)}"
    if identity != plan.identity:
        yield f"found another pipeline, {describe_identity(identity)}; expected {describe_identity(plan.identity)}"
    if size is not None and size != plan.size:
        yield f"found --shard-size {size / 1e6:g}; expected {plan.size / 1e6:g}, or no --shard-size"
    planned, current = (
        {source.path: (source.size, source.modified) for source in group} for group in (plan.sources, sources)
    )
    for path in {**planned, **current}:
        if planned.get(path) != current.get(path):
            yield f"{path} is new, gone or changed"
    if list(planned) != list(current):
        yield "found the files of the input in another order"
