"""Strata and inputs of the rows of a user's file, by which they are divided: labels, tags or roles in any format.

A file is read as a run reads it, by the readers of tables, texts, roles and tags; only which of them is found here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spen_plugins.builtin.tasks.text_words import words_of
from spen_plugins.datasets.equal_inputs import digest
from spen_plugins.datasets.labels import chosen_labels
from spen_plugins.datasets.stratification import label_matrix
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.readers.cells import left_out
from spen_plugins.readers.conll_roles import is_conll_2012, is_words_or_props
from spen_plugins.readers.conllu_roles import is_conll_2009
from spen_plugins.readers.csv_rows import CSV, header, separator_of
from spen_plugins.readers.docbin import DOCBIN
from spen_plugins.readers.formats import ARFF, JSON_LINES, PARQUET, Format, Head, head_of, recognise
from spen_plugins.readers.jsonl import read_json_lines
from spen_plugins.readers.label_cells import SEPARATOR
from spen_plugins.readers.label_names import label_columns
from spen_plugins.readers.labelled_texts import LIBMULTILABEL, TSV, file_records, read_texts
from spen_plugins.readers.libsvm import LIBSVM
from spen_plugins.readers.parquet import column_names
from spen_plugins.readers.roles import read_roles
from spen_plugins.readers.table import Attribute, Table
from spen_plugins.readers.table_columns import Columns, positive
from spen_plugins.readers.table_files import read_table
from spen_plugins.readers.tagged import CONLLU, TagPlaces, read_tagged
from spen_plugins.readers.tagged_shards import WORDS
from spen_plugins.readers.text import is_number
from spen_plugins.readers.text_columns import LABELS, TEXT, Layout, named_as


class Strata(NamedTuple):
    """Strata and inputs of a file's rows.

    Attributes:
        labels: `(rows, labels)` boolean.
        said: what was recognised, in words.
        inputs: of each row, a key that equal inputs have in common.
    """

    labels: np.ndarray
    said: str
    inputs: Sequence[Hashable]


class _Words(NamedTuple):
    """Settings of `words_of`: those of task `text` by default."""

    words: str = "rule"
    lowercase: bool = True
    digits: bool = True
    punctuation: bool = True


_NO_FEATURE = ("", "Unnamed: 0", "__index_level_0__")
"""Names that pandas gives to the column of row numbers, which readers leave out."""


def _has_brackets(head: Head) -> bool:
    rows = [line.split() for line in head.filled[:50] if not line.startswith("#")]
    return bool(rows) and all(len(row) > 2 and "*" in row[-1] for row in rows)


def _is_columns(head: Head) -> bool:
    """A blank line between lines of two or more cells."""
    lines = [line for line in head.lines if not line.startswith("#")]
    some = [line.split("\t") if "\t" in line else line.split() for line in lines if line.strip()]
    inside = "".join("x" if line.strip() else " " for line in lines).strip()
    return " " in inside and all(len(cells) > 1 for cells in some)


_ROLES = Format(
    "columns with roles",
    "CoNLL-2005, CoNLL-2009 or CoNLL-2012",
    lambda head: is_conll_2009(head) or is_conll_2012(head) or is_words_or_props(head) or _has_brackets(head),
)
_COLUMNS = Format("columns", "a word and its tag a line, a blank line between sentences", _is_columns)
_SENTENCES = (DOCBIN, CONLLU, _ROLES, _COLUMNS)
FORMATS = (PARQUET, ARFF, JSON_LINES, LIBSVM, *_SENTENCES, LIBMULTILABEL, TSV, CSV)


def strata_of(
    path: Path,
    labels: str | None = None,
    label_count: int | None = None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> Strata:
    """Returns the strata and inputs of a file's rows; a matrix without columns if they have no labels.

    Args:
        path: the file.
        labels, label_count: as of `split_file`.
        warn: called with what a run will reject in the columns of features.

    Raises:
        ConfigError: it must be said which columns are labels, or it may not.
        DataError: the file looks like none of the formats, or is not what its format asks for.
    """
    if labels is not None and label_count is not None:
        raise ConfigError("labels and label_count: found both; expected one of the two")
    form = recognise(path, FORMATS)
    names = _names(path, form)
    by_columns = label_count is not None or (labels is not None and labels not in names)
    if labels in names:
        by_columns = not _lists(path, form, names, labels)
    if form in (ARFF, LIBSVM) or (by_columns and names):
        return _of_table(path, form, names, labels, label_count, warn)
    if label_count is not None:
        raise ConfigError(f"label_count: {path} is read as {form.name}, where labels are no columns to count")
    of_words = form is PARQUET and not {*TEXT} & {*names} and {*WORDS} & {*names}
    if form in _SENTENCES or of_words or (form is JSON_LINES and _has_words(path)):
        return _of_sentences(path, form, labels)
    return _of_texts(path, form, names, labels)


def _of_table(
    path: Path,
    form: Format,
    names: list[str],
    labels: str | None,
    count: int | None,
    warn: Callable[[str], None],
) -> Strata:
    """By label columns; others may be of any kind, of which those of CSV are looked at to warn."""
    unused: Collection[str] = ()
    if names and (labels is not None or count is not None):
        alone = Table(str(path), [Attribute(name, "numeric") for name in names], format=form.name)
        unused = set(names).difference(label_columns(alone, chosen_labels(str(path), alone, labels, count)[0])[0])
    table = read_table(path, unused=unused)
    columns, classes = label_columns(table, chosen_labels(str(path), table, labels, count)[0])
    gold = Columns({}, columns, classes, apart=table.sets is not None).gold(table)
    labelled = {*columns, classes}
    said = f"read as {table.format}"
    text = named_as([name for name in names if name not in labelled], TEXT)
    if text:
        inputs, said = _texts(path, CSV if form is TSV else form, text), f"{said}, texts in column {text!r}"
    elif form in (ARFF, LIBSVM):
        inputs = _features(table, labelled)
    else:
        inputs = _cells(path, CSV if form is TSV else form, {*labelled, *table.keys})
        for name in table.keys:
            warn(left_out(name))
    if any(row is None for row in gold):
        raise DataError(path, None, "rows without labels", "labels in every row, to stratify by")
    matrix = np.zeros((len(gold), len(columns)), dtype=bool)
    for row, numbers in enumerate(gold):
        matrix[row, numbers] = True
    if form in (CSV, TSV) and not text:
        try:
            Columns.of(read_table(path), columns, ())
        except DataError as error:
            warn(f"warning: this column can't be a feature: {error}")
    return Strata(matrix, f"{said}, stratified by {matrix.shape[1]} labels", inputs)


def _rows(path: Path, form: Format) -> tuple[list[str], Iterator[list[Any]]]:
    """Names of the columns of CSV, TSV with a header, or Parquet, and the rows' cells."""
    rows = file_records(path, form, (separator_of(head_of(path)) or ",") if form is CSV else "")
    return [str(name).strip() for name in next(rows)[1]], (cells for _, cells in rows)


def _cells(path: Path, form: Format, unused: Collection[str | None]) -> list[bytes]:
    """The inputs of rows of CSV or Parquet: their other cells, whatever these are."""
    names, rows = _rows(path, form)
    at = [i for i, name in enumerate(names) if name not in unused and name not in _NO_FEATURE]
    return [digest(*(_plain(cells[i]) for i in at)) for cells in rows]


def _texts(path: Path, form: Format, column: str) -> list[bytes]:
    """The inputs of rows with a column of texts."""
    names, rows = _rows(path, form)
    return [digest(*words_of(str(cells[names.index(column)]), _Words())) for cells in rows]


def _prose(path: Path, form: Format, labels: Collection[str]) -> str:
    """Name of the column with the most words over all rows, and the most letters among equals; labels are none."""
    names, rows = _rows(path, form)
    sizes = {name: (0, 0) for name in names if name.casefold() not in labels}
    for cells in rows:
        for name, cell in zip(names, map(str, cells), strict=False):
            if name in sizes:
                words, letters = sizes[name]
                sizes[name] = (words + len(cell.split()), letters + sum(map(str.isalpha, cell)))
    return max(sizes, key=lambda name: sizes[name], default=names[0])


def _plain(cell: Any) -> str:
    """A cell as text, of numbers the same for 1 and 1.0."""
    try:
        return repr(float(cell) + 0.0)
    except (TypeError, ValueError):
        return str(cell).strip()


def _features(table: Table, labels: Collection[str | None]) -> list[bytes]:
    """The inputs of rows of ARFF or libsvm: what is not 0 in columns that are no labels."""
    own = np.array([table.sets is not None or a.name not in labels for a in table.attributes], dtype=bool)
    if table.dense is not None:
        return [digest((row[own] + 0.0).tobytes()) for row in table.dense]
    assert table.start is not None and table.column is not None and table.code is not None
    found = []
    for start, end in pairwise(table.start.tolist()):
        places, values = table.column[start:end], table.code[start:end]
        order = np.argsort(places, kind="stable")
        kept = order[own[places[order]] & (values[order] != 0)]
        found.append(digest(places[kept].tobytes(), values[kept].tobytes()))
    return found


def _names(path: Path, form: Format) -> list[str]:
    """Names of the columns of a file that may have a header."""
    if form is PARQUET:
        return column_names(path)
    head = head_of(path)
    if form is CSV:
        return header(path, separator_of(head) or ",")
    return [name.strip() for name in head.filled[0].split("\t")] if form is TSV else []


def _numbers_below(path: Path) -> bool:
    """Whether the second line has numbers alone, apart by tabs: then the first one names columns."""
    return all(map(is_number, [cell for line in head_of(path).filled[1:2] for cell in line.split("\t")] or [""]))


def _lists(path: Path, form: Format, names: list[str], column: str) -> bool:
    """Whether a column has lists of labels as texts, not 0 and 1."""
    if form is TSV:
        return True
    try:
        table = read_table(path, unused=set(names) - {column})
    except DataError:
        return True  # of Parquet lists, of CSV some words among numbers
    return positive(next(a.values for a in table.attributes if a.name == column)) is None


def _has_words(path: Path) -> bool:
    """Whether the first line of JSON is a sentence of words."""
    _, first = next(iter(read_json_lines(path, '{"words": […]} or {"text": "…"}', lambda value: value)))
    return isinstance(first, dict) and "words" in first


def _of_texts(path: Path, form: Format, names: list[str], labels: str | None) -> Strata:
    known = {name.casefold() for name in names}
    headed = form in (CSV, PARQUET) or known & set(TEXT) or _numbers_below(path)  # TSV may have no header
    if headed and labels is None and not known & set(LABELS) and len(names) > 2:
        some = ", ".join(names[:8])
        raise ConfigError(
            f"{path} is read as {form.name} with the columns {some}: which are labels? Give --labels a,b or "
            "--labels tag_* or --label-count; rows are stratified by them"
        )
    layout = Layout(separator=SEPARATOR) if labels is None else Layout(labels=labels, separator=SEPARATOR)
    wanted = LABELS if labels is None else (labels.casefold(),)
    if named_as(names, wanted) and not named_as(names, TEXT):
        layout = replace(layout, text=_prose(path, form, wanted))
    found = read_texts(path, layout)
    inputs = [digest(*words_of(row.text, _Words())) for row in found.rows]
    return _of_sets([row.labels or () for row in found.rows], f"read as {found.said}", "labels", inputs)


def _of_sentences(path: Path, form: Format, tags: str | None) -> Strata:
    if form is _ROLES or (tags is None and form in (CONLLU, JSON_LINES)):
        try:
            roles = read_roles(path, gold=False)
        except DataError:
            if form is _ROLES:
                raise
        else:
            found = [{tag for p in s.propositions for tag in p.tags or ()} for s in roles.sentences]
            if form is _ROLES or any(s.propositions for s in roles.sentences):
                return _of_sets(found, f"read as {roles.format}", "roles", [s.words for s in roles.sentences])
    column = int(tags) if tags and re.fullmatch(r"-?\d+", tags) else tags
    for scheme in ("none", "bio"):  # of a format that has both, tags go before entities
        if column == "ents" and scheme == "none":
            continue
        tagged = read_tagged(TagPlaces(tags=column, scheme=scheme), path, gold=False)
        if any(sentence.tags for sentence in tagged.sentences):
            break
    inputs = [s.words for s in tagged.sentences]
    return _of_sets([s.tags or () for s in tagged.sentences], f"read as {tagged.format}", "tags", inputs)


def _of_sets(sets: Sequence[Collection[str]], said: str, what: str, inputs: Sequence[Hashable]) -> Strata:
    matrix = label_matrix(sets)
    how = f"stratified by {matrix.shape[1]} {what}" if matrix.shape[1] else f"not stratified, as it has no {what}"
    return Strata(matrix, f"{said}, {how}", inputs)
