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
from spen_spacy.annotate.plan import Job, Shard
from spen_spacy.annotate.shards import Done, describe_failed

WINDOW = 24 * 3600
"""Seconds over which the remaining time is estimated: a shard may take minutes."""


def follow(shards: Generator[Done, None, None], total: int, todo: int, is_printed: bool = False) -> str:
    """See what an engine yields through, and sum it up in a line; `RunError` if a shard failed. `todo` of all `total`
    shards were not there yet. Rows that are printed have no bar between them, and no shard of theirs stays.
    """
    started = time.perf_counter()
    documents = words = 0
    console = Console(stderr=True)
    what = (TextColumn("shards"), MofNCompleteColumn(), BarColumn(24), TextColumn("{task.description}"))
    when = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    progress = Progress(*what, *when, console=console, transient=True, speed_estimate_period=WINDOW)
    with closing(shards), progress if console.is_terminal and not is_printed else nullcontext():
        bar = progress.add_task("", total=total, completed=total - todo)
        for done in shards:
            if done.failure:
                stays = "The shards that are finished stay, and the same command goes on from there; with"
                raise RunError(
                    f"{done.failure}\n{'With' if is_printed else stays} --errors keep, a document that fails is a row "
                    "that says why"
                )
            documents, words = documents + done.documents, words + done.words
            progress.update(bar, advance=1, description=_describe(documents, words, time.perf_counter() - started))
    return _describe(documents, words, time.perf_counter() - started)


def _describe(documents: int, words: int, seconds: float) -> str:
    return f"{documents:,} documents, {words:,} words in {seconds:.0f} s ({words / seconds:,.0f} a second)"


def print_shards(done: Generator[Done, None, None], job: Job, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    """Pass on what an engine yields, in any order, and print each JSON shard once those before it are printed; its file
    is removed. `OSError` if standard output is closed."""
    finished: set[int] = set()
    left = list(reversed(shards))
    failed = 0
    with closing(done):
        for one in done:
            if not one.failure:
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
