"""Command lines that run in several processes at once, each with one thread."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import IO, TypeVar

from spen_plugins.errors import ConfigError, Interrupted
from spen_plugins.loop.progress import LINE_SECONDS
from spen_plugins.runs.train.signals import interrupts

POLL = 0.2
"""Seconds between two polls of the processes."""

K = TypeVar("K", bound=Hashable)


def side_by_side(
    lines: Mapping[K, Sequence[str]], jobs: int, say: Callable[[K, str], None], progress: Callable[[K], str]
) -> dict[K, str]:
    """Run command lines, `jobs` at once, and return what those that failed wrote to stderr.

    After one that ended with the status of a ConfigError, or a signal, no other is started. A signal is passed on once:
    a second one would end them before they save.

    Args:
        lines: the command lines, by a key of yours, in the order in which they start.
        jobs: number of processes.
        say: tells the user something of a line: that it is done, and once a minute its `progress`.
        progress: how far a line is.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    environment["PYTHONSAFEPATH"] = "1"  # a typing.py in the working directory is not Python's
    waiting, failures, refusal, is_stopping = list(lines), dict[K, str](), "", False
    running: dict[K, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}
    reported = time.monotonic()
    with interrupts() as stop:
        while running or waiting:
            if stop.is_set() or refusal:
                waiting.clear()
            while waiting and len(running) < jobs:
                key, log = waiting.pop(0), tempfile.TemporaryFile()  # noqa: SIM115, closed when the process has ended
                running[key] = subprocess.Popen(lines[key], env=environment, stdout=subprocess.DEVNULL, stderr=log), log
            for key, (process, log) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[key]
                with log:
                    log.seek(0)
                    text = log.read().decode(errors="replace").strip()
                if process.returncode == ConfigError.exit_status:
                    refusal = text
                elif process.returncode == 0:
                    say(key, "done")
                else:
                    failures[key] = text or f"its process ended with status {process.returncode}"
            if time.monotonic() - reported > LINE_SECONDS:
                reported = time.monotonic()
                for key in running:
                    say(key, progress(key))
            if stop.is_set() and not is_stopping:
                is_stopping = True
                for process, _ in running.values():
                    process.terminate()
            time.sleep(POLL)
    if stop.is_set():
        raise Interrupted("stopped")
    if refusal:
        raise ConfigError(refusal)
    return failures
