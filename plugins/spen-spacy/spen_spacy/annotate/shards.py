"""One shard: annotates its documents, and writes the rows to a file that appears when it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, DocBin

import spen_plugins as sp
from spen_spacy.annotate import docbin, fields, jsonl, parquet
from spen_spacy.annotate.columns import Column, list_columns
from spen_spacy.annotate.plan import Job, Shard
from spen_spacy.annotate.sources import Document
from spen_spacy.predicting import cut_groups

CHARACTERS = 200_000
"""Number of characters of the documents that go through the pipeline together, which bounds memory."""
DOCUMENTS = 2000
"""Maximal number of documents that go through the pipeline together."""
FIRST = 100
"""Number of documents that are examined for a warning."""
INPUT = "spen_input"
"""Entry of `user_data` in a DocBin: the document's file, row and fields; error and text of one that failed."""


class Done(NamedTuple):
    """Documents of a shard that were annotated since its last `Done`, or the reason why the shard failed."""

    number: int
    documents: int
    words: int
    characters: int
    is_last: bool
    """True if the shard's file is in place, or the shard failed."""
    failure: str = ""


class Row(NamedTuple):
    """A document with its doc and the values of its columns, or with the reason why it has none."""

    document: Document
    doc: Doc | None
    error: str | None
    values: Mapping[str, Any]


Columns = Mapping[str, Column]
Write = Callable[[Sequence[Row]], None]


def annotate(nlp: Language, job: Job, shard: Shard) -> Iterator[Done]:
    """Annotates a shard, group by group, and puts its file in place."""
    failure = ""
    try:
        columns = {} if job.form == "docbin" else list_columns(nlp, job.columns)
        with (
            nlp.memory_zone(),
            sp.writing(shard.path(job)) as temporary,
            _WRITERS[job.form](nlp, job, shard, columns, temporary) as write,
        ):
            for group in _group_documents(_read(nlp, job, shard)):
                rows = [_read_columns(columns, *result) for result in _annotate_group(nlp, group)]
                first_error = next((row.error for row in rows if row.error is not None), None)
                if first_error is not None and not job.keeps_errors:
                    raise sp.RunError(first_error)
                write(rows)
                docs = [row.doc for row in rows if row.doc is not None]
                yield Done(shard.number, len(rows), sum(map(len, docs)), sum(len(doc.text) for doc in docs), False)
    except sp.SpenError as error:
        failure = str(error)
    yield Done(shard.number, 0, 0, 0, True, failure)


def note_failed(job: Job, shards: Sequence[Shard]) -> str:
    """A clause about the documents of finished shards that failed; "" if there are none."""
    if job.form in ("parquet", "jsonl"):
        count_failed = parquet.count_failed if job.form == "parquet" else jsonl.count_failed
        count = sum(count_failed(shard.path(job)) for shard in shards)
        place = "the column error" if job.form == "parquet" else "the key error"
    else:
        count = sum(
            "error" in user_data[INPUT] for shard in shards for user_data in docbin.read_user_data(shard.path(job))
        )
        place = f"user_data['{INPUT}']"
    return f"; {describe_failed(count, place)}" if count else ""


def describe_failed(count: int, location: str) -> str:
    """The number of documents that failed, and where the reason stands."""
    return f"{count:,} document{'s' * (count > 1)} failed ({location} says why)"


def note_unspaced(nlp: Language, job: Job, shards: Sequence[Shard], language: str | None) -> list[str]:
    """A warning if the first documents of shards have no blanks between words; see `spen_plugins.note_unspaced`."""
    if not job.pipeline.tags_words or job.pipeline.language != "en":
        return []
    documents = islice((document for shard in shards for document in _read(nlp, job, shard)), FIRST)
    texts = (document.text for document in documents if isinstance(document.text, str))
    return sp.note_unspaced("\n".join(texts), language)


def _read(nlp: Language, job: Job, shard: Shard) -> Iterator[Document]:
    for piece in shard.pieces:
        path = Path(piece.source.path)
        try:
            status = path.stat()
            if (status.st_size, status.st_mtime_ns) != (piece.source.size, piece.source.modified):
                raise sp.DataError(path, None, "a file that has changed", "the file that the plan was made from")
            yield from job.reader.read(piece, nlp.vocab)
        except OSError as error:
            found = f"a file that can't be read ({error.strerror or error})"
            raise sp.DataError(path, None, found, "one that every process and machine can read") from error


def _group_documents(documents: Iterator[Document]) -> Iterator[list[Document]]:
    """Documents that go through the pipeline together."""
    return cut_groups(documents, lambda document: len(_read_text(document) or ""), CHARACTERS, DOCUMENTS)


def _annotate_group(nlp: Language, group: Sequence[Document]) -> Iterator[tuple[Document, Doc | None, str | None]]:
    """Each document with its doc, or with the reason why it has none."""
    readable = [document for document in group if document.text is not None]
    try:
        docs: list[Doc | str] = list(nlp.pipe(map(_copy_text, readable), batch_size=len(group)))
        if len(docs) != len(readable):
            raise ValueError("a component left documents out")
    except Exception:  # raised by any component; one document at a time shows which it was
        docs = [_annotate_one(nlp, document) for document in readable]
    remaining = iter(docs)
    for document in group:
        doc = document.error if document.text is None else next(remaining)
        yield (document, None, doc) if isinstance(doc, str) else (document, doc, None)


def _annotate_one(nlp: Language, document: Document) -> Doc | str:
    """A document's doc, or the reason why it has none."""
    try:
        return nlp(_copy_text(document))
    except Exception as error:
        return _describe_failure(document, error)


def _read_columns(columns: Columns, document: Document, doc: Doc | None, error: str | None) -> Row:
    """The row of a document; it has an error if one of its values can't be read."""
    values = {}
    for name, column in columns.items() if doc is not None else ():
        try:
            values[name] = column.read(doc)
        except Exception as failure:  # raised by the getter of any component
            return Row(document, None, _describe_failure(document, failure, f"the column {name!r}"), {})
    return Row(document, doc, error, values)


def _describe_failure(document: Document, error: Exception, culprit: str = "the pipeline") -> str:
    reason = " ".join(str(error).split())
    return f"{document.name}:{document.row}: {culprit} fails ({type(error).__name__}: {reason:.300})"


def _copy_text(document: Document) -> Any:
    """A text, or a copy of a doc: a component that fails may leave it half annotated."""
    return document.text.copy() if isinstance(document.text, Doc) else document.text


@contextmanager
def _open_docbin(nlp: Language, job: Job, shard: Shard, columns: Columns, path: Path) -> Iterator[Write]:
    docs = DocBin(store_user_data=True)

    def write(rows: Sequence[Row]) -> None:
        for document, doc, error, _ in rows:
            entry = {"file": document.name, "row": document.row, "fields": document.fields}
            if doc is None:
                doc = Doc(nlp.vocab)
                entry |= {"error": error, "text": _read_text(document)}
            doc.user_data[INPUT] = fields.make_plain(entry)
            docs.add(doc)

    yield write
    docs.to_disk(path)


@contextmanager
def _open_parquet(nlp: Language, job: Job, shard: Shard, columns: Columns, path: Path) -> Iterator[Write]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    from spen_spacy.annotate.cells import TYPES, make_cell

    document_types = {"input_file": pa.string(), "input_row": pa.int64(), "text": pa.string()}
    reserved = {*document_types, *columns, "error", fields.OTHER}
    if job.reader.kind == "parquet":
        types = parquet.read_types(shard.pieces[0].source.path, job.reader.field)
        kinds: Mapping[str, str] = dict.fromkeys(types, "any")
    else:
        kinds = job.kinds
        types = {name: pa.type_for_alias("string" if kind == "json" else kind) for name, kind in kinds.items()}
    names = fields.name_columns(kinds, reserved)
    other_types = {fields.OTHER: pa.string()} if job.reader.kind in ("jsonl", "json") else {}
    schema = pa.schema(
        document_types
        | {names[name]: type_ for name, type_ in types.items()}
        | other_types
        | {name: TYPES[column.kind] for name, column in columns.items()}
        | {"error": pa.string()}
    )

    with ParquetWriter(path, schema, compression="zstd") as writer:

        def write(rows: Sequence[Row]) -> None:
            table = []
            for document, _, error, values in rows:
                row = _make_row(document) | {"error": error} | fields.as_columns(document.fields, kinds, names)
                row |= {name: make_cell(columns[name], value) for name, value in values.items()}
                table.append(row)
            writer.write_table(pa.Table.from_pylist(table, schema))

        yield write


@contextmanager
def _open_jsonl(nlp: Language, job: Job, shard: Shard, columns: Columns, path: Path) -> Iterator[Write]:
    with path.open("w", encoding="utf-8", newline="\n") as file:

        def write(rows: Sequence[Row]) -> None:
            for document, _, error, values in rows:
                row = _make_row(document)
                names = fields.name_columns(document.fields, {*row, *columns, "error"})
                row |= {names[name]: value for name, value in document.fields.items()}
                row |= {**dict.fromkeys(columns), **values}
                file.write(jsonl.write_line(row, error))

        yield write


_WRITERS = {"parquet": _open_parquet, "jsonl": _open_jsonl, "docbin": _open_docbin}
"""Form of the output -> a function that opens a file in it, for rows."""


def _make_row(document: Document) -> dict[str, Any]:
    """The columns of the document itself."""
    return {"input_file": document.name, "input_row": document.row, "text": _read_text(document)}


def _read_text(document: Document) -> str | None:
    """A document's text; None if it could not be read."""
    return document.text.text if isinstance(document.text, Doc) else document.text
