"""Paths of data files: `data:` paths are below `$SPEN_DATA` or in the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

from spen_plugins.errors import DataError

PREFIX = "data:"


def cache_folder() -> Path:
    """The folder of downloads of `spen data get`: `$XDG_CACHE_HOME/spen_plugins`, by default below `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "spen_plugins"


def _home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # `~name` of an unknown user: taken as a file name, for the error message
        return Path(path)


def locate(path: str) -> Path:
    """A path of a config -> a file: `data:multilabel/bibtex/bibtex.arff` below `$SPEN_DATA`, else below the cache.

    Other paths are returned as they are, even if no such file exists; `~` is expanded in all.

    Raises:
        DataError: a `data:` path that is in neither place; the message names the command that downloads it, if any.
    """
    if not path.startswith(PREFIX):
        return _home(path)
    relative = path.removeprefix(PREFIX)
    given = os.environ.get("SPEN_DATA")
    roots = ([_home(given)] if given else []) + [cache_folder()]
    from spen_plugins.data.catalogue.catalogue import CATALOGUE

    relative = relative.rstrip("/")
    entry = next((d for d in CATALOGUE.values() if d.below(relative)), None)
    known = entry.below(relative) if entry else ()
    found = f"no {relative}"
    for root in roots:
        if (root / relative).exists():
            if all((root / path).exists() for path in known):
                return root / relative
            found = f"only a part of {relative}"  # a download was cut off
    looked = " nor ".join(str(root) for root in roots)
    get = f"`spen data get {entry.name}` gets it" if entry else f"data sets are {', '.join(CATALOGUE)}"
    note = "" if given else ", or $SPEN_DATA set to a folder that has it"
    if entry and entry.why_not:
        get, note = f"{entry.name} can't be downloaded: {entry.why_not}", ""
    raise DataError(path, None, f"{found} below {looked}", f"the file in one of them: {get}{note}")
