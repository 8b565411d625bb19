"""Tries: commands with damaged input, each in a process forked from a warm one, and what is wrong with how they end."""

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
"""Bytes of address space a try may take; what asks for more gets an error, as on a smaller machine."""
STATUS = (0, 1, 2, 130)
"""The exit statuses that the commands document."""


@dataclass(frozen=True)
class Ended:
    """The end of a try.

    Attributes:
        status: the exit status; negative, the signal that ended it.
        said: standard output and error.
        hung: true if it was ended for its time.
    """

    status: int
    said: str
    hung: bool = False


@dataclass(frozen=True)
class Try:
    """A command that is run in a folder of its own.

    Args:
        name: unique; the seed and it make the same try again.
        act: what to do, in the forked process; it makes the damage, too. Its working folder is the try's own.
        check: what is wrong with how it ended, or None; run in the forked process after `act` ended by itself.
        status: exit statuses that are in order.
    """

    name: str
    act: Callable[[Path], None]
    check: Callable[[Path, Ended], str | None] = lambda folder, ended: None
    status: Sequence[int] = STATUS


@dataclass
class Tally:
    """Of a kind of try."""

    tried: int = 0
    refused: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0


def command(main: Callable[[], None], *words: str) -> None:
    """A command of the project in this process, a fork in which the streams may lead elsewhere by now."""
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    sys.argv = ["attacked", *words]
    main()


def complaint(ended: Ended, status: Sequence[int]) -> str | None:
    """The fault in the end of any command, if there is one."""
    if ended.hung:
        return "no end within the limit"
    if "Traceback (most recent call last)" in ended.said:
        lines = ended.said.partition("Traceback (most recent call last)")[2].splitlines()[1:]
        return "traceback: " + next((line for line in lines if line[:1].strip()), "")[:200]
    if ended.status < 0:
        return f"ended by {signal.Signals(-ended.status).name}"
    if ended.status not in status:
        return f"exit status {ended.status}"
    if ended.status in (1, 2) and "error" not in ended.said.lower():
        return f"exit status {ended.status} without an error message"
    if "reached for the network" in ended.said:
        return "reached for the network"
    return None


def run(
    tries: Iterable[Try], folder: Path, jobs: int, told: Callable[[Try, str | None], None], limit: float = 60.0
) -> Tally:
    """Runs tries, `jobs` at a time.

    Args:
        folder: of all tries; one that failed leaves its own there.
        told: is told how each try ended.
        limit: seconds after which a try counts as a hang.
    """
    tally, live, waiting, begun = Tally(), {}, iter(tries), time.monotonic()
    more = True
    while more or live:
        while more and len(live) < jobs:
            if (found := next(waiting, None)) is None:
                more = False
                break
            own = folder / found.name
            own.mkdir(parents=True)
            live[_fork(found, own)] = (found, own, time.monotonic())
        for pid, (found, own, since) in list(live.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            hung = not done and time.monotonic() - since > limit
            if hung:
                os.killpg(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
            if done or hung:
                del live[pid]
                with suppress(ProcessLookupError, PermissionError):  # what it has left running
                    os.killpg(pid, signal.SIGKILL)
                _judge(found, own, Ended(os.waitstatus_to_exitcode(status), _said(own), hung), tally, told)
        time.sleep(0.002)
    tally.seconds = time.monotonic() - begun
    return tally


def _judge(found: Try, own: Path, ended: Ended, tally: Tally, told: Callable[[Try, str | None], None]) -> None:
    wrong = complaint(ended, found.status)
    if wrong is None:
        pid = os.fork()
        if not pid:  # in a process of its own: it may load what was written
            _checked(found, own, ended)
        os.waitpid(pid, 0)
        wrong = (own / "wrong").read_text(encoding="utf-8") or None
    tally.tried += 1
    tally.refused += ended.status not in (0, -signal.SIGKILL)
    if wrong:
        tally.failed.append((found.name, wrong))
    else:
        _remove(own)
    told(found, wrong)


def _fork(found: Try, own: Path) -> int:
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    status = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        said = os.open(own / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.chdir(own)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        socket.socket.connect = _no_network  # type: ignore[method-assign]
        try:
            found.act(own)
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status & 0xFF)


def _no_network(self: socket.socket, address: Any) -> None:
    if self.family in (socket.AF_INET, socket.AF_INET6):
        os.write(2, b"reached for the network\n")
        raise OSError(101, "Network is unreachable")
    raise OSError(2, "no such socket")


def _checked(found: Try, own: Path, ended: Ended) -> None:
    wrong = "the check itself failed"
    try:
        wrong = found.check(own, ended) or ""
    except BaseException:
        wrong = "the check failed: " + traceback.format_exc()[-400:]
    finally:
        (own / "wrong").write_text(wrong, encoding="utf-8")
        os._exit(0)


def _said(own: Path) -> str:
    return (own / "said").read_bytes()[-100_000:].decode("utf-8", "replace")


def _remove(folder: Path) -> None:
    """The folder with all below, links not followed."""
    for path, folders, files in os.walk(folder, topdown=False):
        for name in files:
            (Path(path) / name).unlink()
        for name in folders:
            below = Path(path) / name
            below.unlink() if below.is_symlink() else below.rmdir()
    folder.rmdir()


def scores_of(run_folder: Path) -> str | None:
    """The fault in the scores of a finished run, which are valid JSON, and numbers that are finite and not negative."""
    path = run_folder / "metrics.json"
    if not path.is_file():
        return "exit status 0 without metrics.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_not_json)
    except ValueError as error:
        return f"metrics.json: {error}"
    for part in ("validation", "test"):
        for name, value in (found.get(part) or {}).items():
            if isinstance(value, float) and not -1e9 < value < 1e9:
                return f"{part} {name} = {value}"
    return None


def lines_of_json(text: str) -> str | None:
    """The fault in lines that should be JSON."""
    for line in text.splitlines():
        if line.startswith(("{", "[")):
            try:
                json.loads(line, parse_constant=_not_json)
            except ValueError as error:
                return f"not JSON: {error}"
    return None


def _not_json(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def numbered(total: int, share: float, only: Sequence[int] | None) -> Iterator[int]:
    """The numbers of the tries to make: all that are named, or an even share of `total`."""
    if only:
        yield from only
        return
    wanted = max(1, round(total * share))
    yield from (i * total // wanted for i in range(wanted))
