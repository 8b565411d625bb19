"""Files and folders that are whole or not there: written under a temporary name, synced, then renamed."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import socket
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spen_plugins.errors import RunError

LOCK = ".lock"
"""Name of the file by which a process holds a folder; see `files.lock`."""
_UNFINISHED = re.compile(r"\.([0-9a-f]{8})-(\d+)-[0-9a-f]{16}\.partial$")
"""End of a temporary name: machine, process and what can't be guessed."""
UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
"""Errors of file systems that can't sync folders, or have no locks."""


_OPEN_FILES = tuple(map(Path, ("/dev", "/dev/fd", "/proc/self/fd")))
"""Folders of devices and of files that a process has open."""


def is_stream(path: Path) -> bool:
    """True if a path leads to a pipe, a device or an open file (/dev/stdout), which a file can't take the place of."""
    try:
        mode = path.stat().st_mode
    except OSError:  # none, or in a folder that may not be read
        return False
    place = path.absolute()
    while place.parent not in _OPEN_FILES and place.is_symlink():
        place = place.parent / place.readlink()
    return place.parent in _OPEN_FILES or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def writing(path: Path, parents: bool = False) -> Iterator[Path]:
    """An empty file to write to, renamed to `path` on success and removed on failure.

    What stood at `path` stays until the new file is on the disk. A link there is replaced, and its target left alone. A
    pipe or a device, such as /dev/stdout, is written to as it is: open what this yields to append.

    Args:
        path: the file.
        parents: if true, its folder is created.

    Raises:
        RunError: the disk is full or read-only, for example.
    """
    if is_stream(path):
        with _disk_errors(path, whole=False):
            yield path
        return
    temporary = _make_temporary_path(path)
    with _disk_errors(path):
        if parents:
            make_folder(path.parent)
        temporary.touch(exist_ok=False)  # opened exclusively: neither another's file nor a link is written to
        try:
            yield temporary
            sync(temporary)
            temporary.replace(path)
            sync(path.parent)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


@contextmanager
def writing_folder(path: str | Path) -> Iterator[Path]:
    """A new folder to write to, which takes the place of what stood at `path` on success and is removed on failure.

    A link at `path` is replaced, and its target left alone. What a killed process had begun to write in its place is
    removed.

    Args:
        path: the folder; those above it are created.

    Raises:
        RunError: the disk is full or read-only, for example.
    """
    path = Path(path)
    fresh, old = _make_temporary_path(path), _make_temporary_path(path)
    with _disk_errors(path):
        make_folder(path.parent)
        fresh.mkdir()
        try:
            yield fresh
            for folder, _, names in os.walk(fresh, topdown=False):
                for place in (*(Path(folder, name) for name in names), Path(folder)):
                    if not place.is_symlink():
                        sync(place)
            try:
                if os.path.lexists(path):
                    path.rename(old)
                fresh.rename(path)
            except BaseException:
                if os.path.lexists(old) and not os.path.lexists(path):
                    old.rename(path)
                raise
            sync(path.parent)
            _remove(old)
            for left in path.parent.iterdir():
                if left.name.startswith(f"{path.name[:40]}.") and _is_unfinished(left) and not _is_written(left):
                    _remove(left)
        finally:
            _remove(fresh)


@contextmanager
def _disk_errors(path: Path, whole: bool = True) -> Iterator[None]:
    """Raises a `RunError` in place of the operating system's; `whole`: the file before is."""
    try:
        yield
    except OSError as error:
        before = "; the previous file is intact" if whole and os.path.lexists(path) else ""
        raise RunError(f"{path} can't be written: {error.strerror or error}{before}") from error


def append(text: str, path: Path) -> None:
    """Append a text to a file, and wait until the disk has it.

    Raises:
        OSError: the disk is full or read-only, for example.
    """
    new = not path.exists()
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
    sync(path)
    if new:
        sync(path.parent)


def make_folder(path: Path) -> None:
    """Create a folder and those above it, if missing, and wait until the disk has them."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def sync(path: Path) -> None:
    """Wait until the disk has a file's content, or the names in a folder."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(number)


def is_free(folder: Path) -> bool:
    """True if a folder is missing, or holds nothing but unfinished files and the lock of a killed process."""
    if not folder.exists():
        return not folder.is_symlink()
    return folder.is_dir() and all(path.name == LOCK or _is_unfinished(path) for path in folder.iterdir())


def remove_partial(folder: Path) -> None:
    """Delete unfinished files and folders of killed processes below a folder; no link is followed.

    Those of a process that lives, and of other machines, whose processes are unknown here, are left alone.
    """
    for place, folders, names in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *names)):
            if _is_unfinished(path) and not _is_written(path):
                _remove(path)
        folders[:] = [name for name in folders if not _is_unfinished(Path(place, name))]


def _make_temporary_path(path: Path) -> Path:
    """A name beside `path` that nobody can guess, and that tells who writes."""
    return path.with_name(f"{path.name[:40]}.{_machine()}-{os.getpid()}-{secrets.token_hex(8)}.partial")


def _machine() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _is_unfinished(path: Path) -> bool:
    return bool(_UNFINISHED.search(path.name)) and not path.is_symlink()


def _is_written(path: Path) -> bool:
    """True if the process that began to write may live."""
    name = _UNFINISHED.search(path.name)
    if name is None or name[1] != _machine():
        return True
    try:
        os.kill(int(name[2]), 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it is there and may be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
