"""Stratified splits of a file's rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spen_plugins.data.catalogue.places import locate
from spen_plugins.data.equal_inputs import count_repeats, describe_repeats, number_inputs
from spen_plugins.data.parts.strata import Kind, read_strata
from spen_plugins.data.parts.stratification import stratify
from spen_plugins.data.tables.column_keys import ColumnKeys
from spen_plugins.errors import DataError
from spen_plugins.files import save_text

FOLDS = {"train": range(0, 6), "valid": range(6, 8), "test": range(8, 10)}
"""Folds of ten for each part, as in the protocol of Lee et al. (2022)."""


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
        count = f"{len(inputs)} rows" + f" of {inputs.max() + 1} different inputs" * bool(count_repeats(inputs))
        raise DataError(path, None, count, "more rows, of which ten different ones are enough for three parts")
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
        say(f"warning: {target} had another split, which this one replaces")
    save_text(text, target)
    say(said)
    return target
