"""Command lines that run in several processes at once, each with one thread."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import IO, Generic, TypeVar

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

    Args:
        lines: the command lines, by a key of yours, in the order in which they start.
        jobs: number of processes.
        say: tells the user something of a line: that it is done, and once a minute its `progress`.
        progress: how far a line is.
    """
    waiting, processes = list(lines), _Processes[K]()
    reported = time.monotonic()
    with interrupts() as stop:
        while processes.running or waiting:
            if stop.is_set() or processes.refusal:
                waiting.clear()
            while waiting and len(processes.running) < jobs:
                key = waiting.pop(0)
                processes.start(key, lines[key])
            processes.collect(say)
            if time.monotonic() - reported > LINE_SECONDS:
                reported = time.monotonic()
                for key in processes.running:
                    say(key, progress(key))
            if stop.is_set():
                processes.stop()
            time.sleep(POLL)
    if stop.is_set():
        raise Interrupted("stopped")
    if processes.refusal:
        raise ConfigError(processes.refusal)
    return processes.failures


class _Processes(Generic[K]):
    """Processes that run now, and the messages of those that failed."""

    def __init__(self) -> None:
        self.running: dict[K, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}
        self.failures: dict[K, str] = {}
        self.refusal = ""
        self._is_stopping = False

    def start(self, key: K, line: Sequence[str]) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        environment["PYTHONSAFEPATH"] = "1"  # a typing.py in the working directory is not Python's
        log = tempfile.TemporaryFile()  # noqa: SIM115, closed when the process has ended
        process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=log)
        self.running[key] = process, log

    def collect(self, say: Callable[[K, str], None]) -> None:
        """Take the messages of the processes that have ended."""
        for key in [key for key, (process, _) in self.running.items() if process.poll() is not None]:
            process, log = self.running.pop(key)
            with log:
                log.seek(0)
                text = log.read().decode(errors="replace").strip()
            if process.returncode == ConfigError.exit_status:
                self.refusal = text
            elif process.returncode == 0:
                say(key, "done")
            else:
                self.failures[key] = text or f"its process ended with status {process.returncode}"

    def stop(self) -> None:
        """Stop all, once: a second signal would end them before they save."""
        if not self._is_stopping:
            self._is_stopping = True
            for process, _ in self.running.values():
                process.terminate()
