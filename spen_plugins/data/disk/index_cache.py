"""Indexes of examples, made once and kept beside the data. An index that is stale, damaged or not made on this machine
is made again."""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from glob import has_magic
from pathlib import Path
from typing import Any

from spen_plugins.data.catalogue import cache_folder, is_pattern, split_pattern
from spen_plugins.data.disk.on_disk import LEXICONS, ROWS, Index, dataset_class, write_index
from spen_plugins.data.text import sha256
from spen_plugins.errors import DataError, RunError, say
from spen_plugins.files import make_folder, read_json, save_json, save_text, to_json, writing_folder
from spen_plugins.files.lock import locked

FOLDER = ".spen_index"
_ABOUT_FILE = "index.json"
_VERSION = 1


def kept_index(
    source: Path,
    checksum: str,
    settings: Mapping[str, Any],
    columns: Sequence[str],
    batches: Callable[[], Iterable[Mapping[str, Any]]],
) -> tuple[Index, str]:
    """The index of training data, and a sentence about it; `settings` is all else that it depends on, as JSON values.

    It is beside the data, or in the cache of downloads if the data's folder is not writable. The cache also records the
    checksums of the index: one that came with the data, or was changed, is made again.
    """
    dataset_class()
    description = {"version": _VERSION, "data": checksum, "settings": dict(settings), "columns": list(columns)}
    folders = _list_folders(source, settings)
    for folder in folders:
        if _explain_rebuild(folder, description) is None:
            return _open_index(source, folder, "indexed before")
    folder = next((folder for folder in folders if _is_writable(folder.parent)), folders[-1])
    with locked(folder.parent, wait=say):
        reason = _explain_rebuild(folder, description)
        if reason is None:  # another process has just made it
            return _open_index(source, folder, "indexed before")
        start_time = time.perf_counter()
        if sys.stderr.isatty():
            say(f"indexing {source}, once: {reason}")
        with writing_folder(folder) as new_folder:
            rows = write_index(new_folder, columns, _show_progress(batches()))
            if not rows:
                raise DataError(source, None, "no row", "at least one")
            checksums = {name: sha256(new_folder / name) for name in (ROWS, LEXICONS)}
            save_json({**description, "sha256": checksums}, new_folder / _ABOUT_FILE)
        with suppress(RunError):  # without a writable cache the next run makes the index again
            save_text(to_json(checksums, None), _find_record(description))
    return _open_index(source, folder, f"indexed in {time.perf_counter() - start_time:,.0f} s")


def _list_folders(source: Path, settings: Mapping[str, Any]) -> list[Path]:
    """The possible folders of the index: beside the data, and in the cache."""
    source = source.absolute()
    base, relative = split_pattern(source) if is_pattern(source) else (source.parent, source.name)
    stem = "shards" if has_magic(relative) else relative[:60]

    def make_name(data: str) -> str:
        identity = {"data": data, "settings": dict(settings)}
        return f"{stem}-{hashlib.sha256(to_json(identity, None).encode()).hexdigest()[:12]}"

    return [base / FOLDER / make_name(relative), cache_folder() / "indexed" / make_name(str(source))]


def _find_record(description: Mapping[str, Any]) -> Path:
    """The file that records the checksums of an index of these data under these settings."""
    return cache_folder() / "indexed" / f"{hashlib.sha256(to_json(description, None).encode()).hexdigest()[:32]}.json"


def _read_record(description: Mapping[str, Any]) -> Any:
    try:
        return read_json(_find_record(description))
    except (OSError, RunError, DataError):
        return None


def _explain_rebuild(folder: Path, description: Mapping[str, Any]) -> str | None:
    """The reason why a folder has no usable index; None if it has one."""
    try:
        stored = read_json(folder / _ABOUT_FILE)
        checksums = stored.pop("sha256")
        if stored != description:
            return f"the data changed since {folder} was made"
        if checksums != _read_record(description):
            return f"{folder} was not made on this machine and may not match the data"
        if any(sha256(folder / name) != checksums[name] for name in (ROWS, LEXICONS)):
            return f"{folder} is damaged"
    except FileNotFoundError:
        return "there is no index yet"
    except (RunError, DataError, KeyError, TypeError):
        return f"{folder} is damaged"
    return None


def _open_index(source: Path, folder: Path, timing: str) -> tuple[Index, str]:
    index = Index(folder)
    size = (folder / ROWS).stat().st_size / 1e6
    return index, f"{source} stays on disk: {len(index):,} examples, {timing}, in {folder} ({size:,.0f} MB)"


def _is_writable(folder: Path) -> bool:
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _show_progress(batches: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The same batches; a terminal shows their progress."""
    if not sys.stderr.isatty():
        return batches
    from rich.progress import track

    from spen_plugins.console import Console

    return track(batches, "batches of examples", console=Console(stderr=True), transient=True)
