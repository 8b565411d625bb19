"""Files and folders that are complete or absent: written under a temporary name, synced, then renamed."""

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
"""End of a temporary name: machine, process and a random number."""
UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
"""Errors of file systems that can't sync folders, or have no locks."""


_OPEN_FILES = tuple(map(Path, ("/dev", "/dev/fd", "/proc/self/fd")))
"""Folders of devices and of files that a process has open."""


def is_stream(path: Path) -> bool:
    """True if a path leads to a pipe, a device or an open file (/dev/stdout), which no file can replace."""
    try:
        mode = path.stat().st_mode
    except OSError:  # none, or in a folder that may not be read
        return False
    target = path.absolute()
    while target.parent not in _OPEN_FILES and target.is_symlink():
        target = target.parent / target.readlink()
    return target.parent in _OPEN_FILES or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def writing(path: Path, parents: bool = False) -> Iterator[Path]:
    """An empty file to write to, renamed to `path` on success and removed on failure.

    The previous file stays until the new one is on the disk. A link at `path` is replaced, and its target left alone. A
    pipe or a device, such as /dev/stdout, is written to directly: open the yielded path to append.

    Args:
        path: the file.
        parents: if true, its folder is created.

    Raises:
        RunError: the disk is full or read-only, for example.
    """
    if is_stream(path):
        with _translate_disk_errors(path, is_intact=False):
            yield path
        return
    temporary = _make_temporary_path(path)
    with _translate_disk_errors(path):
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
    """A new folder to write to, which replaces `path` on success and is removed on failure.

    A link at `path` is replaced, and its target left alone. Unfinished folders of killed processes for the same path
    are removed.

    Args:
        path: the folder; those above it are created.

    Raises:
        RunError: the disk is full or read-only, for example.
    """
    path = Path(path)
    new_folder, old_folder = _make_temporary_path(path), _make_temporary_path(path)
    with _translate_disk_errors(path):
        make_folder(path.parent)
        new_folder.mkdir()
        try:
            yield new_folder
            for folder, _, names in os.walk(new_folder, topdown=False):
                for entry in (*(Path(folder, name) for name in names), Path(folder)):
                    if not entry.is_symlink():
                        sync(entry)
            try:
                if os.path.lexists(path):
                    path.rename(old_folder)
                new_folder.rename(path)
            except BaseException:
                if os.path.lexists(old_folder) and not os.path.lexists(path):
                    old_folder.rename(path)
                raise
            sync(path.parent)
            _remove(old_folder)
            for item in path.parent.iterdir():
                if item.name.startswith(f"{path.name[:40]}.") and _is_unfinished(item) and not _is_written(item):
                    _remove(item)
        finally:
            _remove(new_folder)


@contextmanager
def _translate_disk_errors(path: Path, is_intact: bool = True) -> Iterator[None]:
    """Raises a `RunError` in place of the operating system's; `is_intact`: the previous file is."""
    try:
        yield
    except OSError as error:
        note = "; the previous file is intact" if is_intact and os.path.lexists(path) else ""
        raise RunError(f"{path} can't be written: {error.strerror or error}{note}") from error


def append(text: str, path: Path) -> None:
    """Append a text to a file, and wait until the disk has it.

    Raises:
        OSError: the disk is full or read-only, for example.
    """
    is_new = not path.exists()
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
    sync(path)
    if is_new:
        sync(path.parent)


def make_folder(path: Path) -> None:
    """Create a folder and those above it, if missing, and wait until the disk has them."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def sync(path: Path) -> None:
    """Wait until the disk has a file's content, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)


def is_free(folder: Path) -> bool:
    """True if a folder is missing, or holds nothing but unfinished files and the lock of a killed process."""
    if not folder.exists():
        return not folder.is_symlink()
    return folder.is_dir() and all(path.name == LOCK or _is_unfinished(path) for path in folder.iterdir())


def remove_partial(folder: Path) -> None:
    """Delete unfinished files and folders of killed processes below a folder; no link is followed.

    Those of living processes, and of other machines, whose processes are unknown here, are left alone.
    """
    for parent, folders, names in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *names)):
            if _is_unfinished(path) and not _is_written(path):
                _remove(path)
        folders[:] = [name for name in folders if not _is_unfinished(Path(parent, name))]


def _make_temporary_path(path: Path) -> Path:
    """A path next to `path`, whose name nobody can guess and identifies the writer."""
    return path.with_name(f"{path.name[:40]}.{_hash_machine()}-{os.getpid()}-{secrets.token_hex(8)}.partial")


def _hash_machine() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _is_unfinished(path: Path) -> bool:
    return bool(_UNFINISHED.search(path.name)) and not path.is_symlink()


def _is_written(path: Path) -> bool:
    """True if the process that began to write may be alive."""
    match = _UNFINISHED.search(path.name)
    if match is None or match[1] != _hash_machine():
        return True
    try:
        os.kill(int(match[2]), 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it exists and may be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
