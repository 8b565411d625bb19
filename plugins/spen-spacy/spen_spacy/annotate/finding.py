"""The files of the input, and their format."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from spen_plugins import ConfigError
from spen_spacy.annotate.sources import PLAN, Source

SUFFIXES = {".txt": "text", ".text": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
SUFFIXES |= {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".spacy": "docbin"}
"""Suffix of a file's name, before a `.gz` -> its format."""


def find_sources(
    inputs: Sequence[str], kind: str | None = None, out: Path | None = None
) -> tuple[str, list[Source], list[Path]]:
    """The format and the files of the input, in order, and the files of unknown formats in its folders.

    `inputs` are files, folders with all below them, and patterns. The format is `kind`, or that of the suffixes. The
    folder `out` is no input. `ConfigError` if a file does not exist, or the files have several formats or an unknown
    one.
    """
    kinds: dict[Path, str] = {}
    skipped: dict[Path, None] = {}
    for name in inputs:
        is_folder = Path(name).expanduser().is_dir()
        paths = _list_files(Path(name).expanduser()) if is_folder else _expand_name(name, out)
        for path in paths:
            if any("\ud800" <= character <= "\udfff" for character in str(path)):
                raise ConfigError(f"{str(path)!a}: found a name that is not UTF-8; rename the file")
            format = kind or _find_format(path)
            if format is not None:
                kinds[path] = format
            elif is_folder:
                skipped[path] = None
            else:
                raise ConfigError(
                    f"{path}: unknown file format; expected a name that ends in {', '.join(SUFFIXES)} (text formats "
                    "also with .gz), or --from text"
                )
        if kinds.keys().isdisjoint(paths):
            raise ConfigError(f"{name}: found no file whose name ends in {', '.join(SUFFIXES)}")
    first_paths = {format: path for path, format in reversed(kinds.items())}
    if len(first_paths) > 1:
        listing = ", ".join(f"{path} ({format})" for format, path in first_paths.items())
        raise ConfigError(f"found files of several formats: {listing}; expected files of one format, or --from")
    return next(iter(first_paths)), [_make_source(path) for path in kinds], list(skipped)


def _find_format(path: Path) -> str | None:
    """The format of a file by its name; None if there is none."""
    name = path.name.lower()
    kind = SUFFIXES.get(Path(name.removesuffix(".gz")).suffix)
    return None if name.endswith(".gz") and kind in ("parquet", "docbin") else kind


def _list_files(folder: Path) -> list[Path]:
    """The files below a folder, without hidden ones and without subfolders that `spen annotate` wrote."""
    files = []
    for path in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        is_output = path.name == PLAN or (path.parent != folder and (path.parent / PLAN).exists())
        if path.is_file() and not is_hidden and not is_output:
            files.append(path)
    return files


def _expand_name(name: str, out: Path | None) -> list[Path]:
    """A file, or the files of a pattern, without those of the output."""
    path = Path(name).expanduser()
    paths = [path] if path.exists() else [Path(p) for p in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
    files = [path for path in paths if path.is_file()]
    if out is not None and (out / PLAN).exists():
        files = [path for path in files if path.parent.resolve() != out.resolve()]
    if not files:
        raise ConfigError(f"{name}: found no such file; expected a file, a folder, or a pattern of files")
    return files


def _make_source(path: Path) -> Source:
    status = path.stat()
    return Source(str(path.resolve()), str(path), status.st_size, status.st_mtime_ns)
