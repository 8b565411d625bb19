"""Shards of JSON lines on standard output."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import closing

import typer

from spen_spacy.annotate.jsonl import has_error
from spen_spacy.annotate.plan import Job, Shard
from spen_spacy.annotate.shards import Done, describe_failed


def print_shards(done: Generator[Done, None, None], job: Job, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    """Pass on what an engine yields, and print each shard once those before it are printed; its file is removed.

    Args:
        done: what an engine yields, in any order.
        job: what all shards share.
        shards: all of them, in the order of the input.

    Raises:
        OSError: standard output is closed.
    """
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
