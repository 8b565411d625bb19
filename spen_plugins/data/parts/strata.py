"""Strata and inputs of the rows of a user's file, by which they are divided: labels, tags or roles in any format.

A file is read as a run reads it, by the readers of tables, texts, roles and tags; only which of them is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import numpy as np

from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.shards import column_names, is_sharded, shards
from spen_plugins.data.equal_inputs import digest, make_row_keys
from spen_plugins.data.formats import ARFF, JSON_LINES, PARQUET, Format, one_of, read_head, recognise
from spen_plugins.data.parts.sentence_strata import ROLES, SENTENCES, Strata, read_sentence_strata, stratify_sets
from spen_plugins.data.records import CSV, find_separator, read_header, read_json_lines
from spen_plugins.data.sentences.offset_items import is_sentence
from spen_plugins.data.sentences.roles import role_files
from spen_plugins.data.sentences.tagged import JSON_LIST, listed_items
from spen_plugins.data.sentences.tagged_rows import LIST_WORDS
from spen_plugins.data.table import Attribute, Table, left_out
from spen_plugins.data.tables.label_cells import SEPARATOR
from spen_plugins.data.tables.label_columns import ColumnKeys, chosen_labels, find_label_columns, lists_names
from spen_plugins.data.tables.libsvm import LIBSVM
from spen_plugins.data.tables.table_columns import Columns
from spen_plugins.data.tables.table_files import UNNAMED, holds_lists, list_column, read_table
from spen_plugins.data.text import is_number, read_lines
from spen_plugins.data.texts.fasttext import FASTTEXT
from spen_plugins.data.texts.labelled_texts import LIBMULTILABEL, TSV, file_records, read_texts
from spen_plugins.data.texts.text_columns import LABELS, TEXT, Layout, find_places, named_as
from spen_plugins.data.texts.words import words_of
from spen_plugins.errors import ConfigError, DataError

_WORDS = SimpleNamespace(words="rule", lowercase=True, digits=True, punctuation=True)
"""Settings of `words_of`: those of task `text` by default."""
Kind = Literal["texts", "vectors"]
"""Kinds of a table's rows."""
_OF_WORDS = {"words", "tags", "scheme"}
"""Keys of files of sentences."""
FORMATS = (PARQUET, ARFF, JSON_LINES, LIBSVM, FASTTEXT, *SENTENCES, LIBMULTILABEL, TSV, CSV)


def read_strata(
    path: Path,
    keys: ColumnKeys,
    warn: Callable[[str], None] = lambda sentence: None,
    kind: Kind | None = None,
) -> Strata:
    """Returns the strata and inputs of a file's rows; a matrix without columns if they have no labels.

    `warn` is called with what a run says of the columns of features; `kind` says what a table is, None: what it looks
    like.
    """
    form = _recognise(path, kind == "texts" or keys.text is not None)
    names = _names(path, form)
    is_of_sentences, given = _is_of_sentences(path, form, names), keys.given().keys()
    if wrong := given - _OF_WORDS if is_of_sentences else given & _OF_WORDS:
        reason = "no such column; tags= names the tags" if is_of_sentences else "no word tags; labels= names the labels"
        raise ConfigError(f"{min(wrong)}=: {path} is read as {form.name}, which has {reason}")
    if is_of_sentences:
        return read_sentence_strata(path, form, keys)
    if kind is None and names:
        kind = "vectors" if _has_features(path, form, names, keys) else "texts"
    if form in (ARFF, LIBSVM) or kind == "vectors":
        return _of_vectors(path, form, names, keys, warn)
    if keys.label_count is not None:
        raise ConfigError(f"label_count=: {path} is read as {form.name}, where labels are not columns; use labels=")
    return _of_texts(path, form, names, keys)


def _recognise(path: Path, has_texts: bool) -> Format:
    """The format of a file; a table of texts may look like words and tags in columns."""
    if path.is_dir() and role_files(path):
        return ROLES
    formats = [form for form in FORMATS if not has_texts or form not in SENTENCES]
    form = PARQUET if is_sharded(path) else recognise(path, formats)
    if form is JSON_LIST and not _lists_sentences(path):
        head = read_head(path)
        raise DataError(path, head.first, head.found, one_of([other for other in FORMATS if other is not JSON_LIST]))
    return form


def _is_of_sentences(path: Path, form: Format, names: Sequence[str]) -> bool:
    if form is PARQUET:
        return not {*TEXT} & {*names} and bool({*LIST_WORDS} & {*names})
    return form in SENTENCES or (form is JSON_LINES and _has_words(path))


def _has_features(path: Path, form: Format, names: list[str], keys: ColumnKeys) -> bool:
    """True for a table of vectors: its labels' columns are given, and what is left is not one column of texts."""
    free = [name for name in names if name not in keys.drop]
    if keys.text is not None or isinstance(keys.labels, int) or named_as(free, TEXT):
        return False
    if keys.label_count is not None or keys.labels is None:
        return keys.label_count is not None
    if lists_names(keys.labels):
        return read_lines(locate(keys.labels))[0].strip() in names
    has_lists = isinstance(keys.labels, str) and keys.labels in names and holds_lists(path, form, keys.labels)
    left = _left(path, form, names, keys)
    if len(left) == 1:
        return not has_lists and not any(" " in cell for cell in left[0])
    return not any(map(_is_prose, left))


def _of_vectors(path: Path, form: Format, names: list[str], keys: ColumnKeys, warn: Callable[[str], None]) -> Strata:
    """By label columns; the other columns are features, and a warning names one that can't be."""
    if keys.text is not None:
        raise ConfigError(f"text=: {path} is read as feature columns, without texts; remove the key")
    inputs: Sequence[Hashable] | None = None
    lists = None if lists_names(keys.labels) else list_column(path, keys.labels, keys.separator)
    try:
        table = read_table(path, unused=keys.drop, lists=lists)
        labels, _ = chosen_labels(str(path), table, keys.labels, keys.label_count, keys.drop)
        inputs = make_row_keys(Columns.of(table, labels, keys.drop).encode(table)[0])
    except DataError as error:
        if any(map(_is_prose, _left(path, form, names, keys))):
            return _of_texts(path, form, names, keys)  # an error unless it is clear which of them
        warn(f"warning: this column can't be a feature: {error}")
        alone = Table(str(path), [Attribute(name, "numeric") for name in names], format=form.name)
        unused = set(names) - set(_labels(path, alone, keys)[0]) if names else ()
        table = read_table(path, unused=unused, lists=lists)
    columns, classes = _labels(path, table, keys)
    for name in table.keys:
        warn(left_out(name))
    gold = Columns({}, columns, classes, apart=table.sets is not None).gold(table)
    if all(row is None for row in gold):
        raise DataError(path, None, "no label in any row", "some labels (labels= names their column)")
    if any(row is None for row in gold):
        raise DataError(path, None, "rows without labels", "labels in every row, for stratification")
    matrix = np.zeros((len(gold), len(columns)), dtype=bool)
    for row, numbers in enumerate(gold):
        matrix[row, numbers] = True
    said = f"read as {table.format}, stratified by {len(columns)} label{'s' * (len(columns) != 1)}"
    return Strata(matrix, said, range(len(gold)) if inputs is None else inputs)


def _labels(path: Path, table: Table, keys: ColumnKeys) -> tuple[tuple[str, ...], str | None]:
    return find_label_columns(table, chosen_labels(str(path), table, keys.labels, keys.label_count, keys.drop)[0])


def _left(path: Path, form: Format, names: Sequence[str], keys: ColumnKeys) -> list[list[str]]:
    """Cells of the first rows of each column that is neither labels nor unused; empty cells are left out."""
    if not names:
        return []
    labels = find_places(keys.labels or (), names)
    left = [at for at, name in enumerate(names) if at not in labels and name not in (*keys.drop, *UNNAMED)]
    rows = file_records(path, form, (find_separator(read_head(path)) or ",") if form is CSV else "")
    some = [cells for _, cells in islice(rows, 1, 1000)]
    return [[text for cells in some if (text := str(cells[at] if at < len(cells) else "").strip())] for at in left]


def _is_prose(cells: Sequence[str]) -> bool:
    """True if most cells have several words, and many differ, as those of a category don't."""
    return 2 * sum(len(cell.split()) > 1 for cell in cells) > len(cells) and 4 * len({*cells}) > len(cells)


def _names(path: Path, form: Format) -> list[str]:
    if form is PARQUET:
        return column_names(shards(path)[0])
    if form is CSV:
        return read_header(read_head(path))
    return [name.strip() for name in read_head(path).filled[0].split("\t")] if form is TSV else []


def _numbers_below(path: Path) -> bool:
    """True if the second line has numbers alone, apart by tabs: then the first one names columns."""
    return all(map(is_number, [cell for line in read_head(path).filled[1:2] for cell in line.split("\t")] or [""]))


def _lists_sentences(path: Path) -> bool:
    """True if one JSON list is of tagged sentences; spaCy's are pairs."""
    items = listed_items(path)
    return items is None or any(isinstance(item, list) or is_sentence(item) for item in items)


def _has_words(path: Path) -> bool:
    """True if lines of JSON are sentences of words, or texts with spans; by the first that tells."""
    lines = read_json_lines(path, '{"words": […]} or {"text": "…"}', is_sentence)
    return next((is_one for _, is_one in lines if is_one is not None), False)


def _of_texts(path: Path, form: Format, names: list[str], keys: ColumnKeys) -> Strata:
    free = {name.casefold() for name in names if name not in keys.drop}
    headed = form in (CSV, PARQUET) or free & set(TEXT) or _numbers_below(path)  # TSV may have no header
    if headed and keys.labels is None and not free & set(LABELS) and len(free) > 2:
        some = ", ".join(names[:8])
        raise ConfigError(
            f"{path} is read as {form.name} with the columns {some}: which of them are labels? Pass labels=a,b, "
            "labels=tag_* or label_count=; rows are stratified by labels"
        )
    labels = Layout.labels if keys.labels is None or lists_names(keys.labels) else keys.labels
    separator = keys.separator or (SEPARATOR if lists_names(keys.labels) else None)
    found = read_texts(path, Layout(keys.text or Layout.text, labels, separator, drop=tuple(keys.drop)))
    inputs = [digest(*words_of(row.text, _WORDS)) for row in found.rows]
    return stratify_sets([row.labels or () for row in found.rows], f"read as {found.said}", "labels", inputs)
