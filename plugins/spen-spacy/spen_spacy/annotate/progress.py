"""Progress of a job: a bar on a terminal, and a line at the end; or its shards on standard output."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from contextlib import closing, nullcontext

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from spen_plugins import RunError
from spen_spacy.annotate.jsonl import has_error
from spen_spacy.annotate.plan import Job, Plan, Shard
from spen_spacy.annotate.shards import Done, describe_failed

WINDOW = 24 * 3600
"""Seconds over which the remaining time is estimated: a shard may take minutes."""
LINE_SECONDS = 60
"""Seconds between lines of progress where there is no terminal."""


def follow(steps: Generator[Done, None, None], plan: Plan, todo: int, is_printed: bool = False) -> str:
    """Follows an engine's steps, shows progress on standard error, and returns a summary; `RunError` if a shard failed.
    `todo` is the number of the plan's unfinished shards. With `is_printed`, no bar is shown between the rows, and the
    shards are not kept.
    """
    total = len(plan.shards)
    started = last_print = time.perf_counter()
    documents = words = 0
    finished, characters_by_shard = total - todo, dict[int, int]()
    console = Console(stderr=True)
    count_columns = (TextColumn("shards"), MofNCompleteColumn(), BarColumn(24), TextColumn("{task.description}"))
    time_columns = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    progress = Progress(*count_columns, *time_columns, console=console, transient=True, speed_estimate_period=WINDOW)
    has_bar = console.is_terminal and not is_printed
    with closing(steps), progress if has_bar else nullcontext():
        bar = progress.add_task("", total=total, completed=finished)
        for step in steps:
            if step.failure:
                hint = "Finished shards are kept, and the same command resumes the job. "
                raise RunError(
                    f"{step.failure}\n{'' if is_printed else hint}With --errors keep, a document that fails becomes a "
                    "row with the reason"
                )
            documents, words = documents + step.documents, words + step.words
            characters_by_shard[step.number] = characters_by_shard.get(step.number, 0) + step.characters
            if step.is_last:
                finished += 1
                del characters_by_shard[step.number]
            completed = finished + sum(min(0.99, characters / plan.size) for characters in characters_by_shard.values())
            now = time.perf_counter()
            description = _describe(documents, words, now - started)
            progress.update(bar, completed=completed, description=description)
            if not has_bar and not is_printed and now - last_print >= LINE_SECONDS:
                last_print = now
                typer.echo(f"{completed:.1f} of {total} shards, {description}", err=True)
    if total and not todo:
        return "nothing was left to do: all shards were finished before"
    if not documents and todo == total:
        typer.echo("warning: found no documents in the input", err=True)
    return _describe(documents, words, time.perf_counter() - started)


def _describe(documents: int, words: int, seconds: float) -> str:
    return f"{documents:,} documents, {words:,} words in {seconds:.0f} s ({words / seconds:,.0f} per second)"


def print_shards(steps: Generator[Done, None, None], job: Job, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    """Yields an engine's steps, in any order, prints each JSON shard once all before it are printed, and removes its
    file. `OSError` if standard output is closed."""
    finished: set[int] = set()
    remaining = list(reversed(shards))
    failed = 0
    with closing(steps):
        for step in steps:
            if step.is_last and not step.failure:
                finished.add(step.number)
            while remaining and remaining[-1].number in finished:
                path = remaining.pop().path(job)
                with path.open(encoding="utf-8", newline="\n") as file:
                    for text in file:
                        sys.stdout.write(text)
                        failed += has_error(text)
                sys.stdout.flush()
                path.unlink()
            yield step
    if failed:
        typer.echo(describe_failed(failed, "the key error"), err=True)
