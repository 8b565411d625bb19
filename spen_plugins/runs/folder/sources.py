"""A run's data files: known data sets and a user's own files in its config, and files with the same content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from spen_plugins.data.catalogue import CATALOGUE, PREFIX, DataSet, locate
from spen_plugins.data.disk.shards import checksum
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.task import FILES

if TYPE_CHECKING:
    from spen_plugins.runs.predict.predictor import Predictor


def data_sets(config: Mapping[str, Any]) -> list[DataSet]:
    """Known data sets in a config, vectors and clusters included."""
    paths = {text.removeprefix(PREFIX) for text in _list_strings(config) if text.startswith(PREFIX)}
    return [entry for entry in CATALOGUE.values() if not paths.isdisjoint((*entry.paths, entry.folder))]


def own_files(config: Mapping[str, Any]) -> list[str]:
    """Files of the training, validation and test parts that belong to no known data set, as named in the config."""
    paths = (config["task"].get(key) for key in FILES)
    return [path for path in paths if isinstance(path, str) and path and not path.startswith(PREFIX)]


def warn_if_seen(predictor: Predictor, path: str | Path) -> list[str]:
    """A warning if the run trained or validated on rows of a file."""
    tests = {"task.test"}
    if predictor.task.file_has_parts:
        tests.add("task.file")  # the test part is scored
    seen_names = [name for name in _find_own_names(predictor, path) if name not in tests]
    if not seen_names:
        return []
    run = predictor.folder
    has_test = "test" in (run.metrics() or {})
    advice = f"`spen evaluate {quote(str(run.path))} --part test`" if has_test else "a file of other rows"
    return [
        f"warning: {path} is the run's {seen_names[0]}, on whose rows it trained or validated; to measure how well it "
        f"predicts new rows, use {advice}"
    ]


def check_not_test(predictor: Predictor, path: str | Path) -> None:
    """Raise a ConfigError if a file is, or holds, the run's test part."""
    verbs = {"task.test": "is", "task.file": "holds"}
    if overlaps := [verbs[name] for name in _find_own_names(predictor, path) if name in verbs]:
        raise ConfigError(
            f"{path} {overlaps[-1]} the run's test part: probabilities fitted to it would look better there than they "
            "are. Expected another file with gold, or no file, which uses the run's validation part"
        )


def _find_own_names(predictor: Predictor, path: str | Path) -> list[str]:
    """The settings (`task.train`) whose file had this file's content when the run was trained; for data that no setting
    names, their names in the run's records."""
    file = locate(str(path))
    try:
        digest = checksum(file)
    except DataError:  # neither a file nor a folder that a run could have read as a whole
        return []
    checksums = predictor.folder.environment().get("data_sha256", {})
    names = [name for name, recorded_digest in checksums.items() if recorded_digest == digest]
    return [f"task.{key}" for key, name in predictor.task.files().items() if name in names] or names


def _list_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _list_strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _list_strings(item)
