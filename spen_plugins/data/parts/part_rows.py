"""Rows of the parts: those of their files, of a split, or made here by dividing or carving."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TypeVar

from spen_plugins.data.catalogue import locate
from spen_plugins.data.encodings import detect_encoding
from spen_plugins.data.parts.carving import carve
from spen_plugins.data.parts.split import divide_file
from spen_plugins.data.parts.strata import Kind
from spen_plugins.data.row_split import read_split
from spen_plugins.data.tables.column_keys import ColumnKeys
from spen_plugins.errors import DataError
from spen_plugins.task import PARTS

T = TypeVar("T")
Stratum = Collection[Hashable] | None


def divide_rows(
    files: Mapping[str, str],
    strata: Mapping[str, Sequence[Stratum]],
    inputs: Mapping[str, Sequence[Hashable]],
    what: str = "labels",
    keys: ColumnKeys | None = None,
    kind: Kind | None = None,
) -> tuple[dict[str, tuple[str, Sequence[int]]], str | None]:
    """Part -> which of the `named_files` it is of, and its rows there; and a sentence about parts that are made here.

    Of each file but the split, `strata` are what its rows are stratified by, None where it is unknown, and `inputs`
    keys that equal inputs have in common.
    """
    said = None
    parts: dict[str, tuple[str, Sequence[int]]] = {part: (part, range(len(some))) for part, some in strata.items()}
    if files.keys() == {"file"}:
        parts, said = _divided(files["file"], keys or ColumnKeys(), kind, len(strata["file"]))
    elif "file" in files:
        split = read_split(locate(files["split"]), len(strata["file"]))
        parts = {part: ("file", some) for part, some in split.items()}
    elif "validation" not in files:
        carved = carve(strata["train"], files["train"], what, inputs=inputs["train"])
        parts |= {"train": ("train", carved.train), "validation": ("train", carved.validation)}
        said = carved.said
    return parts, said


def _divided(
    name: str, keys: ColumnKeys, kind: Kind | None, total: int
) -> tuple[dict[str, tuple[str, Sequence[int]]], str]:
    """The parts of a file as `spen data split` divides it, and a sentence about them."""
    rows, said = divide_file(name, keys, kind=kind)
    if (count := sum(map(len, rows.values()))) != total:
        found = f"{count} rows as `spen data split` reads it, and {total} as the task does"
        raise DataError(name, None, found, "the same rows; name the parts' files (validation=, test=), or give split=")
    encoding = detect_encoding(b"")
    words = ["spen data split", quote(name), keys.spelled(), encoding and f"encoding={encoding}"]
    command = " ".join(filter(None, words))
    again = f"`{command}` writes the same rows, for split={quote(str(Path(name).with_suffix('.split.json')))}"
    return dict(zip(PARTS, (("file", some) for some in rows.values()), strict=True)), f"{said}, seed 0; {again}"


def select_keys(
    parts: Mapping[str, tuple[str, Sequence[int]]], keys: Mapping[str, Sequence[T]]
) -> dict[str, Sequence[T]]:
    """The keys of each part's rows; arguments as in `divide_rows`."""
    return {part: [keys[key][row] for row in rows] for part, (key, rows) in parts.items()}
