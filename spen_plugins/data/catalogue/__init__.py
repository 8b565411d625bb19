"""Catalogue of data sets: origin at a pinned commit, checksums, licence; and the places of data files.

`data:` paths are below `$SPEN_DATA` or in the user's cache; a pattern or a folder stands for several files.
"""

from __future__ import annotations

import os
import posixpath
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from glob import has_magic
from importlib.resources import files
from pathlib import Path
from typing import Any

from spen_plugins.errors import DataError

_CATALOGUE_FOLDER = files("spen_plugins.data.catalogue")


@dataclass(frozen=True)
class File:
    """One file: its path below a data folder, its path below the origin's root, its sha256."""

    path: str
    origin: str
    sha256: str


@dataclass(frozen=True)
class DataSet:
    """A data set: its name for `spen data get`, the licence that a user accepts, the files that are downloaded.

    Args:
        made: files made from the downloaded ones, with their sha256: a split, or parts merged from two sources.
        why_not: reason why it can't be downloaded, and what to do instead; None if it can.
        elsewhere: files of a data set with `why_not`.
    """

    name: str
    about: str
    licence: str
    files: tuple[File, ...] = ()
    made: tuple[tuple[str, str], ...] = ()
    why_not: str | None = None
    elsewhere: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, as `data:` paths of configs."""
        return (*(file.path for file in self.files), *(path for path, _ in self.made), *self.elsewhere)

    @property
    def folder(self) -> str:
        """The folder of its files, below a data folder."""
        paths = self.paths[-1:] if self.name == "ewt" else [file.path for file in self.files] or self.elsewhere
        return posixpath.commonpath([posixpath.dirname(path) for path in paths])

    def below(self, path: str) -> tuple[str, ...]:
        """The file of this path, or all files in this folder; empty if the data set has no such path."""
        return tuple(file for file in self.paths if file == path or file.startswith(f"{path}/"))


def _read_entry(name: str, entry: Mapping[str, Any]) -> DataSet:
    """An entry of `data_sets.toml`, which documents its keys."""
    return DataSet(
        name,
        entry["about"],
        entry["licence"],
        tuple(_read_files(name, entry)) if "folder" in entry else (),
        tuple(entry.get("made", {}).items()),
        entry.get("why_not"),
        tuple(entry.get("elsewhere", ())),
    )


def _read_files(name: str, entry: Mapping[str, Any]) -> list[File]:
    checksums = entry.get("files")
    if checksums is None:
        lines = _CATALOGUE_FOLDER.joinpath(f"{name}.sha256").read_text(encoding="ascii").splitlines()
        checksums = {path: checksum for checksum, path in map(str.split, lines)}
    entries = []
    for path, checksum in checksums.items():
        origin, origin_path = entry["origin"], path
        if isinstance(origin, dict):
            folder, _, origin_path = path.partition("/")
            origin = origin[folder]
        entries.append(File(f"{entry['folder']}/{path}", f"{origin}/{origin_path}", checksum))
    return entries


CATALOGUE = {
    name: _read_entry(name, entry)
    for name, entry in tomllib.loads(_CATALOGUE_FOLDER.joinpath("data_sets.toml").read_text(encoding="utf-8")).items()
}


PREFIX = "data:"


def cache_folder() -> Path:
    """The folder of downloads of `spen data get`: `$XDG_CACHE_HOME/spen_plugins`, by default below `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "spen_plugins"


def _expand_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # `~name` of an unknown user: taken as a file name, for the error message
        return Path(path)


def locate(path: str) -> Path:
    """The file of a config's path: `data:multilabel/bibtex/bibtex.arff` is below `$SPEN_DATA`, else below the cache.

    Other paths are returned as they are, even if no such file exists; `~` is expanded in all paths.

    Raises:
        DataError: the path is empty, or neither folder has a `data:` path; the message has the command that
            downloads it, if there is one.
    """
    if not path:
        raise DataError("path", None, "an empty path", "a file or a folder; an argument may be an unset shell variable")
    if not path.startswith(PREFIX):
        return _expand_home(path)
    relative = path.removeprefix(PREFIX).rstrip("/")
    data_folder = os.environ.get("SPEN_DATA")
    roots = ([_expand_home(data_folder)] if data_folder else []) + [cache_folder()]

    entry = next((data_set for data_set in CATALOGUE.values() if data_set.below(relative)), None)
    files = entry.below(relative) if entry else ()
    state = f"no {relative}"
    for root in roots:
        if (root / relative).exists():
            if all((root / file).exists() for file in files):
                return root / relative
            state = f"only a part of {relative}"  # a download was cut off
    places = " nor ".join(map(str, roots))
    if entry and entry.why_not:
        remedy = f"{entry.name} can't be downloaded: {entry.why_not}"
    else:
        remedy = f"`spen data get {entry.name}` downloads it" if entry else f"data sets are {', '.join(CATALOGUE)}"
        remedy += "" if data_folder else ", or set $SPEN_DATA to a folder that has it"
    raise DataError(path, None, f"{state} below {places}", f"the file in one of them: {remedy}")


CONLL_2012 = "gold_conll"
"""End of the names of CoNLL-2012 files, as in `a2e_0001.v4_gold_conll`."""
IMAGES = (".png", ".jpg", ".jpeg")


def is_pattern(path: Path) -> bool:
    """True for a path that does not exist, and has a part with `*`, `?` or `[…]`."""
    return _find_pattern(path) is not None


def split_pattern(pattern: Path) -> tuple[Path, str]:
    """The folder above a pattern's first `*`, `?` or `[…]`, and the rest."""
    first = _find_pattern(pattern)
    return Path(*pattern.parts[:first]), "/".join(pattern.parts[first:])


def find_files(pattern: Path) -> list[tuple[str, Path]]:
    """The files that match a pattern, in order, each with its path below the folder of `split_pattern`; `**` matches
    any folders.
    """
    base, rest = split_pattern(pattern)
    files = sorted(file for file in base.glob(rest) if not file.is_dir())
    if not files:
        raise DataError(pattern, None, "no matching file", "a pattern that matches files")
    return [(file.relative_to(base).as_posix(), file) for file in files]


def find_conll_2012_files(folder: Path) -> list[tuple[str, Path]]:
    """The CoNLL-2012 files below a folder, sorted, each with its path below the folder; empty if it has none."""
    files = sorted(file for file in folder.rglob(f"*{CONLL_2012}") if _is_visible_file(file))
    return [(file.relative_to(folder).as_posix(), file) for file in files]


def image_files(folder: Path) -> list[tuple[str, Path]]:
    """The PNG and JPEG files in a folder, sorted, each with its name; empty if the folder has none."""
    files = [file for file in folder.iterdir() if _is_visible_file(file) and file.suffix.lower() in IMAGES]
    return sorted((file.name, file) for file in files)


def count_other_files(folder: Path) -> tuple[int, str]:
    """The number of files below a folder that are not CoNLL-2012 files, and their kinds, such as "*.gold_skel"."""
    others = [file for file in folder.rglob("*") if _is_visible_file(file) and not file.name.endswith(CONLL_2012)]
    kinds = Counter(f"*{file.suffix}" if file.suffix else file.name for file in others)
    names = sorted(kinds, key=lambda kind: (-kinds[kind], kind))
    return len(others), ", ".join(names[:4]) + ", …" * (len(names) > 4)


def _is_visible_file(file: Path) -> bool:
    return not file.name.startswith(".") and file.is_file()


def _find_pattern(path: Path) -> int | None:
    """Index of the first part of a path that is a pattern and not the name of an existing file or folder."""
    indices = (i for i, part in enumerate(path.parts) if has_magic(part))
    return next((i for i in indices if not Path(*path.parts[: i + 1]).exists()), None)
