"""Locks on folders, which the system releases when a process dies."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from spen_plugins.errors import ConfigError
from spen_plugins.files.unfinished import LOCK, UNSUPPORTED, make_folder


@contextmanager
def locked(folder: Path, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold a folder, which is created; the system releases it if the process dies.

    On a system without such locks, nothing is held.

    Args:
        folder: the folder.
        wait: called with a sentence that names the holder if another process holds the folder, before waiting for it;
            None: raise an error.

    Raises:
        ConfigError: another process, or another thread of this process, holds the folder, or it can't be written.
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
                path.unlink(missing_ok=True)  # while it is held: a waiting process then looks for the new one


def check_unused(folder: Path) -> None:
    """Raise a ConfigError that names the process that holds a folder, if there is one; nothing is created."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with suppress(OSError), os.fdopen(os.open(folder / LOCK, flags), "rb", buffering=0) as file:
        _wait_for(file, folder / LOCK, None, False)


def _hold(path: Path, wait: Callable[[str], None] | None) -> BinaryIO:
    """The lock file, open and held, with the holder's name in it."""
    has_waited = False
    while True:
        # Not blocked by a pipe, and no link is followed: this file is written to.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        file = os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
        try:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                raise ConfigError(
                    f"{path} is not our lock file: it is not a regular file, or has other hard links; remove it"
                )
            has_waited |= _wait_for(file, path, wait, has_waited)
            with suppress(FileNotFoundError):
                if os.path.samestat(status, path.lstat()):  # the previous holder removes its own
                    file.seek(0)  # a killed holder's name may have been read
                    file.truncate()
                    holder = {"process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%F %T")}
                    file.write(json.dumps(holder).encode())
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _wait_for(file: BinaryIO, path: Path, wait: Callable[[str], None] | None, has_waited: bool) -> bool:
    """Lock an open file; true if another process held it. If `has_waited`, `wait` is not called again."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        problem = f"{path.parent} is in use by {_read_holder(file)}"
        if wait is None:
            raise ConfigError(f"{problem}; wait until it ends, or stop it") from None
        if not has_waited:
            wait(f"{problem}; waiting until it ends")
        fcntl.flock(file, fcntl.LOCK_EX)
        return True
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    return False


def _read_holder(file: BinaryIO) -> str:
    """The holder in a lock file, for messages."""
    try:
        file.seek(0)
        holder = json.loads(file.read(1000))
        return f"process {holder['process']} on {holder['host']}, since {holder['since']}"
    except (OSError, ValueError, TypeError, KeyError):  # it is just being written
        return "another process"
