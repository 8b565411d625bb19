"""Commands that are killed, or whose disk fails, and that are then repeated: the result must be the same."""

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
    """Uninterrupted runs of the commands, and their numbers of file operations.

    Args:
        commands: the commands by name.
        folder: the folder for their output.
    """

    def __init__(self, commands: dict[str, Command], folder: Path) -> None:
        self.commands, self.folder = commands, folder
        self.names = [name for name in sorted(commands) if not name.endswith("_other")]

        def run_whole(name: str) -> None:
            run_folder = self.reference(name)
            run_folder.mkdir()
            os.chdir(run_folder)
            commands[name].prepare(run_folder)
            operations.watch(run_folder, operations.counting(folder / f"count-{name}"))
            commands[name].run(commands[name].words)

        folder.mkdir(parents=True, exist_ok=True)
        first({name: partial(run_whole, name) for name in commands}, folder / "first")
        self.operations = {name: int((folder / f"count-{name}").read_text()) for name in commands}

    def reference(self, name: str) -> Path:
        return self.folder / name

    def interrupted(self, name: str, of: str, harm: Harm) -> Try:
        """A command under `harm`, which is then repeated, or resumed, without it."""
        command = self.commands[of]

        def run_harmed(folder: Path) -> None:
            harm(folder)
            command.run(command.words)

        def act(folder: Path) -> None:
            for user_file, text in USERS.items():
                (folder / user_file).write_text(text, encoding="utf-8")
            command.prepare(folder)
            status = forked(partial(run_harmed, folder))
            for words in (command.words, command.resumed):
                if status and words:
                    status = forked(partial(command.run, words))
            raise SystemExit(status)

        return Try(name, act, partial(self.same, of), status=(0, 1, 2))

    def same(self, of: str, folder: Path, ended: Ended, users: Mapping[str, str] = USERS) -> str | None:
        """The difference from the uninterrupted command, or None."""
        command, reference = self.commands[of], self.reference(of)
        for user_file, text in users.items():
            if not (folder / user_file).is_file() or (folder / user_file).read_text(encoding="utf-8") != text:
                return f"{user_file} of the user was changed or removed"
        matches = (reference.glob(f"{command.same or None}/{file}") for file in FILES)
        for path in sorted(path.relative_to(reference) for paths in matches for path in paths):
            if not (folder / path).exists() or (folder / path).read_bytes() != (reference / path).read_bytes():
                message = " ".join(ended.said.split())[-300:]
                return f"{path} differs from that of a command that was left alone; status {ended.status}: {message}"
        unfinished = [path.name for path in (folder / "run").rglob("*.partial") if command.same]
        return f"unfinished files are left: {unfinished}" if unfinished else command.check(folder)

    def kinds(self) -> dict[str, tuple[int, Choose]]:
        """Returns, for each kind of interruption, the number of tries and the function that chooses the harm."""
        return {"kills": (600, self._kill), "operations": (600, self._kill_at), "disks": (600, self._spoil)}

    def make_try(self, choose: Choose, name: str, draw: random.Random) -> Try:
        """A command that comes to harm."""
        command_name = draw.choice(self.names)
        return self.interrupted(f"{name}-{command_name}", command_name, choose(draw, command_name))

    def _kill(self, draw: random.Random, name: str) -> Harm:
        """Kills the command at a random time, with all its processes."""
        return partial(_kill_after, draw.uniform(0, 10 if name == "seeds" else 4))

    def _kill_at(self, draw: random.Random, name: str) -> Harm:
        """Kills the command before a file operation."""
        return partial(_watch, operations.killed_at(draw.randint(1, self.operations[name])))

    def _spoil(self, draw: random.Random, name: str) -> Harm:
        """Makes the disk full, read-only or broken from a random operation on, or limits the size of files."""
        if draw.random() < 0.3:
            return partial(_limit_size, draw.choice((0, 1, 100, 5_000, 50_000, 500_000)))
        number, error = draw.randint(1, self.operations[name]), draw.choice(operations.ERRORS)
        return partial(_watch, operations.failing_from(number, error))


def forked(act: Callable[[], None], fine: Sequence[int] = (*STATUS, -signal.SIGKILL)) -> int:
    """Returns the exit status of `act` in a process of its own, whose output is repeated here."""
    read, write = os.pipe()  # not a file: a limit of the size of files would cut it
    pid = os.fork()
    if not pid:
        os.setsid()
        os.dup2(write, 1)
        os.dup2(write, 2)
        os.close(write)
        try:
            act()
            os._exit(0)
        except SystemExit as error:
            os._exit(error.code if isinstance(error.code, int) else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as output:
        os.write(2, output.read())
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status not in fine:
        raise SystemExit(71)
    return status


def _kill_after(seconds: float, folder: Path) -> None:
    group = os.getpid()
    if not os.fork():
        os.setsid()
        os.closerange(1, 3)  # so that nobody waits for the output of this process
        time.sleep(seconds)
        try:
            os.killpg(group, signal.SIGKILL)
        finally:
            os._exit(0)


def _watch(callback: Callable[[int], None], folder: Path) -> None:
    operations.watch(folder, callback)


def _limit_size(size: int, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
