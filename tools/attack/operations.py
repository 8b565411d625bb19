"""Counts the file operations of a command, or stops it at one of them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
"""Python's audit events that change a folder, besides opening for writing."""


def watch(folder: Path, at: Callable[[int], None]) -> None:
    """Calls `at` with the number of each change of files in `folder`, from 1, before it happens. The process
    can't undo this."""
    root, number = str(folder), 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal number
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
                return
        elif event in CHANGES:
            path = arguments[0]
        else:
            return
        # Not `Path.resolve`, which looks at links: the last part of the path may be one.
        if isinstance(path, (str, bytes, os.PathLike)) and os.path.abspath(os.fsdecode(path)).startswith(root):  # noqa: PTH100
            number += 1
            at(number)

    sys.addaudithook(hook)


def killed_at(wanted: int) -> Callable[[int], None]:
    """Kills the process before its operation of this number."""

    def kill(number: int) -> None:
        if number == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


def failing_from(wanted: int, number_of_error: int) -> Callable[[int], None]:
    """Makes this operation and all later ones fail, as on a disk that is full or became read-only."""

    def fail(number: int) -> None:
        if number >= wanted:
            raise OSError(number_of_error, os.strerror(number_of_error))

    return fail


ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES, errno.EDQUOT)


def counting(path: Path) -> Callable[[int], None]:
    """Writes the number of the last operation into this file, which lies outside the watched folder."""
    return lambda number: path.write_text(str(number))
