"""The data files in a config: those of known data sets, and a user's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spen_plugins.datasets.catalogue import DataSet, catalogue
from spen_plugins.datasets.places import PREFIX
from spen_plugins.task import PARTS


def data_sets(config: Mapping[str, Any]) -> list[DataSet]:
    """Known data sets in a config, vectors and clusters included."""
    paths = {text.removeprefix(PREFIX) for text in _strings(config) if text.startswith(PREFIX)}
    return [entry for entry in catalogue() if not paths.isdisjoint((*entry.paths, entry.folder))]


def own_files(config: Mapping[str, Any]) -> list[str]:
    """Training, validation and test files that belong to no known data set, as named in the config."""
    paths = (config["task"].get(part) for part in PARTS)
    return [path for path in paths if isinstance(path, str) and path and not path.startswith(PREFIX)]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
