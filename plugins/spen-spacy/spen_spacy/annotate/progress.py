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
    """Follow what an engine yields, show progress on standard error, and return a summary; `RunError` if a shard
    failed. `todo` of the plan's shards are not finished yet. Rows that are printed have no bar between them, and their
    shards are not kept.
    """
    total = len(plan.shards)
    started = shown = time.perf_counter()
    documents = words = 0
    finished, begun = total - todo, dict[int, int]()
    console = Console(stderr=True)
    what = (TextColumn("shards"), MofNCompleteColumn(), BarColumn(24), TextColumn("{task.description}"))
    when = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    progress = Progress(*what, *when, console=console, transient=True, speed_estimate_period=WINDOW)
    has_bar = console.is_terminal and not is_printed
    with closing(steps), progress if has_bar else nullcontext():
        bar = progress.add_task("", total=total, completed=finished)
        for done in steps:
            if done.failure:
                kept = "Finished shards are kept, and the same command resumes the job. "
                raise RunError(
                    f"{done.failure}\n{'' if is_printed else kept}With --errors keep, a document that fails becomes a "
                    "row with the reason"
                )
            documents, words = documents + done.documents, words + done.words
            begun[done.number] = begun.get(done.number, 0) + done.characters
            if done.is_last:
                finished += 1
                del begun[done.number]
            share = finished + sum(min(0.99, characters / plan.size) for characters in begun.values())
            now = time.perf_counter()
            described = _describe(documents, words, now - started)
            progress.update(bar, completed=share, description=described)
            if not has_bar and not is_printed and now - shown >= LINE_SECONDS:
                shown = now
                typer.echo(f"{share:.1f} of {total} shards, {described}", err=True)
    if total and not todo:
        return "nothing was left to do: all shards were finished before"
    if not documents and todo == total:
        typer.echo("warning: found no documents in the input", err=True)
    return _describe(documents, words, time.perf_counter() - started)


def _describe(documents: int, words: int, seconds: float) -> str:
    return f"{documents:,} documents, {words:,} words in {seconds:.0f} s ({words / seconds:,.0f} per second)"


def print_shards(done: Generator[Done, None, None], job: Job, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    """Pass on what an engine yields, in any order, and print each JSON shard once those before it are printed; its file
    is removed. `OSError` if standard output is closed."""
    finished: set[int] = set()
    left = list(reversed(shards))
    failed = 0
    with closing(done):
        for one in done:
            if one.is_last and not one.failure:
                finished.add(one.number)
            while left and left[-1].number in finished:
                path = left.pop().path(job)
                with path.open(encoding="utf-8", newline="\n") as file:
                    for text in file:
                        sys.stdout.write(text)
                        failed += has_error(text)
                sys.stdout.flush()
                path.unlink()
            yield one
    if failed:
        typer.echo(describe_failed(failed, "the key error"), err=True)
