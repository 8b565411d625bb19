"""Stratified splits of a file's rows; the rows of each part, from files or a split, or by dividing or carving."""

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
        expected = '{"train": rows, "validation": rows, "test": rows}'
        raise DataError(path, None, f"no JSON object ({error})", expected) from None
    parts = {"validation" if name == "valid" else name: rows for name, rows in split.items()}
    if not {"train", "validation"} <= {*parts} <= {*PARTS} or len(parts) < len(split):
        raise DataError(path, None, ", ".join(split) or "no parts", "the parts train, validation or valid, maybe test")
    part_of_row: dict[int, str] = {}
    for name, rows in parts.items():
        if not isinstance(rows, list):
            raise DataError(path, None, f"{rows!r:.80} as the rows of {name}", "a list of row numbers")
        for row in rows:
            if type(row) is not int or not 0 <= row < total:
                raise DataError(path, None, f"row {row!r:.80} in {name}", f"numbers from 0 to {total - 1}")
            if row in part_of_row:
                raise DataError(path, None, f"row {row} in {part_of_row[row]} and in {name}", "each row once")
            part_of_row[row] = name
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
    with a run's messages about the columns; `kind` is the kind of a table's rows, None: it is recognised.
    """
    strata = read_strata(locate(str(path)), keys, say, kind)
    inputs = number_inputs(strata.inputs if together else range(len(strata.labels)))
    fold = stratify(strata.labels, 10, seed, inputs, max_folds=2)
    rows = {name: np.flatnonzero(np.isin(fold, list(folds))).tolist() for name, folds in FOLDS.items()}
    if not all(rows.values()):
        count, input_count = f"{len(inputs)} rows", int(inputs.max()) + 1
        if input_count < len(inputs):
            count += f" with {input_count} different input{'s' * (input_count != 1)}"
        expected = f"more rows; {_ENOUGH}"
        if kind == "texts" and input_count < len(inputs):
            expected += (
                ". Texts that differ only in digits or capitals count as equal: name the parts' files (validation=, "
                "test=), and pass task.digits=false or task.lowercase=false"
            )
        raise DataError(path, None, count, expected)
    sizes = " + ".join(str(len(part_rows)) for part_rows in rows.values())
    note = f"{path}: {strata.description}; {sizes} rows to train, validate and test on{describe_repeats(inputs)}"
    return rows, note


def split_file(
    path: str | Path,
    out: str | Path | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda sentence: None,
    together: bool = True,
    **columns: Any,
) -> Path:
    """Divide a file as `divide_file` does, and write the row numbers of the parts, counted from 0, as JSON.

    Returns the split file, `out`, by default `NAME.split.json` next to the file. `columns` are the keys of
    `ColumnKeys`, such as `labels="tag_*"`. By default an ARFF file's label columns are those of the XML list beside it,
    if it exists, a table's texts and labels are found by the usual names, and tags, roles and sets of labels are where
    their formats have them.
    """
    rows, note = divide_file(path, ColumnKeys.from_settings(columns), seed, say, together)
    source = locate(str(path))
    base = source.resolve() if source.is_dir() else source  # "." has no name to put a suffix to
    target = Path(out) if out is not None else base.with_suffix(".split.json")
    text = json.dumps(rows)
    if target.is_file() and target.read_bytes() != text.encode():
        say(f"warning: replaced a different split in {target}")
    save_text(text, target)
    say(note)
    return target


T = TypeVar("T")
Stratum = Collection[Hashable] | None


def divide_rows(
    files: Mapping[str, str],
    strata: Mapping[str, Sequence[Stratum]],
    inputs: Mapping[str, Sequence[Hashable]],
    noun: str = "labels",
    keys: ColumnKeys | None = None,
    kind: Kind | None = None,
) -> tuple[dict[str, tuple[str, Sequence[int]]], str | None]:
    """Part -> the key of its file among the `named_files`, and its rows in that file; and a sentence about new parts.

    For each file except the split, `strata` has each row's labels for stratification, None if unknown, and `inputs` has
    a key of each row's input; equal inputs have equal keys.
    """
    note = None
    parts: dict[str, tuple[str, Sequence[int]]] = {part: (part, range(len(rows))) for part, rows in strata.items()}
    if files.keys() == {"file"}:
        parts, note = _divide(files["file"], keys or ColumnKeys(), kind, len(strata["file"]))
    elif "file" in files:
        split = read_split(locate(files["split"]), len(strata["file"]))
        parts = {part: ("file", rows) for part, rows in split.items()}
    elif "validation" not in files:
        carved = carve(strata["train"], files["train"], noun, inputs=inputs["train"])
        parts |= {"train": ("train", carved.train), "validation": ("train", carved.validation)}
        note = carved.description
    return parts, note


def _divide(
    name: str, keys: ColumnKeys, kind: Kind | None, total: int
) -> tuple[dict[str, tuple[str, Sequence[int]]], str]:
    """The parts into which `spen data split` divides a file, and a sentence about them."""
    if total < len(PARTS):
        unit = "sentence" if kind is None else "row"
        raise DataError(name, None, f"{total} {unit}{'s' * (total != 1)}", f"more {unit}s; {_ENOUGH}")
    rows, note = divide_file(name, keys, kind=kind)
    if (count := sum(map(len, rows.values()))) != total:
        problem = f"{count} rows when read by `spen data split`, but {total} when read by the task"
        raise DataError(
            name, None, problem, "the same rows; name the parts' files (validation=, test=), or pass split="
        )
    encoding = detect_encoding(b"")
    words = ["spen data split", quote(name), keys.spelled(), encoding and f"encoding={encoding}"]
    command = " ".join(filter(None, words))
    advice = f"`{command}` writes the same rows, for split={quote(str(Path(name).with_suffix('.split.json')))}"
    return dict(zip(PARTS, (("file", indices) for indices in rows.values()), strict=True)), f"{note}, seed 0; {advice}"


def select_keys(
    parts: Mapping[str, tuple[str, Sequence[int]]], keys: Mapping[str, Sequence[T]]
) -> dict[str, Sequence[T]]:
    """The keys of each part's rows; arguments as in `divide_rows`."""
    return {part: [keys[key][row] for row in rows] for part, (key, rows) in parts.items()}
