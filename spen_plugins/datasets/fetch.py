"""`spen data get`: download from the origin, check, put in the cache."""

from __future__ import annotations

import shutil
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

from spen_plugins.datasets.catalogue import CATALOGUE, DataSet, File
from spen_plugins.datasets.places import cache_folder
from spen_plugins.datasets.split import split_file
from spen_plugins.errors import ConfigError, RunError, did_you_mean
from spen_plugins.readers.text import sha256

ORIGIN = "https://raw.githubusercontent.com"
_TIMEOUT = 60  # seconds without a byte


def get(name: str, yes: bool = False, ask: Callable[[str], bool] | None = None, base_url: str | None = None) -> Path:
    """Download a data set into the cache, and make its split; what is there and right already is kept.

    Args:
        name: a name of the catalogue.
        yes: the licence is accepted.
        ask: otherwise called with a question that names the licence; True accepts.
        base_url: where to download from instead of the origin (a mirror with the same paths).

    Returns:
        The data set's folder.

    Raises:
        ConfigError: an unknown name, a data set that can't be fetched, or a licence not accepted.
        RunError: no network, or a file with another checksum.
    """
    if name not in CATALOGUE:
        raise ConfigError(f"no data set {name!r}.{did_you_mean(name, CATALOGUE)} There are {', '.join(CATALOGUE)}.")
    entry = CATALOGUE[name]
    if entry.why_not:
        raise ConfigError(f"{name} can't be downloaded: {entry.why_not}.")
    missing = [file for file in entry.files if not _right(cache_folder() / file.path, file.sha256)]
    if missing:
        _accept(entry, yes, ask)
    for file in missing:
        _download(file, f"{base_url or ORIGIN}/{file.origin}")
    if entry.split:
        _split(entry)
    return cache_folder() / entry.folder


def _right(path: Path, checksum: str) -> bool:
    return path.is_file() and sha256(path) == checksum


def _accept(entry: DataSet, yes: bool, ask: Callable[[str], bool] | None) -> None:
    if yes:
        return
    if ask is None:
        raise ConfigError(f"{entry.name}: licence: {entry.licence}. Say that you accept it (--yes).")
    if not ask(f"{entry.name}: {entry.about}. Licence: {entry.licence}. Download?"):
        raise ConfigError(f"{entry.name}: not downloaded, its licence was not accepted")


def _download(file: File, url: str) -> None:
    """Into a temporary file beside the target, checked, then renamed: a file under its name is always whole."""
    target = cache_folder() / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, suffix=".part", delete=False) as out:
        part = Path(out.name)
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
                shutil.copyfileobj(response, out)
        except BaseException as error:
            part.unlink()
            if isinstance(error, OSError):  # urllib's errors and timeouts are
                reason = getattr(error, "reason", None) or error
                raise RunError(f"could not download {url}: {reason}. Is there a network?") from None
            raise
    found = sha256(part)
    if found != file.sha256:
        part.unlink()
        raise RunError(f"{url}: sha256 {found}, expected {file.sha256}; the file is not the one this version knows")
    part.replace(target)


def _split(entry: DataSet) -> None:
    assert entry.split is not None
    relative, checksum = entry.split
    target = cache_folder() / relative
    if _right(target, checksum):
        return
    split_file(cache_folder() / entry.files[0].path, target)
    if sha256(target) != checksum:
        target.unlink()
        raise RunError(
            f"{entry.name}: the split made here is not the published one; this NumPy draws other random numbers. "
            f"`spen data split` makes a split of your own"
        )
