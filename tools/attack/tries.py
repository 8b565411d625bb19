"""Tries: commands with damaged input, each in a process forked from a warm one, and the faults in how they end."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MEMORY = 8 << 30
"""Bytes of address space per try; a larger request fails, as on a smaller machine."""
STATUS = (0, 1, 2, 130)
"""The exit statuses that the commands document."""


@dataclass(frozen=True)
class Ended:
    """The end of a try.

    Attributes:
        status: the exit status; negative, the signal that ended it.
        said: standard output and error.
        hung: true if it was killed at the time limit.
    """

    status: int
    said: str
    hung: bool = False


@dataclass(frozen=True)
class Try:
    """A command that is run in a folder of its own.

    Args:
        name: unique; with the seed, it reproduces the try.
        act: does the damage and runs the command, in the forked process. Its working folder is the try's own.
        check: returns the fault in how it ended, or None; run in a forked process if the end itself has no fault.
        status: the allowed exit statuses.
    """

    name: str
    act: Callable[[Path], None]
    check: Callable[[Path, Ended], str | None] = lambda folder, end: None
    status: Sequence[int] = STATUS


@dataclass
class Tally:
    """Counts and failures of one kind of try."""

    tried: int = 0
    refused: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0


def command(main: Callable[[], None], *words: str) -> None:
    """Runs a command of the project in this process, a fork whose streams may have been redirected."""
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    sys.argv = ["attacked", *words]
    main()


def complaint(end: Ended, status: Sequence[int]) -> str | None:
    """The fault in how any command ended, or None."""
    if end.hung:
        return "no end within the limit"
    if "Traceback (most recent call last)" in end.said:
        lines = end.said.partition("Traceback (most recent call last)")[2].splitlines()[1:]
        return "traceback: " + next((line for line in lines if line[:1].strip()), "")[:200]
    if end.status < 0:
        return f"ended by {signal.Signals(-end.status).name}"
    if end.status not in status:
        return f"exit status {end.status}"
    if end.status in (1, 2) and "error" not in end.said.lower():
        return f"exit status {end.status} without an error message"
    if "reached for the network" in end.said:
        return "reached for the network"
    return None


def run(
    tries: Iterable[Try], folder: Path, jobs: int, told: Callable[[Try, str | None], None], limit: float = 60.0
) -> Tally:
    """Runs tries, `jobs` at a time.

    Args:
        folder: the folder of all tries; those that failed leave their own folders there.
        told: called with each try and its fault, or None.
        limit: seconds after which a try counts as a hang.
    """
    tally, running, queue, start = Tally(), {}, iter(tries), time.monotonic()
    has_more = True
    while has_more or running:
        while has_more and len(running) < jobs:
            if (attempt := next(queue, None)) is None:
                has_more = False
                break
            try_folder = folder / attempt.name
            try_folder.mkdir(parents=True)
            running[_fork(attempt, try_folder)] = (attempt, try_folder, time.monotonic())
        for pid, (attempt, try_folder, try_start) in list(running.items()):
            ended_pid, status = os.waitpid(pid, os.WNOHANG)
            is_hung = not ended_pid and time.monotonic() - try_start > limit
            if is_hung:
                os.killpg(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
            if ended_pid or is_hung:
                del running[pid]
                with suppress(ProcessLookupError, PermissionError):  # processes that it left running
                    os.killpg(pid, signal.SIGKILL)
                _judge(
                    attempt,
                    try_folder,
                    Ended(os.waitstatus_to_exitcode(status), _read_output(try_folder), is_hung),
                    tally,
                    told,
                )
        time.sleep(0.002)
    tally.seconds = time.monotonic() - start
    return tally


def _judge(attempt: Try, folder: Path, end: Ended, tally: Tally, report: Callable[[Try, str | None], None]) -> None:
    fault = complaint(end, attempt.status)
    if fault is None:
        pid = os.fork()
        if not pid:  # in a process of its own, since the check may load the written files
            _check_and_exit(attempt, folder, end)
        os.waitpid(pid, 0)
        fault = (folder / "wrong").read_text(encoding="utf-8") or None
    tally.tried += 1
    tally.refused += end.status not in (0, -signal.SIGKILL)
    if fault:
        tally.failed.append((attempt.name, fault))
    else:
        _remove(folder)
    report(attempt, fault)


def _fork(attempt: Try, folder: Path) -> int:
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    status = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        output = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        socket.socket.connect = _refuse_network  # type: ignore[method-assign]
        try:
            attempt.act(folder)
            status = 0
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(bool(error.code))
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status & 0xFF)


def _refuse_network(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6):
        os.write(2, b"reached for the network\n")
        raise OSError(101, "Network is unreachable")
    raise OSError(2, "no such socket")


def _check_and_exit(attempt: Try, folder: Path, end: Ended) -> None:
    fault = "the check itself failed"
    try:
        fault = attempt.check(folder, end) or ""
    except BaseException:
        fault = "the check failed: " + traceback.format_exc()[-400:]
    finally:
        (folder / "wrong").write_text(fault, encoding="utf-8")
        os._exit(0)


def _read_output(folder: Path) -> str:
    return (folder / "said").read_bytes()[-100_000:].decode("utf-8", "replace")


def _remove(folder: Path) -> None:
    """Removes the folder with all below, without following links."""
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files:
            (Path(path) / name).unlink()
        for name in folders:
            child = Path(path) / name
            child.unlink() if child.is_symlink() else child.rmdir()
    folder.rmdir()


def scores_of(run_folder: Path) -> str | None:
    """The fault in the scores of a finished run, which must be valid JSON and finite numbers."""
    path = run_folder / "metrics.json"
    if not path.is_file():
        return "exit status 0 without metrics.json"
    try:
        metrics = json.loads(path.read_text(encoding="utf-8"), parse_constant=_reject_constant)
    except ValueError as error:
        return f"metrics.json: {error}"
    for part in ("validation", "test"):
        for name, value in (metrics.get(part) or {}).items():
            if isinstance(value, float) and not -1e9 < value < 1e9:
                return f"{part} {name} = {value}"
    return None


def lines_of_json(text: str) -> str | None:
    """The fault in lines that should be JSON."""
    for line in text.splitlines():
        if line.startswith(("{", "[")):
            try:
                json.loads(line, parse_constant=_reject_constant)
            except ValueError as error:
                return f"not JSON: {error}"
    return None


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def numbered(total: int, share: float, only: Sequence[int] | None) -> Iterator[int]:
    """The numbers of the tries to make: those in `only`, or an even share of `total`."""
    if only:
        yield from only
        return
    count = max(1, round(total * share))
    yield from (i * total // count for i in range(count))
