"""Indexes of examples, made once and kept beside the data; one that is stale, damaged or of others is made again."""

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
_ABOUT = "index.json"
_VERSION = 1


def kept_index(
    source: Path,
    checksum: str,
    settings: Mapping[str, Any],
    columns: Sequence[str],
    batches: Callable[[], Iterable[Mapping[str, Any]]],
) -> tuple[Index, str]:
    """The index of training data, and a sentence about it; `settings` is all else that it depends on, as JSON values.

    It is beside the data, or in the cache of downloads if nothing can be written there. What its files contain is
    recorded in that cache: an index beside the data that came with them, or was changed, is made again.
    """
    dataset_class()
    wanted = {"version": _VERSION, "data": checksum, "settings": dict(settings), "columns": list(columns)}
    folders = _folders(source, settings)
    for folder in folders:
        if _reason(folder, wanted) is None:
            return _opened(source, folder, "indexed before")
    folder = next((folder for folder in folders if _writable(folder.parent)), folders[-1])
    with locked(folder.parent, wait=say):
        why = _reason(folder, wanted)
        if why is None:  # another process has just made it
            return _opened(source, folder, "indexed before")
        started = time.perf_counter()
        if sys.stderr.isatty():
            say(f"indexing {source}, once: {why}")
        with writing_folder(folder) as fresh:
            rows = write_index(fresh, columns, _counted(batches()))
            if not rows:
                raise DataError(source, None, "no row", "at least one")
            sums = {name: sha256(fresh / name) for name in (ROWS, LEXICONS)}
            save_json({**wanted, "sha256": sums}, fresh / _ABOUT)
        with suppress(RunError):  # without a cache of one's own the next run makes the index again
            save_text(to_json(sums, None), _record(wanted))
    return _opened(source, folder, f"indexed in {time.perf_counter() - started:,.0f} s")


def _folders(source: Path, settings: Mapping[str, Any]) -> list[Path]:
    """Where the index may be: beside the data, and in the cache."""
    source = source.absolute()
    base, own = split_pattern(source) if is_pattern(source) else (source.parent, source.name)
    stem = "shards" if has_magic(own) else own[:60]

    def name(data: str) -> str:
        parts = {"data": data, "settings": dict(settings)}
        return f"{stem}-{hashlib.sha256(to_json(parts, None).encode()).hexdigest()[:12]}"

    return [base / FOLDER / name(own), cache_folder() / "indexed" / name(str(source))]


def _record(wanted: Mapping[str, Any]) -> Path:
    """The file that says what the files of an index of these data under these settings contain."""
    return cache_folder() / "indexed" / f"{hashlib.sha256(to_json(wanted, None).encode()).hexdigest()[:32]}.json"


def _recorded(wanted: Mapping[str, Any]) -> Any:
    try:
        return read_json(_record(wanted))
    except (OSError, RunError, DataError):
        return None


def _reason(folder: Path, wanted: Mapping[str, Any]) -> str | None:
    """Why there is no index to use in a folder; None if there is one."""
    try:
        found = read_json(folder / _ABOUT)
        sums = found.pop("sha256")
        if found != wanted:
            return f"the data changed since {folder} was made"
        if sums != _recorded(wanted):
            return f"{folder} was not made on this machine and may not match the data"
        if any(sha256(folder / name) != sums[name] for name in (ROWS, LEXICONS)):
            return f"{folder} is damaged"
    except FileNotFoundError:
        return "there is no index yet"
    except (RunError, DataError, KeyError, TypeError):
        return f"{folder} is damaged"
    return None


def _opened(source: Path, folder: Path, how: str) -> tuple[Index, str]:
    index = Index(folder)
    size = (folder / ROWS).stat().st_size / 1e6
    return index, f"{source} stays on disk: {len(index):,} examples, {how}, in {folder} ({size:,.0f} MB)"


def _writable(folder: Path) -> bool:
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _counted(batches: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    """The same batches; a terminal shows how far they are."""
    if not sys.stderr.isatty():
        return batches
    from rich.progress import track

    from spen_plugins.console import Console

    return track(batches, "batches of examples", console=Console(stderr=True), transient=True)
