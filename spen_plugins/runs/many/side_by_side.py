"""Command lines that run in several processes at once, each with one thread."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

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

    Raises:
        ConfigError: one ended with the status of this error; no other was started then.
        Interrupted: on a signal, which is passed on once; all have ended.
    """
    waiting, failures = list(lines), {}
    running: dict[K, tuple[subprocess.Popen[bytes], Any]] = {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    environment["PYTHONSAFEPATH"] = "1"  # a typing.py in the working directory is not Python's
    refused, told, said = "", False, time.monotonic()
    with interrupts() as stop:
        while running or (waiting and not (stop.is_set() or refused)):
            while waiting and len(running) < jobs and not (stop.is_set() or refused):
                key = waiting.pop(0)
                log = tempfile.TemporaryFile()  # noqa: SIM115, closed when the process has ended
                process = subprocess.Popen(lines[key], env=environment, stdout=subprocess.DEVNULL, stderr=log)
                running[key] = process, log
            for key in [key for key, (process, _) in running.items() if process.poll() is not None]:
                process, log = running.pop(key)
                log.seek(0)
                text = log.read().decode(errors="replace").strip()
                log.close()
                if process.returncode == ConfigError.exit_status:
                    refused = text
                elif process.returncode == 0:
                    say(key, "done")
                else:
                    failures[key] = text or f"its process ended with status {process.returncode}"
            if time.monotonic() - said > LINE_SECONDS:
                said = time.monotonic()
                for key in running:
                    say(key, progress(key))
            if stop.is_set() and not told:
                told = True  # a second signal would end them before they save
                for process, _ in running.values():
                    process.terminate()
            time.sleep(POLL)
    if stop.is_set():
        raise Interrupted("stopped")
    if refused:
        raise ConfigError(refused)
    return failures
