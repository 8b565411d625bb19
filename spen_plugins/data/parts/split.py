"""Stratified splits of a file's rows; rows of the parts: of their files or a split, or made by dividing or carving."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import numpy as np

from spen_plugins.data.catalogue import locate
from spen_plugins.data.equal_inputs import describe_repeats, number_inputs
from spen_plugins.data.parts.strata import Kind, read_strata
from spen_plugins.data.parts.stratification import carve, stratify
from spen_plugins.data.tables.label_columns import ColumnKeys
from spen_plugins.data.text import detect_encoding, read_in_encoding, read_lines
from spen_plugins.errors import DataError
from spen_plugins.files import from_json, save_text
from spen_plugins.task import PARTS


def read_split(path: str | Path, total: int) -> dict[str, list[int]]:
    """A JSON file {"train": rows, "validation" (or "valid"): rows, "test": rows}; rows are counted from 0."""
    with read_in_encoding(None):  # `spen data split` writes it
        text = "\n".join(read_lines(path))
    try:
        if not isinstance(split := from_json(text), dict):
            raise ValueError("other JSON")
    except ValueError as error:
        wanted = '{"train": rows, "validation": rows, "test": rows}'
        raise DataError(path, None, f"no JSON object ({error})", wanted) from None
    parts = {"validation" if name == "valid" else name: rows for name, rows in split.items()}
    if not {"train", "validation"} <= {*parts} <= {*PARTS} or len(parts) < len(split):
        raise DataError(path, None, ", ".join(split) or "no parts", "the parts train, validation or valid, maybe test")
    seen: dict[int, str] = {}
    for name, rows in parts.items():
        if not isinstance(rows, list):
            raise DataError(path, None, f"{rows!r:.80} as the rows of {name}", "a list of row numbers")
        for row in rows:
            if type(row) is not int or not 0 <= row < total:
                raise DataError(path, None, f"row {row!r:.80} in {name}", f"numbers from 0 to {total - 1}")
            if row in seen:
                raise DataError(path, None, f"row {row} in {seen[row]} and in {name}", "each row once")
            seen[row] = name
    return {name: parts.get(name, []) for name in PARTS}


FOLDS = {"train": range(0, 6), "valid": range(6, 8), "test": range(8, 10)}
"""Folds of ten for each part, as in the protocol of Lee et al. (2022)."""
_ENOUGH = "ten different ones are enough for three parts"


def divide_file(
    path: str | Path,
    keys: ColumnKeys,
    seed: int = 0,
    say: Callable[[str], None] = lambda sentence: None,
    together: bool = True,
    kind: Kind | None = None,
) -> tuple[dict[str, list[int]], str]:
    """Divide a file's rows 6 : 2 : 2 by iterative stratification; rows of equal inputs go to the same part if
    `together`.

    Returns the rows of each part, by the names of `FOLDS`, counted from 0, and a sentence about them. `say` is called
    with what a run says of the columns; `kind` says what a table is, None: what it looks like.
    """
    found = read_strata(locate(str(path)), keys, say, kind)
    inputs = number_inputs(found.inputs if together else range(len(found.labels)))
    fold = stratify(found.labels, 10, seed, inputs, most=2)
    rows = {name: np.flatnonzero(np.isin(fold, list(folds))).tolist() for name, folds in FOLDS.items()}
    if not all(rows.values()):
        count, different = f"{len(inputs)} rows", int(inputs.max()) + 1
        if different < len(inputs):
            count += f" with {different} different input{'s' * (different != 1)}"
        wanted = f"more rows; {_ENOUGH}"
        if kind == "texts" and different < len(inputs):
            wanted += (
                ". Texts that differ only in digits or capitals count as equal: name the parts' files (validation=, "
                "test=), and pass task.digits=false or task.lowercase=false"
            )
        raise DataError(path, None, count, wanted)
    sizes = " + ".join(str(len(some)) for some in rows.values())
    said = f"{path}: {found.said}; {sizes} rows to train, validate and test on{describe_repeats(inputs)}"
    return rows, said


def split_file(
    path: str | Path,
    out: str | Path | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda sentence: None,
    together: bool = True,
    **columns: Any,
) -> Path:
    """Divide a file as `divide_file`, and write the row numbers of the parts, counted from 0, as JSON.

    Returns the split file, `out`, by default `NAME.split.json` next to the file. `columns` go by the names of
    `ColumnKeys`: `labels="tag_*"`. By default an ARFF file's label columns are those of the XML list beside it, if it
    exists, a table's texts and labels are found by the usual names, and tags, roles and sets of labels are where their
    formats have them.
    """
    rows, said = divide_file(path, ColumnKeys.of(columns), seed, say, together)
    where = locate(str(path))
    own = where.resolve() if where.is_dir() else where  # "." has no name to put a suffix to
    target = Path(out) if out is not None else own.with_suffix(".split.json")
    text = json.dumps(rows)
    if target.is_file() and target.read_bytes() != text.encode():
        say(f"warning: replaced a different split in {target}")
    save_text(text, target)
    say(said)
    return target


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
    if total < len(PARTS):
        what = "sentence" if kind is None else "row"
        raise DataError(name, None, f"{total} {what}{'s' * (total != 1)}", f"more {what}s; {_ENOUGH}")
    rows, said = divide_file(name, keys, kind=kind)
    if (count := sum(map(len, rows.values()))) != total:
        found = f"{count} rows when read by `spen data split`, but {total} when read by the task"
        raise DataError(name, None, found, "the same rows; name the parts' files (validation=, test=), or pass split=")
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
