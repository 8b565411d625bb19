"""The parts of a task over sentences: files for each, rows of one file, or a validation part carved from the first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from spen_plugins.datasets import locate
from spen_plugins.datasets.parts import carve, same_files
from spen_plugins.errors import ConfigError
from spen_plugins.readers.split import read_split
from spen_plugins.readers.text import sha256
from spen_plugins.task import PARTS

T = TypeVar("T")


class FileParts(NamedTuple, Generic[T]):
    """What was read.

    Attributes:
        parts: source and sentences of each part.
        checksums: sha256 of each file, by path.
        notes: sentences about it, for the user.
        split: the parts in words, for the protocol.
    """

    parts: dict[str, tuple[object, Sequence[T]]]
    checksums: dict[str, str]
    notes: list[str]
    split: Any


def files_of(config: Any, corpora: Sequence[str]) -> dict[str, str]:
    """Files by part, or `file` and `split`; empty if the config names an embedded corpus.

    Raises:
        ConfigError: neither corpus nor files, or both, or files of which no validation part can be made.
    """
    files = {key: name for key in ("file", "split", *PARTS) if (name := getattr(config, key)) is not None}
    known = " or ".join(repr(name) for name in corpora)
    if config.corpus is not None:
        if files:
            names = " and ".join(f"task.{part}" for part in files)
            verb = "names a file" if len(files) == 1 else "name files"
            fix = "give one of the two (data=files omits the corpus)"
            raise ConfigError(f"task.corpus is {config.corpus!r} and {names} {verb}; {fix}")
        return {}
    if files.keys() == {"file"}:
        raise ConfigError(f"task.split: {config.file} is one file; make a split with `spen data split {config.file}`")
    if files.keys() & {"file", "split"} and files.keys() != {"file", "split"}:
        found = " and ".join(f"task.{key}" for key in files)
        raise ConfigError(f"task: found {found}; expected task.file and task.split alone, or files for the parts")
    if "train" not in files and "file" not in files:
        raise ConfigError(
            f"task: found neither corpus nor train; expected corpus: {known}, or paths train, validation and test"
        )
    if files.keys() == {"train"}:
        raise ConfigError(
            "task.validation: found no file; expected one, as validation picks the best epoch, or task.test: with "
            "train and test alone, the validation part is carved from the training part"
        )
    return files


def read_file_parts(
    files: Mapping[str, str],
    read: Callable[[Path], tuple[Sequence[T], str | None]],
    strata: Callable[[T], Collection[Hashable] | None],
    what: str,
) -> FileParts[T]:
    """The parts of `files_of`.

    Args:
        files: not empty.
        read: a file -> its sentences, and what it was recognised as.
        strata: what a sentence is stratified by, if the validation part is carved; None where it is unknown.
        what: that in words.

    Raises:
        DataError: a file is missing or broken.
    """
    checksums = {name: sha256(locate(name)) for name in files.values()}
    parts: dict[str, tuple[object, Sequence[T]]] = {part: (None, []) for part in PARTS}
    notes: list[str] = []
    split: dict[str, Any] = {part: files.get(part) for part in PARTS}
    for key, name in files.items():
        if key != "split":
            where = locate(name)
            sentences, note = read(where)
            parts[key] = where, sentences
            notes += [f"{name}: {note}"] if note else []
    if "file" in files:
        where, sentences = parts.pop("file")
        rows = read_split(locate(files["split"]), len(sentences))
        parts = {part: (where, [sentences[row] for row in rows[part]]) for part in PARTS}
        split = {"file": files["file"], "rows": files["split"]}
    elif "validation" not in files:
        where, sentences = parts["train"]
        carved = carve([strata(sentence) for sentence in sentences], files["train"], what)
        parts["train"] = where, [sentences[row] for row in carved.train]
        parts["validation"] = where, [sentences[row] for row in carved.validation]
        notes.append(carved.said)
        split["validation"] = carved.said
    return FileParts(parts, checksums, [*notes, *same_files(files, checksums)], split)
