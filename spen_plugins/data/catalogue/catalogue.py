"""Catalogue of data sets: origin at a pinned commit, checksums, licence."""

from __future__ import annotations

import posixpath
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

_HERE = files("spen_plugins.data.catalogue")


@dataclass(frozen=True)
class File:
    """One file: its place below a data folder, its path below the origin's root, its sha256."""

    path: str
    origin: str
    sha256: str


@dataclass(frozen=True)
class DataSet:
    """A data set.

    Args:
        name: the name for `spen data get`.
        about: a one-line description.
        licence: the licence that a user accepts.
        files: downloaded files.
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
        """The file of this path, or all files in this folder; empty if it is none of this data set's."""
        return tuple(file for file in self.paths if file == path or file.startswith(f"{path}/"))


def _read_entry(name: str, entry: Mapping[str, Any]) -> DataSet:
    """An entry of `data_sets.toml`, which says what its keys are."""
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
    sums = entry.get("files")
    if sums is None:
        lines = _HERE.joinpath(f"{name}.sha256").read_text(encoding="ascii").splitlines()
        sums = {path: checksum for checksum, path in map(str.split, lines)}
    read = []
    for path, checksum in sums.items():
        origin, place = entry["origin"], path
        if isinstance(origin, dict):
            folder, _, place = path.partition("/")
            origin = origin[folder]
        read.append(File(f"{entry['folder']}/{path}", f"{origin}/{place}", checksum))
    return read


CATALOGUE = {
    name: _read_entry(name, entry)
    for name, entry in tomllib.loads(_HERE.joinpath("data_sets.toml").read_text(encoding="utf-8")).items()
}


def catalogue() -> list[DataSet]:
    """All data sets, in listing order."""
    return list(CATALOGUE.values())
