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


def _expand_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # `~name` of an unknown user: taken as a file name, for the error message
        return Path(path)


def locate(path: str) -> Path:
    """A path of a config -> a file: `data:multilabel/bibtex/bibtex.arff` below `$SPEN_DATA`, else below the cache.

    Other paths are returned as they are, even if no such file exists; `~` is expanded in all.

    Raises:
        DataError: a `data:` path that is in neither place, with the command that downloads it, if there is one.
    """
    if not path.startswith(PREFIX):
        return _expand_home(path)
    relative = path.removeprefix(PREFIX).rstrip("/")
    own = os.environ.get("SPEN_DATA")
    roots = ([_expand_home(own)] if own else []) + [cache_folder()]
    from spen_plugins.data.catalogue.catalogue import CATALOGUE

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
        remedy = f"`spen data get {entry.name}` gets it" if entry else f"data sets are {', '.join(CATALOGUE)}"
        remedy += "" if own else ", or $SPEN_DATA set to a folder that has it"
    raise DataError(path, None, f"{state} below {places}", f"the file in one of them: {remedy}")
