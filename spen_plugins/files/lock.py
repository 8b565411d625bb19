"""Locks on folders, which the system releases when a process dies."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from spen_plugins.errors import ConfigError
from spen_plugins.files.unfinished import LOCK, UNSUPPORTED, make_folder

REMIND = 60.0
"""Seconds between two reminders of who waits for a lock."""


@contextmanager
def locked(folder: Path, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold a folder, which is created; the system releases it if the process dies.

    Where the system has no such locks, nothing is held.

    Args:
        folder: the folder.
        wait: called with a sentence that names the holder if another process holds the folder, before waiting for it,
            and every `REMIND` seconds while waiting; None: an error.

    Raises:
        ConfigError: another process, or another thread of this one, holds it, or it can't be written.
    """
    path = folder / LOCK
    try:
        make_folder(folder)
        file = _hold(path, wait)
    except OSError as error:
        raise ConfigError(f"{folder} can't be written: {error.strerror or error}") from error
    with file:
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink(missing_ok=True)  # while it is held: who waits for this file then looks for the new one


def _hold(path: Path, wait: Callable[[str], None] | None) -> BinaryIO:
    """The lock file, open and held, with the holder's name in it."""
    waited = False
    while True:
        # Not blocked by a pipe, and no link is followed: this file is written to.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        file = os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
        try:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise ConfigError(f"{path} is no lock of ours: it is no regular file, or has other names; remove it")
            waited |= _wait_for(file, path, wait, waited)
            with suppress(FileNotFoundError):
                if os.path.samestat(found, path.lstat()):  # the holder before removes its own
                    file.seek(0)  # a killed holder's name may have been read
                    file.truncate()
                    holder = {"process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%F %T")}
                    file.write(json.dumps(holder).encode())
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _wait_for(file: BinaryIO, path: Path, wait: Callable[[str], None] | None, waited: bool) -> bool:
    """Lock an open file; true if another process held it. After `waited` only the reminders are said."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        said = f"{path.parent} is in use by {_holder(file)}"
        if wait is None:
            raise ConfigError(f"{said}; wait until it ends, or stop it") from None
        if not waited:
            wait(f"{said}; waiting until it ends")
        with _reminding(file, path, wait):
            fcntl.flock(file, fcntl.LOCK_EX)
        return True
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    return False


@contextmanager
def _reminding(file: BinaryIO, path: Path, wait: Callable[[str], None]) -> Iterator[None]:
    """Say every `REMIND` seconds for whom one waits, and for how long."""
    begun, over = time.monotonic(), threading.Event()

    def remind() -> None:
        while not over.wait(REMIND):
            seconds = time.monotonic() - begun
            wait(f"{path.parent} is still in use by {_holder(file)}; waiting for {seconds:.0f} s so far")

    thread = threading.Thread(target=remind, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _holder(file: BinaryIO) -> str:
    """Who holds a lock file, for messages."""
    try:
        file.seek(0)
        found = json.loads(file.read(1000))
        stopped = found["host"] == socket.gethostname() and _is_stopped(found["process"])
        said = f"process {found['process']} on {found['host']}, since {found['since']}"
        return f"{said}, which is stopped (kill -CONT {found['process']} continues it)" if stopped else said
    except (OSError, ValueError, TypeError, KeyError):  # it is just being written
        return "another process"


def _is_stopped(process: int) -> bool:
    """True of a process that SIGSTOP or Ctrl-Z has stopped."""
    import psutil

    try:
        return psutil.Process(process).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return False
