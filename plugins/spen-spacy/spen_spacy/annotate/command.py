"""The command `spen annotate`. Heavy imports wait until it runs, so that its help is fast."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from spen_plugins import ConfigError, Registry, locked
from spen_spacy.annotate import options

if TYPE_CHECKING:
    from spen_spacy.annotate.plan import Job, Plan
    from spen_spacy.annotate.shards import Done

PRINTED = Path("-")
"""Output that is printed."""


def annotate(
    pipeline: options.PipelineOption,
    inputs: options.Input,
    out: options.Out,
    to: options.To = "parquet",
    kind: options.From = None,
    documents: options.Documents = "line",
    text: options.Text = "text",
    columns: options.Columns = None,
    errors: options.Errors = "stop",
    shard_size: options.ShardSize = None,
    engine: options.Engine = "local",
    processes: options.Processes = 1,
    gpus: options.Gpus = None,
    address: options.Address = None,
    device: options.Device = None,
    precision: options.Precision = None,
    predicates: options.PredicatesRun = None,
    language: options.LanguageOption = None,
) -> None:
    """Annotate a corpus (text, JSON, CSV, Parquet, DocBin) with a spaCy pipeline or a run, on one machine or many.

    The input is cut into shards, which are written in order:
    shard-000000.parquet and so on. To resume a stopped or killed job, repeat
    the command; finished shards are kept.

    Each row has input_file, input_row (the line, row or number there), text,
    the other fields of JSON, CSV and Parquet, and what the pipeline predicts:
    tokens, pos, tags, ents, frames, cats, with probabilities.

    --to jsonl --out - prints the rows in the order of the input. Such a job
    can't be resumed.

    Example: spen annotate spen_en texts.txt --out annotated
    """
    wanted = None if columns is None else tuple(name.strip() for name in columns.split(","))
    is_printed = out == PRINTED
    _check(to, is_printed, wanted, shard_size, engine, (gpus, address))
    from spen_spacy.annotate import engines, on_ray, parquet
    from spen_spacy.annotate.columns import list_columns
    from spen_spacy.annotate.finding import find_sources
    from spen_spacy.annotate.pipeline import find_pipeline
    from spen_spacy.annotate.plan import Job, check_sources, read_or_make_plan, remove_unfinished
    from spen_spacy.annotate.shards import note_unspaced
    from spen_spacy.annotate.sources import Reading

    if engine == "ray":
        on_ray.require()
    if to == "parquet":
        parquet.require()
    named = find_pipeline(pipeline, predicates, language, device or ("cuda" if gpus else None), precision)
    if predicates is None and len(named.runs) > 1:
        _note_finder(named.language)
    format, sources, skipped = find_sources(inputs, kind, out)
    _note_skipped(skipped)
    reading = Reading(format, documents, text)
    check_sources(reading, sources, errors == "keep")
    nlp, identity = named.load(), named.identity()
    if to != "docbin":
        list_columns(nlp, wanted)  # an unknown one is an error before anything is written
    choices = {"--from": format, "--documents": documents, "--text": text, "--to": to, "--columns": columns}
    choices |= {"--language": named.language, "--precision": precision}
    size = None if shard_size is None else max(1, round(shard_size * 1e6))
    with ExitStack() as stack:
        if is_printed:
            out = Path(stack.enter_context(TemporaryDirectory(prefix="spen-annotate-")))
        stack.enter_context(locked(out))
        plan = read_or_make_plan(out, choices, identity, sources, size)
        remove_unfinished(out)
        job = Job(named, identity, reading, plan.kinds, str(out.resolve()), to, wanted, errors == "keep")
        todo = [shard for shard in plan.shards if not shard.path(job).exists()]
        for note in note_unspaced(nlp, job, todo[:1], language):
            typer.echo(note, err=True)
        if engine == "ray" and todo:
            done = on_ray.run_on_ray(processes, gpus or 0, address, job, todo)
        elif processes > 1 and todo:
            done = engines.run_processes(processes, job, todo)
        else:
            done = engines.run_here(nlp, job, todo)
        _follow(done, job, plan, len(todo), is_printed)


def _follow(done: Generator[Done, None, None], job: Job, plan: Plan, todo: int, is_printed: bool) -> None:
    """Follow the shards, with a line at the end."""
    from spen_spacy.annotate.plan import remove_unfinished
    from spen_spacy.annotate.progress import follow, print_shards
    from spen_spacy.annotate.shards import note_failed

    if is_printed:
        typer.echo(follow(print_shards(done, job, plan.shards), plan, todo, True), err=True)
        return
    typer.echo(follow(done, plan, todo))
    remove_unfinished(Path(job.out))
    shards = f"{len(plan.shards)} shard{'s' * (len(plan.shards) != 1)}"
    typer.echo(f"{job.out}: all of {shards}{note_failed(job, plan.shards)}")


def _note_finder(language: str) -> None:
    """Say which installed model finds the predicates; a warning if it is of another language."""
    registry = Registry()
    finder = registry.plugin(f"{registry.providers('model')['spen_srl'][0]}.spen_srl").distribution
    start = "note:" if language in finder.split("-") else f"warning: the text is in {language}, but"
    typer.echo(
        f"{start} predicates are found by {finder}; --predicates RUN names a model of another language or domain",
        err=True,
    )


def _note_skipped(skipped: Sequence[Path]) -> None:
    if skipped:
        shown = ", ".join(map(str, skipped[:3])) + (", …" if len(skipped) > 3 else "")
        typer.echo(f"skipped {len(skipped):,} of the files found, whose formats are unknown ({shown})", err=True)


def _check(
    to: str,
    is_printed: bool,
    columns: Sequence[str] | None,
    shard_size: float | None,
    engine: str,
    of_ray: tuple[float | None, str | None],
) -> None:
    """Raise a `ConfigError` for options that do not fit one another; `of_ray` are GPUs and address."""
    if engine == "local" and of_ray != (None, None):
        raise ConfigError("--gpus and --address: found --engine local; expected --engine ray")
    if shard_size is not None and not 0 < shard_size <= options.LARGEST_SHARD:
        raise ConfigError(f"--shard-size: found {shard_size}; expected more than 0, at most {options.LARGEST_SHARD}")
    if columns is not None and to == "docbin":
        raise ConfigError("--columns: a DocBin has all annotations; expected --to parquet or jsonl")
    if is_printed and to != "jsonl":
        raise ConfigError(f"--out -: found --to {to}; expected --to jsonl, or a folder")
    if is_printed and engine == "ray":
        raise ConfigError("--out -: found --engine ray; expected --engine local, or a folder that all machines see")
