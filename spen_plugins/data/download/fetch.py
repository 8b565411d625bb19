"""`spen data get`: download from the origin, check, store in the cache."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path

from spen_plugins.data.catalogue.catalogue import CATALOGUE, DataSet, File
from spen_plugins.data.catalogue.places import cache_folder
from spen_plugins.data.download import ewt
from spen_plugins.data.download.ewt import NotThere
from spen_plugins.data.parts.split import split_file
from spen_plugins.data.text import sha256
from spen_plugins.errors import ConfigError, RunError, did_you_mean
from spen_plugins.files import writing
from spen_plugins.files.lock import locked

ORIGIN = "https://raw.githubusercontent.com"
_TIMEOUT = 60  # seconds without a byte


def get(
    name: str,
    yes: bool = False,
    ask: Callable[[str], bool] | None = None,
    base_url: str | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Download a data set into the cache, and make its derived files; existing files with the right checksum are kept.

    Returns its folder. The licence is accepted by `yes`, or by `ask`, which is called with a question that names it;
    `say` is called with a sentence before waiting for another process, which downloads the same.
    """
    if name not in CATALOGUE:
        raise ConfigError(f"no data set {name!r}.{did_you_mean(name, CATALOGUE)} There are {', '.join(CATALOGUE)}.")
    entry = CATALOGUE[name]
    if entry.why_not:
        raise ConfigError(f"{name} can't be downloaded: {entry.why_not}.")
    root = cache_folder()
    if any(_find_lacking(entry, root)):
        _accept(entry, yes, ask)
        with locked(root / entry.folder, say):
            missing, unmade = _find_lacking(entry, root)  # who was waited for has left less
            for file in missing:
                download(f"{base_url or ORIGIN}/{file.origin}", root / file.path, file.sha256)
            if unmade:
                _make(entry, root, unmade, base_url or ORIGIN)
    return root / entry.folder


def _find_lacking(entry: DataSet, root: Path) -> tuple[list[File], list[tuple[Path, str]]]:
    missing = [file for file in entry.files if not _is_right(root / file.path, file.sha256)]
    unmade = [(root / path, checksum) for path, checksum in entry.made if not _is_right(root / path, checksum)]
    return missing, unmade


def _make(entry: DataSet, root: Path, unmade: list[tuple[Path, str]], origin: str) -> None:
    if entry.name == "ewt":
        ewt.make(root, origin, download)
    else:
        split_file(root / entry.files[0].path, unmade[0][0], together=False)
    for path, checksum in unmade:
        if not _is_right(path, checksum):
            path.unlink(missing_ok=True)
            raise RunError(
                f"{entry.name}: {path.name} as made here is not the published file (sha256 {checksum[:12]}...): "
                "this NumPy draws other random numbers, or the origin has changed. Nothing was kept of it"
            )


def _is_right(path: Path, checksum: str) -> bool:
    return path.is_file() and sha256(path) == checksum


def _accept(entry: DataSet, yes: bool, ask: Callable[[str], bool] | None) -> None:
    if yes:
        return
    if ask is None:
        raise ConfigError(f"{entry.name}: licence: {entry.licence}. Accept it with --yes.")
    if not ask(f"{entry.name}: {entry.about}. Licence: {entry.licence}. Download?"):
        raise ConfigError(f"{entry.name}: not downloaded, its licence was not accepted")


def download(url: str, target: Path, checksum: str | None) -> None:
    """Download to a temporary file, check it, then rename it, so that the target is always complete."""
    with writing(target, parents=True) as part:
        with part.open("wb") as out:
            out.writelines(_receive(url))
        digest = sha256(part)
        if checksum is not None and digest != checksum:
            raise RunError(f"{url}: sha256 {digest}, expected {checksum}; the file is not the one in the catalogue")


def _receive(url: str) -> Iterator[bytes]:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
            while piece := response.read(1 << 16):
                yield piece
    except (OSError, HTTPException) as error:  # base classes of urllib's errors and timeouts, and of broken answers
        if getattr(error, "code", None) == 404:
            raise NotThere(f"could not download {url}: there is no such file") from None
        raise RunError(f"could not download {url}: {getattr(error, 'reason', error)}. Is there a network?") from None
