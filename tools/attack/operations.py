"""File operations of a command: counted, and stopped at one of them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
"""Python's audit events of what changes a folder, besides opening for writing."""


def watch(folder: Path, at: Callable[[int], None]) -> None:
    """Calls `at` with the number of each change of files in `folder`, from 1, before it happens. For good: the process
    can't forget it."""
    here, number = str(folder), 0

    def hook(event: str, given: tuple[Any, ...]) -> None:
        nonlocal number
        if event == "open":
            path, _, flags = given
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
                return
        elif event in CHANGES:
            path = given[0]
        else:
            return
        # Not `Path.resolve`, which looks at links: the last part of the path may be one.
        if isinstance(path, (str, bytes, os.PathLike)) and os.path.abspath(os.fsdecode(path)).startswith(here):  # noqa: PTH100
            number += 1
            at(number)

    sys.addaudithook(hook)


def killed_at(wanted: int) -> Callable[[int], None]:
    """The process dies before its operation of this number."""

    def at(number: int) -> None:
        if number == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    return at


def failing_from(wanted: int, number_of_error: int) -> Callable[[int], None]:
    """This operation and all after it fail, as on a disk that is full or became read-only."""

    def at(number: int) -> None:
        if number >= wanted:
            raise OSError(number_of_error, os.strerror(number_of_error))

    return at


ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES, errno.EDQUOT)


def counting(path: Path) -> Callable[[int], None]:
    """The number of the last operation is in this file, which lies elsewhere."""
    return lambda number: path.write_text(str(number))
