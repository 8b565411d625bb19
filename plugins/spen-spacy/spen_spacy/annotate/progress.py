"""Progress of a job: a bar on a terminal, and a line at the end."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing, nullcontext

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from spen_plugins import RunError
from spen_spacy.annotate.shards import Done

WINDOW = 24 * 3600
"""Seconds over which the remaining time is estimated: a shard may take minutes."""


def follow(shards: Generator[Done, None, None], total: int, todo: int, is_printed: bool = False) -> str:
    """See shards through, and sum them up in a line.

    Args:
        shards: what an engine yields.
        total: number of shards of the plan.
        todo: how many of them were not there yet.
        is_printed: if true, the rows go to standard output: there is no bar between them, and no shard stays.

    Raises:
        RunError: a shard failed.
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
