"""The files of the input, and their format."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from spen_plugins import ConfigError
from spen_spacy.annotate.sources import PLAN, Source

SUFFIXES = {".txt": "text", ".text": "text", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
SUFFIXES |= {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".spacy": "docbin"}
"""The format of a file by the end of its name, before a `.gz`."""


def find(named: Sequence[str], given: str | None = None, out: Path | None = None) -> tuple[str, list[Source]]:
    """The format and the files of what a user named, in order: files, folders with all below them, and patterns.

    Args:
        named: paths and patterns.
        given: the format; None: as the names end.
        out: the folder of the output, which is no input.

    Raises:
        ConfigError: there is no such file, or they are of several formats or of an unknown one.
    """
    found = dict.fromkeys(path for name in named for path in _paths(name, given is not None, out))
    kinds: dict[str, Path] = {}
    for path in found:
        if not path.is_file():
            raise ConfigError(f"{path}: found no file; expected text, JSON, CSV, Parquet or DocBin")
        if any("\ud800" <= mark <= "\udfff" for mark in str(path)):
            raise ConfigError(f"{str(path)!a}: found a name that is not UTF-8; rename the file")
        kind = given or _kind(path)
        if kind is None:
            raise ConfigError(
                f"{path}: found no format of this name; expected one that ends in {', '.join(SUFFIXES)}, text formats "
                "also with .gz, or --from text for a text of another name"
            )
        kinds.setdefault(kind, path)
    if len(kinds) > 1:
        several = ", ".join(f"{path} ({kind})" for kind, path in kinds.items())
        raise ConfigError(f"found files of several formats: {several}; expected one format at a time, or --from")
    return next(iter(kinds)), [_source(path) for path in found]


def note_skipped(named: Sequence[str], kind: str, sources: Sequence[Source], out: Path) -> list[str]:
    """A note of the files of unknown formats in the folders that a user named; none if there are none.

    Args:
        named: paths and patterns.
        kind, sources: what `find` found there.
        out: the folder of the output, which is no input.
    """
    names = dict.fromkeys(str(path) for name in named for path in _paths(name, True, out))
    skipped = list(names.keys() - {source.name for source in sources})
    if not skipped:
        return []
    shown = ", ".join(sorted(skipped)[:3]) + (", …" if len(skipped) > 3 else "")
    files, them = ("file", "it") if len(skipped) == 1 else ("files", "them")
    hint = f" (--from text reads {them})" if kind == "text" else ""
    return [f"{len(skipped):,} {files} skipped, of an unknown format: {shown}{hint}"]


def _kind(path: Path) -> str | None:
    """The format of a file by its name; None if there is none."""
    name = path.name.lower()
    kind = SUFFIXES.get(Path(name.removesuffix(".gz")).suffix)
    return None if name.endswith(".gz") and kind in ("parquet", "docbin") else kind


def _paths(name: str, any_suffix: bool, out: Path | None) -> list[Path]:
    """The files of a file's or a folder's name, or of a pattern; none of a folder below that `spen annotate` wrote."""
    path = Path(name).expanduser()
    if path.is_dir():
        inside = [p for p in sorted(path.rglob("*")) if not any(part[0] == "." for part in p.relative_to(path).parts)]
        files = [p for p in inside if p.is_file() and (any_suffix or _kind(p) is not None)]
        files = [p for p in files if p.name != PLAN and (p.parent == path or not (p.parent / PLAN).exists())]
        if not files:
            raise ConfigError(f"{name}: found no file that ends in {', '.join(SUFFIXES)}; expected some")
        return files
    files = [path] if path.exists() else [Path(p) for p in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
    if out is not None and (out / PLAN).exists():
        files = [p for p in files if p.parent.resolve() != out.resolve()]
    if not files:
        raise ConfigError(f"{name}: found no such file; expected a file, a folder, or a pattern of files")
    return files


def _source(path: Path) -> Source:
    about = path.stat()
    return Source(str(path.resolve()), str(path), about.st_size, about.st_mtime_ns)
