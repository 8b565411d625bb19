"""Commands that are killed, or whose disk fails, and then given again: they must end as one that was left alone."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import operations
from commands import FILES, USERS, Command
from tries import STATUS, Ended, Try
from warm import first

Harm = Callable[[Path], None]
"""Runs in the process of a command that works in this folder."""
Choose = Callable[[random.Random, str], Harm]


class Interrupted:
    """The commands that were left alone, and their numbers of file operations.

    Args:
        commands: by name.
        folder: of what they wrote.
    """

    def __init__(self, commands: dict[str, Command], folder: Path) -> None:
        self.commands, self.folder = commands, folder
        self.names = [name for name in sorted(commands) if not name.endswith("_other")]

        def whole(name: str) -> None:
            made = self.reference(name)
            made.mkdir()
            os.chdir(made)
            commands[name].prepare(made)
            operations.watch(made, operations.counting(folder / f"count-{name}"))
            commands[name].run(commands[name].words)

        folder.mkdir(parents=True, exist_ok=True)
        first({name: partial(whole, name) for name in commands}, folder / "first")
        self.operations = {name: int((folder / f"count-{name}").read_text()) for name in commands}

    def reference(self, name: str) -> Path:
        return self.folder / name

    def interrupted(self, name: str, of: str, harm: Harm) -> Try:
        """A command under `harm`, then without, until it is done."""
        given = self.commands[of]

        def harmed(folder: Path) -> None:
            harm(folder)
            given.run(given.words)

        def act(folder: Path) -> None:
            for user, text in USERS.items():
                (folder / user).write_text(text, encoding="utf-8")
            given.prepare(folder)
            status = forked(partial(harmed, folder))
            for words in (given.words, given.resumed):
                if status and words:
                    status = forked(partial(given.run, words))
            raise SystemExit(status)

        return Try(name, act, partial(self.same, of), status=(0, 1, 2))

    def same(self, of: str, folder: Path, ended: Ended, users: Mapping[str, str] = USERS) -> str | None:
        """Differences from a command that was left alone."""
        given, reference = self.commands[of], self.reference(of)
        for user, text in users.items():
            if not (folder / user).is_file() or (folder / user).read_text(encoding="utf-8") != text:
                return f"{user} of the user was changed or removed"
        theirs = (reference.glob(f"{given.same or None}/{file}") for file in FILES)
        for path in sorted(path.relative_to(reference) for found in theirs for path in found):
            if not (folder / path).exists() or (folder / path).read_bytes() != (reference / path).read_bytes():
                said = " ".join(ended.said.split())[-300:]
                return f"{path} differs from that of a command that was left alone; status {ended.status}: {said}"
        left = [path.name for path in (folder / "run").rglob("*.partial") if given.same]
        return f"unfinished files are left: {left}" if left else given.check(folder)

    def kinds(self) -> dict[str, tuple[int, Choose]]:
        """For each kind of interruption the number of tries, and what chooses the harm that is done to a command."""
        return {"kills": (600, self._kill), "operations": (600, self._kill_at), "disks": (600, self._spoil)}

    def make_try(self, choose: Choose, name: str, draw: random.Random) -> Try:
        """A command that comes to harm."""
        of = draw.choice(self.names)
        return self.interrupted(f"{name}-{of}", of, choose(draw, of))

    def _kill(self, draw: random.Random, of: str) -> Harm:
        """Killed at a random time, with all its processes."""
        return partial(_killed_after, draw.uniform(0, 10 if of == "seeds" else 4))

    def _kill_at(self, draw: random.Random, of: str) -> Harm:
        """Killed before a file operation."""
        return partial(_watched, operations.killed_at(draw.randint(1, self.operations[of])))

    def _spoil(self, draw: random.Random, of: str) -> Harm:
        """A disk that is full, read-only or broken from some operation on, or a limit of the size of files."""
        if draw.random() < 0.3:
            return partial(_limited, draw.choice((0, 1, 100, 5_000, 50_000, 500_000)))
        at, error = draw.randint(1, self.operations[of]), draw.choice(operations.ERRORS)
        return partial(_watched, operations.failing_from(at, error))


def forked(act: Callable[[], None], fine: Sequence[int] = (*STATUS, -signal.SIGKILL)) -> int:
    """The exit status of what is done in a process of its own, whose words are said here."""
    read, write = os.pipe()  # not a file, which a limit of the size of files would cut
    pid = os.fork()
    if not pid:
        os.setsid()
        os.dup2(write, 1)
        os.dup2(write, 2)
        os.close(write)
        try:
            act()
            os._exit(0)
        except SystemExit as ended:
            os._exit(ended.code if isinstance(ended.code, int) else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as said:
        os.write(2, said.read())
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status not in fine:
        raise SystemExit(71)
    return status


def _killed_after(seconds: float, folder: Path) -> None:
    group = os.getpid()
    if not os.fork():
        os.setsid()
        os.closerange(1, 3)  # nobody is to wait for what this process says
        time.sleep(seconds)
        try:
            os.killpg(group, signal.SIGKILL)
        finally:
            os._exit(0)


def _watched(at: Callable[[int], None], folder: Path) -> None:
    operations.watch(folder, at)


def _limited(size: int, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
