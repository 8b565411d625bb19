"""The command `spen annotate`. Heavy imports wait until it runs, so that its help is fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from spen_plugins import ConfigError, locked

LARGEST_SHARD = 1024
"""MB of text; a piece of a text file of this size is read at once."""
PRINTED = Path("-")
"""Output that is printed."""


class Form(StrEnum):
    """Format of the output."""

    parquet = "parquet"
    jsonl = "jsonl"
    docbin = "docbin"


class Kind(StrEnum):
    """Format of the input."""

    text = "text"
    jsonl = "jsonl"
    json = "json"
    csv = "csv"
    parquet = "parquet"
    docbin = "docbin"


class Documents(StrEnum):
    """What a document of text files is."""

    line = "line"
    file = "file"


class Errors(StrEnum):
    """What becomes of a document that fails."""

    stop = "stop"
    keep = "keep"


class Engine(StrEnum):
    """What runs the pipeline."""

    local = "local"
    ray = "ray"


PipelineOption = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        show_default=False,
        help="A spaCy pipeline, name (spen_en) or folder, or a run folder of the task tagging, srl or text.",
    ),
]
Input = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT...",
        show_default=False,
        help="Files, folders (all that lies below, in order of the names) or quoted patterns ('corpus/**/*.txt'): text "
        "in UTF-8 (.txt), JSON lines (.jsonl), JSON (.json), CSV (.csv, .tsv), these also compressed (.gz), Parquet "
        "(.parquet) or DocBin (.spacy).",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        metavar="FOLDER",
        show_default=False,
        help="Folder of the shards; one that was begun is finished. With --to jsonl, - is standard output.",
    ),
]
To = Annotated[
    Form,
    typer.Option(
        help="parquet: a row per document, annotations as columns; jsonl: the same as JSON lines; docbin: spaCy's docs."
    ),
]
From = Annotated[Kind | None, typer.Option("--from", show_default=False, help="Format (default: as the names end).")]
DocumentsOption = Annotated[Documents, typer.Option(help="Of text: a document is a line that is not blank, or a file.")]
Text = Annotated[
    str,
    typer.Option("--text", "--text-column", metavar="FIELD", help="Of JSON, CSV and Parquet: the field of text."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        show_default=False,
        help="Annotations to write as columns, with commas between them (default: all that the pipeline sets).",
    ),
]
ErrorsOption = Annotated[
    Errors,
    typer.Option(
        help="stop: a document that fails is named and ends the job, which can go on later; keep: its row has no "
        "annotations, and the reason in the column error."
    ),
]
ShardSize = Annotated[
    float | None,
    typer.Option(
        metavar="MB",
        show_default=False,
        help="Text in a shard; a process that is killed loses one (default: a 64th of all, 0.07 to 4).",
    ),
]
EngineOption = Annotated[Engine, typer.Option(help="local: this machine; ray: Ray Data, on one machine or many.")]
Processes = Annotated[int | None, typer.Option(min=1, show_default=False, help="Of local: processes (default: 1).")]
Workers = Annotated[
    int | None, typer.Option(min=1, show_default=False, help="Of ray: actors, each with a pipeline (default: 1).")
]
Gpus = Annotated[float | None, typer.Option(min=0, show_default=False, help="Of ray: GPUs of each worker.")]
Address = Annotated[
    str | None,
    typer.Option(show_default=False, help="Of ray: a running cluster, as in auto (default: Ray is started here)."),
]
Device = Annotated[
    str | None,
    typer.Option(show_default=False, help="Where it predicts: cpu, cuda, … (default: cuda with --gpus, else cpu)."),
]
PredicatesRun = Annotated[
    str | None,
    typer.Option(
        "--predicates",
        metavar="RUN",
        show_default=False,
        help="Of a run of srl: the run that finds the predicates (default: that of the plugin spen-en).",
    ),
]
LanguageOption = Annotated[
    str | None,
    typer.Option(show_default=False, help="Of a run: code of the language of the tokeniser (default: en)."),
]


def annotate(
    pipeline: PipelineOption,
    inputs: Input,
    out: Out,
    to: To = Form.parquet,
    kind: From = None,
    documents: DocumentsOption = Documents.line,
    text: Text = "text",
    columns: Columns = None,
    errors: ErrorsOption = Errors.stop,
    shard_size: ShardSize = None,
    engine: EngineOption = Engine.local,
    processes: Processes = None,
    workers: Workers = None,
    gpus: Gpus = None,
    address: Address = None,
    device: Device = None,
    predicates: PredicatesRun = None,
    language: LanguageOption = None,
) -> None:
    """Annotate a corpus: text, JSON, CSV, Parquet or DocBin to Parquet, JSON or DocBin, on one machine or many.

    The input is cut into shards, which are written in its order:
    shard-000000.parquet and so on. A job that was stopped or killed goes on
    by the same command; a shard is there when it is whole, and is not made
    twice.

    Parquet and JSON lines have a row per document: input_file, input_row (its
    line, row or number there), text, the other fields of JSON, CSV and
    Parquet, and what the pipeline sets, as tokens, pos, tags, ents, frames,
    cats, with probabilities.

    --to jsonl --out - prints the lines in the order of the input. Nothing
    is kept, so such a job begins anew.
    """
    _check(engine, {"--processes": processes}, {"--workers": workers, "--gpus": gpus, "--address": address})
    if columns is not None and to == Form.docbin:
        raise ConfigError("--columns: a DocBin has all annotations; expected --to parquet or jsonl")
    if is_printed := out == PRINTED:
        _check_printed(to, engine)
    from spen_spacy.annotate import engines, on_ray, parquet
    from spen_spacy.annotate.columns import columns as columns_of
    from spen_spacy.annotate.finding import find as find_sources
    from spen_spacy.annotate.finding import note_skipped
    from spen_spacy.annotate.pipeline import find
    from spen_spacy.annotate.plan import Job, is_unfinished, reading_of, settled
    from spen_spacy.annotate.printing import print_shards
    from spen_spacy.annotate.progress import follow
    from spen_spacy.annotate.shards import note_failed, note_unspaced

    if engine == Engine.ray:
        on_ray.available()
    if to == Form.parquet:
        parquet.require()
    named = find(pipeline, predicates, language, device or ("cuda" if gpus else None))
    found, sources = find_sources(inputs, kind, out)
    for note in note_skipped(inputs, found, sources, out):
        typer.echo(note, err=True)
    nlp, identity = named.load(), named.identity()
    wanted = None if columns is None else tuple(name.strip() for name in columns.split(","))
    if to != Form.docbin:
        columns_of(nlp, wanted)  # refuses unknown ones
    options = {"--from": found, "--documents": documents, "--text": text, "--to": to, "--columns": columns}
    if shard_size is not None and not 0 < shard_size <= LARGEST_SHARD:
        raise ConfigError(f"--shard-size: found {shard_size}; expected more than 0, at most {LARGEST_SHARD}")
    size = None if shard_size is None else max(1, round(shard_size * 1e6))
    with ExitStack() as stack:
        if is_printed:
            out = Path(stack.enter_context(TemporaryDirectory(prefix="spen-annotate-")))
        stack.enter_context(locked(out))
        plan = settled(out, options | {"--language": named.language}, identity, sources, size)
        _tidy(out, is_unfinished)
        job = Job(
            pipeline=named,
            identity=identity,
            reading=reading_of(options),
            kinds=plan.kinds,
            out=str(out.resolve()),
            form=to,
            columns=wanted,
            keep_errors=errors == Errors.keep,
        )
        todo = [shard for shard in plan.shards if not shard.path(job).exists()]
        for note in note_unspaced(nlp, job, todo[0], language) if todo else ():
            typer.echo(note, err=True)
        if engine == Engine.ray and todo:
            done = on_ray.on_ray(workers or 1, gpus or 0, address, job, todo)
        elif (processes or 1) > 1 and todo:
            done = engines.processes(processes, job, todo)
        else:
            done = engines.here(nlp, job, todo)
        if is_printed:
            typer.echo(follow(print_shards(done, job, plan.shards), len(plan.shards), len(todo), True), err=True)
            return
        typer.echo(follow(done, len(plan.shards), len(todo)))
        _tidy(out, is_unfinished)
        typer.echo(f"{out}: all of {len(plan.shards)} shards{note_failed(job, plan.shards)}")


def _tidy(out: Path, is_unfinished: Callable[[Path], bool]) -> None:
    """Remove what processes that were killed had begun to write; this process holds the folder, and it has our plan."""
    for left in filter(is_unfinished, out.iterdir()):
        left.unlink(missing_ok=True)


def _check_printed(to: Form, engine: Engine) -> None:
    """Raise a ConfigError for options that standard output has no place for."""
    if to != Form.jsonl:
        raise ConfigError(f"--out -: found --to {to}; expected --to jsonl, or a folder")
    if engine == Engine.ray:
        raise ConfigError("--out -: found --engine ray; expected --engine local, or a folder that all machines see")


def _check(engine: Engine, of_local: Mapping[str, Any], of_ray: Mapping[str, Any]) -> None:
    """Raise a ConfigError for an option of the other engine."""
    other = Engine.local if engine == Engine.ray else Engine.ray
    for option, value in (of_local if engine == Engine.ray else of_ray).items():
        if value is not None:
            raise ConfigError(f"{option} {value}: found --engine {engine}; expected --engine {other}, or no {option}")
