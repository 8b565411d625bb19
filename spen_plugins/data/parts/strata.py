"""Strata and inputs by which the rows of a user's file are divided: labels, tags or roles in any format.

A file is read as a run reads it, by the readers of tables, texts, roles and tags; this module chooses the reader.
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
_WORD_KEYS = {"words", "tags", "scheme"}
"""Keys of files of sentences."""
FORMATS = (PARQUET, ARFF, JSON_LINES, LIBSVM, FASTTEXT, *SENTENCES, LIBMULTILABEL, TSV, CSV)


def read_strata(
    path: Path,
    keys: ColumnKeys,
    warn: Callable[[str], None] = lambda sentence: None,
    kind: Kind | None = None,
) -> Strata:
    """Returns the strata and inputs of a file's rows; a matrix without columns if they have no labels.

    `warn` is called with a run's messages about the columns of features; `kind` is the kind of a table's rows, None: it
    is recognised.
    """
    form = _recognise(path, kind == "texts" or keys.text is not None)
    names = _read_names(path, form)
    has_sentences, given_keys = _has_sentences(path, form, names), keys.settings().keys()
    if invalid_keys := given_keys - _WORD_KEYS if has_sentences else given_keys & _WORD_KEYS:
        reason = "no such column; tags= names the tags" if has_sentences else "no word tags; labels= names the labels"
        raise ConfigError(f"{min(invalid_keys)}=: {path} is read as {form.name}, which has {reason}")
    if has_sentences:
        return read_sentence_strata(path, form, keys)
    if kind is None and names:
        kind = "vectors" if _has_features(path, form, names, keys) else "texts"
    if form in (ARFF, LIBSVM) or kind == "vectors":
        return _stratify_vectors(path, form, names, keys, warn)
    if keys.label_count is not None:
        raise ConfigError(f"label_count=: {path} is read as {form.name}, where labels are not columns; use labels=")
    return _stratify_texts(path, form, names, keys)


def _recognise(path: Path, has_texts: bool) -> Format:
    """The format of a file; a table of texts may look like words and tags in columns."""
    if path.is_dir() and role_files(path):
        return ROLES
    formats = [form for form in FORMATS if not has_texts or form not in SENTENCES]
    form = PARQUET if is_sharded(path) else recognise(path, formats)
    if form is JSON_LIST and not _lists_sentences(path):
        head = read_head(path)
        raise DataError(path, head.first, head.found, one_of([form for form in FORMATS if form is not JSON_LIST]))
    return form


def _has_sentences(path: Path, form: Format, names: Sequence[str]) -> bool:
    if form is PARQUET:
        return not {*TEXT} & {*names} and bool({*LIST_WORDS} & {*names})
    return form in SENTENCES or (form is JSON_LINES and _has_words(path))


def _has_features(path: Path, form: Format, names: list[str], keys: ColumnKeys) -> bool:
    """True for a table of vectors: its label columns are given, and no other column has texts."""
    candidates = [name for name in names if name not in keys.drop]
    if keys.text is not None or isinstance(keys.labels, int) or named_as(candidates, TEXT):
        return False
    if keys.label_count is not None or keys.labels is None:
        return keys.label_count is not None
    if lists_names(keys.labels):
        return read_lines(locate(keys.labels))[0].strip() in names
    has_lists = isinstance(keys.labels, str) and keys.labels in names and holds_lists(path, form, keys.labels)
    columns = _read_other_columns(path, form, names, keys)
    if len(columns) == 1:
        return not has_lists and not any(" " in cell for cell in columns[0])
    return not any(map(_is_prose, columns))


def _stratify_vectors(
    path: Path, form: Format, names: list[str], keys: ColumnKeys, warn: Callable[[str], None]
) -> Strata:
    """Strata by label columns; the other columns are features, and a warning names a column that can't be one."""
    if keys.text is not None:
        raise ConfigError(f"text=: {path} is read as feature columns, without texts; remove the key")
    inputs: Sequence[Hashable] | None = None
    lists = None if lists_names(keys.labels) else list_column(path, keys.labels, keys.separator)
    try:
        table = read_table(path, unused=keys.drop, lists=lists)
        labels, _ = chosen_labels(str(path), table, keys.labels, keys.label_count, keys.drop)
        inputs = make_row_keys(Columns.from_table(table, labels, keys.drop).encode(table)[0])
    except DataError as error:
        if any(map(_is_prose, _read_other_columns(path, form, names, keys))):
            return _stratify_texts(path, form, names, keys)  # an error unless the label columns are clear
        warn(f"warning: this column can't be a feature: {error}")
        header_table = Table(str(path), [Attribute(name, "numeric") for name in names], format=form.name)
        unused = set(names) - set(_find_labels(path, header_table, keys)[0]) if names else ()
        table = read_table(path, unused=unused, lists=lists)
    columns, classes = _find_labels(path, table, keys)
    for name in table.keys:
        warn(left_out(name))
    gold = Columns({}, columns, classes, has_sets=table.sets is not None).gold(table)
    if all(row is None for row in gold):
        raise DataError(path, None, "no label in any row", "some labels (labels= names their column)")
    if any(row is None for row in gold):
        raise DataError(path, None, "rows without labels", "labels in every row, for stratification")
    matrix = np.zeros((len(gold), len(columns)), dtype=bool)
    for row, numbers in enumerate(gold):
        matrix[row, numbers] = True
    description = f"read as {table.format}, stratified by {len(columns)} label{'s' * (len(columns) != 1)}"
    return Strata(matrix, description, range(len(gold)) if inputs is None else inputs)


def _find_labels(path: Path, table: Table, keys: ColumnKeys) -> tuple[tuple[str, ...], str | None]:
    return find_label_columns(table, chosen_labels(str(path), table, keys.labels, keys.label_count, keys.drop)[0])


def _read_other_columns(path: Path, form: Format, names: Sequence[str], keys: ColumnKeys) -> list[list[str]]:
    """Cells in the first rows of each column that is neither a label nor unused, without empty cells."""
    if not names:
        return []
    labels = find_places(keys.labels or (), names)
    indices = [index for index, name in enumerate(names) if index not in labels and name not in (*keys.drop, *UNNAMED)]
    rows = file_records(path, form, (find_separator(read_head(path)) or ",") if form is CSV else "")
    sample = [cells for _, cells in islice(rows, 1, 1000)]
    return [
        [text for cells in sample if (text := str(cells[index] if index < len(cells) else "").strip())]
        for index in indices
    ]


def _is_prose(cells: Sequence[str]) -> bool:
    """True if most cells have several words, and many differ, unlike the cells of a category."""
    return 2 * sum(len(cell.split()) > 1 for cell in cells) > len(cells) and 4 * len({*cells}) > len(cells)


def _read_names(path: Path, form: Format) -> list[str]:
    if form is PARQUET:
        return column_names(shards(path)[0])
    if form is CSV:
        return read_header(read_head(path))
    return [name.strip() for name in read_head(path).filled[0].split("\t")] if form is TSV else []


def _has_numbers_below(path: Path) -> bool:
    """True if the second line has only numbers, separated by tabs, so that the first line names columns."""
    return all(map(is_number, [cell for line in read_head(path).filled[1:2] for cell in line.split("\t")] or [""]))


def _lists_sentences(path: Path) -> bool:
    """True if one JSON list contains tagged sentences; spaCy's are pairs."""
    items = listed_items(path)
    return items is None or any(isinstance(item, list) or is_sentence(item) for item in items)


def _has_words(path: Path) -> bool:
    """True if lines of JSON are sentences of words, or texts with spans; the first unambiguous line decides."""
    lines = read_json_lines(path, '{"words": […]} or {"text": "…"}', is_sentence)
    return next((has_words for _, has_words in lines if has_words is not None), False)


def _stratify_texts(path: Path, form: Format, names: list[str], keys: ColumnKeys) -> Strata:
    candidates = {name.casefold() for name in names if name not in keys.drop}
    has_header = form in (CSV, PARQUET) or candidates & set(TEXT) or _has_numbers_below(path)  # TSV may have no header
    if has_header and keys.labels is None and not candidates & set(LABELS) and len(candidates) > 2:
        column_list = ", ".join(names[:8])
        raise ConfigError(
            f"{path} is read as {form.name} with the columns {column_list}: which of them are labels? Pass labels=a,b, "
            "labels=tag_* or label_count=; rows are stratified by labels"
        )
    labels = Layout.labels if keys.labels is None or lists_names(keys.labels) else keys.labels
    separator = keys.separator or (SEPARATOR if lists_names(keys.labels) else None)
    text_file = read_texts(path, Layout(keys.text or Layout.text, labels, separator, drop=tuple(keys.drop)))
    inputs = [digest(*words_of(row.text, _WORDS)) for row in text_file.rows]
    return stratify_sets(
        [row.labels or () for row in text_file.rows], f"read as {text_file.description}", "labels", inputs
    )
