"""The command `spen annotate`. Heavy imports wait until it runs, so that its help is fast."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from spen_plugins import ConfigError, locked
from spen_spacy.annotate import options
from spen_spacy.annotate.options import Documents, Engine, Errors, Form

if TYPE_CHECKING:
    from spacy.language import Language

    from spen_spacy.annotate.plan import Job, Shard
    from spen_spacy.annotate.shards import Done

PRINTED = Path("-")
"""Output that is printed."""


def annotate(
    pipeline: options.PipelineOption,
    inputs: options.Input,
    out: options.Out,
    to: options.To = Form.parquet,
    kind: options.From = None,
    documents: options.DocumentsOption = Documents.line,
    text: options.Text = "text",
    columns: options.Columns = None,
    errors: options.ErrorsOption = Errors.stop,
    shard_size: options.ShardSize = None,
    engine: options.EngineOption = Engine.local,
    processes: options.Processes = 1,
    gpus: options.Gpus = None,
    address: options.Address = None,
    device: options.Device = None,
    predicates: options.PredicatesRun = None,
    language: options.LanguageOption = None,
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
    if engine == Engine.local and (gpus is not None or address is not None):
        raise ConfigError("--gpus and --address: found --engine local; expected --engine ray")
    if shard_size is not None and not 0 < shard_size <= options.LARGEST_SHARD:
        raise ConfigError(f"--shard-size: found {shard_size}; expected more than 0, at most {options.LARGEST_SHARD}")
    wanted = None if columns is None else tuple(name.strip() for name in columns.split(","))
    is_printed = out == PRINTED
    _check_form(to, engine, is_printed, wanted)
    from spen_spacy.annotate import on_ray, parquet
    from spen_spacy.annotate.columns import list_columns
    from spen_spacy.annotate.finding import find_sources
    from spen_spacy.annotate.pipeline import find_pipeline
    from spen_spacy.annotate.plan import Job, choose_reading, read_or_make_plan, remove_unfinished
    from spen_spacy.annotate.shards import note_unspaced

    if engine == Engine.ray:
        on_ray.require()
    if to == Form.parquet:
        parquet.require()
    named = find_pipeline(pipeline, predicates, language, device or ("cuda" if gpus else None))
    format, sources, skipped = find_sources(inputs, kind, out)
    _note_skipped(skipped)
    nlp, identity = named.load(), named.identity()
    if to != Form.docbin:
        list_columns(nlp, wanted)  # an unknown one is an error before anything is written
    choices = {"--from": format, "--documents": documents, "--text": text, "--to": to, "--columns": columns}
    size = None if shard_size is None else max(1, round(shard_size * 1e6))
    with ExitStack() as stack:
        if is_printed:
            out = Path(stack.enter_context(TemporaryDirectory(prefix="spen-annotate-")))
        stack.enter_context(locked(out))
        plan = read_or_make_plan(out, choices | {"--language": named.language}, identity, sources, size)
        remove_unfinished(out)
        reading, keeps_errors = choose_reading(choices), errors == Errors.keep
        job = Job(named, identity, reading, plan.kinds, str(out.resolve()), to, wanted, keeps_errors)
        todo = [shard for shard in plan.shards if not shard.path(job).exists()]
        for note in note_unspaced(nlp, job, todo[:1], language):
            typer.echo(note, err=True)
        done = _start(engine, processes, gpus or 0, address, nlp, job, todo)
        _follow(done, job, plan.shards, len(todo), is_printed)


def _start(
    engine: Engine,
    processes: int,
    gpus: float,
    address: str | None,
    nlp: Language,
    job: Job,
    todo: Sequence[Shard],
) -> Generator[Done, None, None]:
    """Returns what an engine yields."""
    from spen_spacy.annotate import engines, on_ray

    if engine == Engine.ray and todo:
        return on_ray.run_on_ray(processes, gpus, address, job, todo)
    if processes > 1 and todo:
        return engines.run_processes(processes, job, todo)
    return engines.run_here(nlp, job, todo)


def _follow(done: Generator[Done, None, None], job: Job, shards: Sequence[Shard], todo: int, is_printed: bool) -> None:
    """See the shards through, with a line at the end."""
    from spen_spacy.annotate.plan import remove_unfinished
    from spen_spacy.annotate.printing import print_shards
    from spen_spacy.annotate.progress import follow
    from spen_spacy.annotate.shards import note_failed

    if is_printed:
        typer.echo(follow(print_shards(done, job, shards), len(shards), todo, True), err=True)
        return
    typer.echo(follow(done, len(shards), todo))
    remove_unfinished(Path(job.out))
    typer.echo(f"{job.out}: all of {len(shards)} shards{note_failed(job, shards)}")


def _note_skipped(skipped: Sequence[Path]) -> None:
    if skipped:
        shown = ", ".join(map(str, skipped[:3])) + (", …" if len(skipped) > 3 else "")
        typer.echo(f"skipped, of an unknown format: {len(skipped):,} of the files found ({shown})", err=True)


def _check_form(to: Form, engine: Engine, is_printed: bool, columns: Sequence[str] | None) -> None:
    """Raise a `ConfigError` for an output that the options do not fit."""
    if columns is not None and to == Form.docbin:
        raise ConfigError("--columns: a DocBin has all annotations; expected --to parquet or jsonl")
    if is_printed and to != Form.jsonl:
        raise ConfigError(f"--out -: found --to {to}; expected --to jsonl, or a folder")
    if is_printed and engine == Engine.ray:
        raise ConfigError("--out -: found --engine ray; expected --engine local, or a folder that all machines see")
