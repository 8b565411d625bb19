"""The parts of a task: files for each, rows of one file, or a validation part carved from the training file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import AfterValidator, Field, field_validator

from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.shards import checksum, is_sharded, shards
from spen_plugins.data.equal_inputs import shared_inputs
from spen_plugins.data.parts.split import Stratum, divide_rows, select_keys
from spen_plugins.data.tables.label_columns import ColumnKeys
from spen_plugins.data.text import check_encoding, read_in_encoding
from spen_plugins.errors import ConfigError
from spen_plugins.settings.config import Config
from spen_plugins.settings.fields import shorten_value
from spen_plugins.task import PARTS

T = TypeVar("T")
LARGE = 64 << 20
"""Size in bytes above which Parquet and Arrow files of training examples stay on disk."""


class EncodedConfig(Config):
    """The encoding of files of text."""

    file_encoding: Annotated[str, AfterValidator(check_encoding)] | None = None
    """Encoding of the files of text, such as cp1252, utf-16 or gb18030; null: UTF-8. A byte order mark
    takes precedence."""


def with_file_encoding(load: Callable[[T], None]) -> Callable[[T], None]:
    """Decorates `load` of a task with an `EncodedConfig`: its files are read in the config's encoding."""

    @wraps(load)
    def load_encoded(task: Any) -> None:
        with read_in_encoding(task.config.file_encoding):
            load(task)

    return load_encoded


class PartFilesConfig(EncodedConfig):
    """Files of examples."""

    file: str | None = None
    """A file that is divided into parts: by `split`, or 6 : 2 : 2 as `spen data split` divides it."""
    split: str | None = None
    """JSON file {"train": rows, "validation": rows, "test": rows}, or sentences, counted from 0 (`spen data split`
    makes one)."""
    train: str | None = None
    """Training file; `data:` paths are below $SPEN_DATA."""
    validation: str | None = None
    """Validation file; without one, it is carved from the training file, stratified by tags or labels."""
    test: str | None = None
    """Test file."""

    @field_validator("file", "split", "train", "validation", "test")
    @classmethod
    def _check_path(cls, path: str | None) -> str | None:
        if path == "":
            raise ValueError("the path is empty, as from an unset shell variable")
        return path


class LookUpConfig(Config):
    """The look-up of words."""

    min_count: int = Field(1, ge=1)
    """Minimal number of occurrences of a known word in the training part."""
    lowercase: bool = True
    """If true, words are looked up in lower case."""
    digits: bool = True
    """If true, every digit is looked up as 0."""


class FilesConfig(PartFilesConfig, LookUpConfig):
    """Files of sentences, and the look-up of words."""


class OnDiskConfig(Config):
    """Where the training part is kept."""

    on_disk: bool | None = None
    """If true, a training part in Parquet or Arrow files stays on disk: it is indexed once, and the index beside it is
    mapped into memory; null: true if the files exceed 64 MiB together. Requires `validation`."""


class FileParts(NamedTuple, Generic[T]):
    """The parts of a task's files.

    Attributes:
        parts: source and sentences of each part.
        checksums: sha256 of each file, by path.
        notes: sentences about the files, for the user.
        split: the parts in words, for the protocol.
    """

    parts: dict[str, tuple[object, Sequence[T]]]
    checksums: dict[str, str]
    notes: list[str]
    split: Any


def named_files(config: Any) -> dict[str, str]:
    """Files by part, or `file` and `split`."""
    return {key: name for key in ("file", "split", *PARTS) if (name := getattr(config, key)) is not None}


def name_files(config: Any, corpora: Sequence[str]) -> dict[str, str]:
    """Files by part, or `file` and perhaps `split`; empty if the config names an embedded corpus.

    Raises:
        ConfigError: neither corpus nor files, or both, or no file for a validation part; or settings of how files are
            read, although there is a corpus.
    """
    files = named_files(config)
    choices = " or ".join(repr(name) for name in corpora)
    if config.corpus is not None:
        if files:
            names = " and ".join(f"task.{part}" for part in files)
            verb = "names a file" if len(files) == 1 else "name files"
            remedy = "expected one of the two (data=files removes the corpus)"
            raise ConfigError(f"task: found corpus {config.corpus!r}, and {names} {verb}; {remedy}")
        check_corpus_keys(config, ("format", "words", "tags", "layout", "file_encoding"))
        return {}
    if files.keys() & {"file", "split"} and files.keys() not in ({"file"}, {"file", "split"}):
        keys = " and ".join(f"task.{key}" for key in files)
        raise ConfigError(f"task: found {keys}; expected task.file, alone or with task.split, or one file per part")
    if "train" not in files and "file" not in files:
        raise ConfigError(
            f"task: found neither corpus nor train; expected task.corpus ({choices}), task.file, or task.train with "
            "task.validation, task.test or both"
        )
    if files.keys() == {"train"}:
        raise ConfigError(
            "task.validation: found no file; expected one (it picks the best epoch); or task.test, so that the "
            "validation part is split off the training part; or a single task.file (data=FILE), which is divided into "
            "all three parts"
        )
    return files


def check_corpus_keys(config: Any, keys: Sequence[str]) -> None:
    """Raise ConfigError if a key sets how files are read, but the data are an embedded corpus."""
    for key in keys:
        info, value = type(config).model_fields.get(key), getattr(config, key, None)
        if info is not None and value != info.get_default(call_default_factory=True, validated_data={}):
            reason = f"it applies to files, but task.corpus is {config.corpus!r}"
            raise ConfigError(f"task.{key}: found {shorten_value(value)}, which has no effect: {reason}; omit it")


def stays_on_disk(config: Any, files: Mapping[str, str], unfit: Collection[str] = ()) -> bool:
    """True if the training part is kept on disk: `task.on_disk` decides, by default its size.

    Raises a ConfigError if `task.on_disk` is true, but the data or another setting, one of `unfit`, do not allow it.
    """
    if config.on_disk is False:
        return False
    if files.keys() == {"file"} and is_sharded(locate(files["file"])) and (config.on_disk or _is_large(files["file"])):
        raise ConfigError(
            f"task.validation: {files['file']} stays on disk (task.on_disk, or more than {LARGE >> 20} MiB), so it "
            "cannot be divided; also name a validation file, or pass task.on_disk=false"
        )
    source = locate(files["train"]) if "train" in files else None
    reason = None
    if source is None:
        reason = "there is no separate training file (task.train)"
    elif not is_sharded(source):
        reason = f"{files['train']} is not a Parquet or Arrow file, nor a folder or pattern of such files"
    elif "validation" not in files:
        reason = "there is no task.validation, and data on disk cannot be divided; name a file"
    elif unfit:
        reason = f"the training part must be in memory for {' and '.join(f'task.{key}' for key in unfit)}"
    if config.on_disk and reason:
        raise ConfigError(f"task.on_disk: found true, but {reason}")
    return reason is None and (bool(config.on_disk) or _is_large(files["train"]))


def _is_large(name: str) -> bool:
    return sum(file.stat().st_size for file in shards(locate(name))) > LARGE


def hash_files(files: Mapping[str, str]) -> dict[str, str]:
    """sha256 of each file, by its name."""
    return {name: checksum(locate(name)) for name in files.values()}


def read_file_parts(
    files: Mapping[str, str],
    read: Callable[[Path], tuple[Sequence[T], str]],
    strata: Callable[[T], Stratum],
    what: str,
    input_of: Callable[[Any], Hashable] = lambda sentence: sentence.words,
    keys: ColumnKeys | None = None,
) -> FileParts[T]:
    """The parts of the files that `name_files` returns.

    Args:
        read: a file -> its sentences, and a description of its format.
        strata: a sentence -> its labels for stratification, None if unknown; `what` names them.
        input_of: a sentence -> a key that equal inputs have in common.
        keys: as in `divide_file`, for one file without a split.
    """
    checksums = hash_files(files)
    places = {key: locate(name) for key, name in files.items() if key != "split"}
    contents = {key: read(place) for key, place in places.items()}
    notes = [f"{files[key]}: {note}" for key, (_, note) in contents.items()]
    sentences = {key: file_sentences for key, (file_sentences, _) in contents.items()}
    row_strata, inputs = (
        {key: list(map(f, file_sentences)) for key, file_sentences in sentences.items()} for f in (strata, input_of)
    )
    rows, division = divide_rows(files, row_strata, inputs, what, keys)
    parts: dict[str, tuple[object, Sequence[T]]] = {part: (None, []) for part in PARTS}
    parts |= {
        part: (places[key], [sentences[key][row] for row in part_rows]) for part, (key, part_rows) in rows.items()
    }
    if "file" in files:
        split: dict[str, Any] = {"file": files["file"], "rows": files.get("split", division)}
    else:
        split = {part: files[part] for part in PARTS if part in files} | ({"validation": division} if division else {})
    warnings = shared_inputs(select_keys(rows, inputs))
    return FileParts(parts, checksums, [*notes, *([division] if division else []), *warnings], split)


def note_unseen(unseen: Sequence[str], total: int, what: str) -> list[str]:
    """A warning if other parts have outputs that no training example has.

    Args:
        unseen: their names.
        total: number of different outputs in all parts.
        what: the outputs' kind.
    """
    if not unseen:
        return []
    names = ", ".join(unseen[:5]) + (", …" if len(unseen) > 5 else "")
    return [f"warning: no training example has {len(unseen)} of the {total} {what} ({names}): they can't be learned"]
