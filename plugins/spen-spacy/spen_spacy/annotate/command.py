"""The command `spen annotate`. Heavy imports wait until it runs, so that its help is fast."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from spen_plugins import ConfigError, Registry, RunFolder, locked
from spen_spacy.annotate import options

if TYPE_CHECKING:
    from spen_spacy.annotate.pipeline import Pipeline
    from spen_spacy.annotate.plan import Job, Plan
    from spen_spacy.annotate.shards import Done

PRINTED = Path("-")
"""The output folder that stands for standard output."""


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
    column_names = None if columns is None else tuple(name.strip() for name in columns.split(","))
    is_printed = out == PRINTED
    _check_options(to, is_printed, column_names, shard_size, engine, (gpus, address))
    from spen_spacy.annotate import engines, on_ray, parquet
    from spen_spacy.annotate.columns import list_columns
    from spen_spacy.annotate.finding import find_sources
    from spen_spacy.annotate.pipeline import find_pipeline
    from spen_spacy.annotate.plan import Job, check_sources, read_or_make_plan, remove_unfinished
    from spen_spacy.annotate.shards import note_unspaced
    from spen_spacy.annotate.sources import Reader

    if engine == "ray":
        on_ray.require()
    if to == "parquet":
        parquet.require()
    source = find_pipeline(pipeline, predicates, language, device or ("cuda" if gpus else None), precision)
    if predicates is None and len(source.runs) > 1:
        _note_finder(source)
    format, sources, skipped = find_sources(inputs, kind, out)
    _note_skipped(skipped)
    reader = Reader(format, documents, text)
    check_sources(reader, sources, errors == "keep")
    nlp, identity = source.load(), source.identity()
    if to != "docbin":
        list_columns(nlp, column_names)  # an unknown column is an error before anything is written
    choices = {"--from": format, "--documents": documents, "--text": text, "--to": to, "--columns": columns}
    choices |= {"--language": source.language, "--precision": precision}
    size = None if shard_size is None else max(1, round(shard_size * 1e6))
    with ExitStack() as stack:
        if is_printed:
            out = Path(stack.enter_context(TemporaryDirectory(prefix="spen-annotate-")))
        stack.enter_context(locked(out))
        plan = read_or_make_plan(out, choices, identity, sources, size)
        remove_unfinished(out)
        job = Job(source, identity, reader, plan.kinds, str(out.resolve()), to, column_names, errors == "keep")
        unfinished = [shard for shard in plan.shards if not shard.path(job).exists()]
        for note in note_unspaced(nlp, job, unfinished[:1], language):
            typer.echo(note, err=True)
        if engine == "ray" and unfinished:
            steps = on_ray.run_on_ray(processes, gpus or 0, address, job, unfinished)
        elif processes > 1 and unfinished:
            steps = engines.run_processes(processes, job, unfinished)
        else:
            steps = engines.run_here(nlp, job, unfinished)
        _follow(steps, job, plan, len(unfinished), is_printed)


def _follow(steps: Generator[Done, None, None], job: Job, plan: Plan, unfinished: int, is_printed: bool) -> None:
    """Follows the shards and prints a line at the end."""
    from spen_spacy.annotate.plan import remove_unfinished
    from spen_spacy.annotate.progress import follow, print_shards
    from spen_spacy.annotate.shards import note_failed

    if is_printed:
        typer.echo(follow(print_shards(steps, job, plan.shards), plan, unfinished, True), err=True)
        return
    typer.echo(follow(steps, plan, unfinished))
    remove_unfinished(Path(job.out))
    shards = f"{len(plan.shards)} shard{'s' * (len(plan.shards) != 1)}"
    typer.echo(f"{job.out}: all of {shards}{note_failed(job, plan.shards)}")


def _note_finder(pipeline: Pipeline) -> None:
    """Prints the name of the installed model that finds predicates, as a warning if its run is of another language."""
    from spen_spacy.packaging.runs import choose_language

    registry, language = Registry(), pipeline.language
    finder = registry.plugin(f"{registry.providers('model')['spen_srl'][0]}.spen_srl").distribution
    is_same = choose_language([RunFolder.open(Path(pipeline.runs[-1]))]) == language
    start = "note:" if is_same else f"warning: the text is in {language}, but"
    typer.echo(
        f"{start} predicates are found by {finder}; --predicates RUN names a model of another language or domain",
        err=True,
    )


def _note_skipped(skipped: Sequence[Path]) -> None:
    if skipped:
        names = ", ".join(map(str, skipped[:3])) + (", …" if len(skipped) > 3 else "")
        typer.echo(f"skipped {len(skipped):,} of the files found, whose formats are unknown ({names})", err=True)


def _check_options(
    to: str,
    is_printed: bool,
    columns: Sequence[str] | None,
    shard_size: float | None,
    engine: str,
    ray_options: tuple[float | None, str | None],
) -> None:
    """Raises a `ConfigError` for options that do not fit one another; `ray_options` are GPUs and address."""
    if engine == "local" and ray_options != (None, None):
        raise ConfigError("--gpus and --address: found --engine local; expected --engine ray")
    if shard_size is not None and not 0 < shard_size <= options.LARGEST_SHARD:
        raise ConfigError(f"--shard-size: found {shard_size}; expected more than 0, at most {options.LARGEST_SHARD}")
    if columns is not None and to == "docbin":
        raise ConfigError("--columns: a DocBin has all annotations; expected --to parquet or jsonl")
    if is_printed and to != "jsonl":
        raise ConfigError(f"--out -: found --to {to}; expected --to jsonl, or a folder")
    if is_printed and engine == "ray":
        raise ConfigError("--out -: found --engine ray; expected --engine local, or a folder that all machines see")
