"""Engines on one machine: this process, or several."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker

from spacy.language import Language

from spen_plugins import RunError, SpenError
from spen_spacy.annotate.plan import Job, Shard
from spen_spacy.annotate.shards import Done, annotate


class Worker:
    """A process's pipeline. It returns failures as values: exceptions lose their messages between processes."""

    def __init__(self, job: Job) -> None:
        self._job, self._failure = job, ""
        try:
            job.pipeline.check(dict(job.identity))
            self._nlp = job.pipeline.load()
        except SpenError as error:
            self._failure = f"on {platform.node()}: {error}"
        except Exception as error:  # raised by any component, or for lack of memory
            self._failure = f"on {platform.node()}: the pipeline can't be loaded ({type(error).__name__}: {error})"

    def annotate(self, shard: Shard) -> Done:
        """Annotates a whole shard."""
        if self._failure:
            return Done(shard.number, 0, 0, 0, True, self._failure)
        *groups, last = annotate(self._nlp, self._job, shard)
        documents, words, characters = (sum(getattr(group, name) for group in groups) for name in Done._fields[1:4])
        return last._replace(documents=documents, words=words, characters=characters)


_workers: list[Worker] = []
"""The worker of this process, if it belongs to a pool."""


def run_here(nlp: Language, job: Job, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    """Annotates one shard after another in this process."""
    for shard in shards:
        yield from annotate(nlp, job, shard)


def run_processes(number: int, job: Job, shards: Sequence[Shard]) -> Generator[Done, None, None]:
    """Annotates shards in several processes, each with its own pipeline; shards of a killed one start again.

    `nlp.pipe(n_process=…)` would send all docs back through one process, and wait forever for a process that was
    killed. `RunError` if processes end as soon as they start, or are killed again and again.
    """
    remaining = {shard.number: shard for shard in shards}
    while remaining:
        previous = len(remaining)
        # Spawned, not forked: a fork has this process's locks, but not the threads that hold them.
        spawn = multiprocessing.get_context("spawn")
        with _prepare_start():
            pool = ProcessPoolExecutor(min(number, len(remaining)), spawn, _start, (job,))
            futures = [pool.submit(_annotate, shard) for shard in remaining.values()]
        try:
            for future in as_completed(futures):
                step = future.result()
                del remaining[step.number]
                yield step
        except BrokenProcessPool as error:
            if len(remaining) == previous:
                raise RunError(
                    "a process ended before it finished a shard, perhaps for lack of memory; use fewer --processes, or "
                    "smaller shards in another --out"
                ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _prepare_start() -> Iterator[None]:
    """Lets processes that start in the block import nothing from the working directory, which may hold a `random.py`.
    Ctrl-C waits for their `_start`."""
    previous = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    if hasattr(signal, "pthread_sigmask"):
        resource_tracker.ensure_running()  # it unblocks the signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if previous is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = previous
        _unblock_interrupts()


def _unblock_interrupts() -> None:
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _start(job: Job) -> None:
    """Prepares a process of a pool: it ends with its parent, and silently at Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _unblock_interrupts()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    import torch

    torch.set_num_threads(1)  # as many processes as cores
    _workers.append(Worker(job))


def _annotate(shard: Shard) -> Done:
    [worker] = _workers
    return worker.annotate(shard)
