"""Runs that are killed, or whose disk fails, and then go on: they must end bit for bit as one that wasn't."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import operations
from tries import STATUS, Ended, Try, command, run
from warm import Warm, spen_run

FILES = ("weights.safetensors", "metrics.json", "history.jsonl", "vocabulary.json", "examples.safetensors")
Harm = Callable[[Path], None]
"""What is done in the process of a run that works in this folder."""
Choose = Callable[[random.Random, int], tuple[str, Harm]]
EVERY = ["trainer.epochs=3", "trainer.patience=9", "--checkpoint-every", "0"]


class Interrupted:
    """The uninterrupted runs and their numbers of file operations, by config.

    Args:
        folder: of these runs.
    """

    def __init__(self, warm: Warm, folder: Path) -> None:
        self.folder, self.operations = folder, {}
        self.words = {
            name: [*(word for word in warm.words(name) if not word.startswith("trainer.epochs=")), *EVERY]
            for name in warm.arguments
        }

        def whole(name: str) -> Try:
            def act(own: Path) -> None:
                operations.watch(own, operations.counting(folder / f"{name}.count"))
                command(spen_run, *self.words[name])

            def check(own: Path, ended: Ended) -> str | None:
                own.rename(own.with_name(f"{name}.whole"))  # kept
                own.mkdir()
                (own / "said").touch()
                return None

            return Try(name, act, check, status=(0,))

        def told(made: Try, wrong: str | None) -> None:
            if wrong:
                raise SystemExit(f"the whole run of {made.name}: {wrong}; see {folder}")
            self.operations[made.name] = int((folder / f"{made.name}.count").read_text())

        folder.mkdir(parents=True, exist_ok=True)
        run([whole(name) for name in self.words], folder / "whole", 1, told, limit=600)
        self.places = [(name, at) for name, count in sorted(self.operations.items()) for at in range(1, count + 1)]

    def reference(self, name: str) -> Path:
        return self.folder / "whole" / f"{name}.whole" / "run"

    def interrupted(self, name: str, config: str, harm: Harm) -> Try:
        """A run under `harm`, then one that goes on without."""
        words = self.words[config]

        def act(folder: Path) -> None:
            read, write = os.pipe()  # not a file, which a limit of the size of files would cut
            pid = os.fork()
            if not pid:
                os.dup2(write, 1)
                os.dup2(write, 2)
                os.close(write)
                try:
                    harm(folder)
                    command(spen_run, *words)
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
            if status not in (*STATUS, -signal.SIGKILL):
                raise SystemExit(71)
            made = folder / "run"
            if not (made / "metrics.json").exists() or status:
                again = ["--resume", "run", "--quiet", "--device", "cpu"]
                command(spen_run, *(again if (made / "config.json").exists() else words))

        return Try(name, act, partial(self._same, config), status=(0,))

    def _same(self, config: str, folder: Path, ended: Ended) -> str | None:
        for name in FILES:
            ours, theirs = folder / "run" / name, self.reference(config) / name
            if theirs.exists() and (not ours.exists() or ours.read_bytes() != theirs.read_bytes()):
                return f"{name} differs from that of an uninterrupted run"
        left = [path.name for path in (folder / "run").rglob("*") if ".partial" in path.name]
        return f"unfinished files are left: {left}" if left else None

    def kinds(self) -> dict[str, tuple[int, Choose]]:
        """For each kind of interruption the number of tries, and what chooses a config and the harm done to its run."""
        return {
            "kills": (100, self._kill),
            "operations": (len(self.places), self._kill_at),
            "disks": (1000, self._spoil),
        }

    def tries(self, kind: str, choose: Choose, seed: int, numbers: Iterator[int]) -> Iterator[Try]:
        """Tries with these numbers."""
        for number in numbers:
            config, harm = choose(random.Random(f"{kind} {seed} {number}"), number)
            yield self.interrupted(f"{kind}-{seed}-{number}-{config}", config, harm)

    def _kill(self, draw: random.Random, number: int) -> tuple[str, Harm]:
        """Killed at a random time."""
        return draw.choice(sorted(self.words)), partial(_killed_after, draw.uniform(0, 4))

    def _kill_at(self, draw: random.Random, number: int) -> tuple[str, Harm]:
        """Killed before each file operation in turn."""
        config, at = self.places[number]
        return config, partial(_watched, operations.killed_at(at))

    def _spoil(self, draw: random.Random, number: int) -> tuple[str, Harm]:
        """A disk that is full, read-only or broken from some operation on, or a limit of the size of files."""
        config = draw.choice(sorted(self.words))
        if draw.random() < 0.3:
            return config, partial(_limited, draw.choice((0, 1, 100, 5_000, 50_000, 500_000)))
        at, error = draw.randint(1, self.operations[config]), draw.choice(operations.ERRORS)
        return config, partial(_watched, operations.failing_from(at, error))


def _killed_after(seconds: float, folder: Path) -> None:
    parent = os.getpid()
    if not os.fork():
        os.closerange(1, 3)  # nobody is to wait for what this process says
        time.sleep(seconds)
        try:
            os.kill(parent, signal.SIGKILL)
        finally:
            os._exit(0)


def _watched(at: Callable[[int], None], folder: Path) -> None:
    operations.watch(folder, at)


def _limited(size: int, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
