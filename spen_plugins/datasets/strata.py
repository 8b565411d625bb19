"""What the rows of a user's file are stratified by: their labels, tags or roles, in whatever format they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from spen_plugins.datasets.places import locate
from spen_plugins.datasets.stratification import label_matrix
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.readers.columns import read_columns
from spen_plugins.readers.conll_roles import is_conll_2012, is_words_or_props
from spen_plugins.readers.conllu import read_conllu
from spen_plugins.readers.conllu_roles import is_conllu
from spen_plugins.readers.csv_rows import CSV, header, separator_of
from spen_plugins.readers.csv_table import read_csv
from spen_plugins.readers.docbin import DOCBIN, read_docbin
from spen_plugins.readers.formats import ARFF, JSON_LINES, PARQUET, Format, Head, head_of, one_of
from spen_plugins.readers.jsonl import read_json_lines
from spen_plugins.readers.label_names import label_columns, listed_labels, named_labels, read_label_names
from spen_plugins.readers.labelled_texts import LIBMULTILABEL, TSV, read_texts
from spen_plugins.readers.libsvm import LIBSVM
from spen_plugins.readers.roles import read_roles
from spen_plugins.readers.rows import Attribute, Table
from spen_plugins.readers.table import Columns
from spen_plugins.readers.tables import read_table
from spen_plugins.readers.tsv import LABELS, TEXT, Layout, named_as

Strata = tuple[np.ndarray, str]
"""A boolean matrix `(rows, labels)`, and what was recognised, in words."""


def _has_brackets(head: Head) -> bool:
    rows = [line.split() for line in head.filled[:50] if not line.startswith("#")]
    return bool(rows) and all(len(row) > 2 and "*" in row[-1] for row in rows)


def _is_columns(head: Head) -> bool:
    """A blank line between lines of two or more cells."""
    lines = [line for line in head.lines if not line.startswith("#")]
    some = [line.split("\t") if "\t" in line else line.split() for line in lines if line.strip()]
    inside = "".join("x" if line.strip() else " " for line in lines).strip()
    return " " in inside and all(len(cells) > 1 for cells in some)


CONLLU = Format("CoNLL-U", "ten fields a token, divided by tabs", is_conllu)
ROLES = Format(
    "columns with roles",
    "CoNLL-2005 or CoNLL-2012, brackets in the last columns",
    lambda head: is_conll_2012(head) or is_words_or_props(head) or _has_brackets(head),
)
COLUMNS = Format("columns", "a word and its tag a line, a blank line between sentences", _is_columns)
FORMATS = (PARQUET, DOCBIN, ARFF, JSON_LINES, LIBSVM, CONLLU, ROLES, COLUMNS, LIBMULTILABEL, TSV, CSV)


def strata_of(path: Path, labels: str | Path | None = None, label_count: int | None = None) -> Strata:
    """What to stratify a file by; a matrix without columns if its rows have no labels.

    Raises:
        ConfigError: it must be said which columns are labels, or it may not.
        DataError: the file looks like none of the formats, or is not what its format asks for.
    """
    if labels is not None and label_count is not None:
        raise ConfigError("labels and label_count: found both; expected one of the two")
    head = head_of(path)
    form = next((form for form in FORMATS if form.fits(head)), None)
    if form is None:
        raise DataError(path, head.first, head.found, one_of(FORMATS))
    if form in (PARQUET, ARFF, LIBSVM) or (form is CSV and (labels is not None or label_count is not None)):
        matrix = _of_table(path, form, None if labels is None else str(labels), label_count)
        return matrix, f"read as {form.name}, stratified by {matrix.shape[1]} labels"
    if label_count is not None:
        raise ConfigError(f"label_count: {path} is read as {form.name}, where labels are no columns to count")
    if form in (LIBMULTILABEL, TSV, CSV) or (form is JSON_LINES and not _has_words(path)):
        return _of_texts(path, head, form, labels)
    return _of_sentences(path, form, None if labels is None else str(labels))


def _of_table(path: Path, form: Format, labels: str | None, count: int | None) -> np.ndarray:
    table = _labels_alone(path, labels, count) if form is CSV else read_table(path)
    beside = path.with_suffix(".xml")
    if labels is None and count is None and form is ARFF and beside.exists():
        labels = str(beside)
    if labels is None:
        names, classes = label_columns(table, count)
    else:
        names, classes = label_columns(table, _named(table, labels))
    gold = Columns({}, names, classes, apart=table.sets is not None).gold(table)
    if any(row is None for row in gold):
        raise DataError(path, None, "rows without labels", "labels in every row, to stratify by")
    matrix = np.zeros((len(gold), len(names)), dtype=bool)
    for row, numbers in enumerate(gold):
        matrix[row, numbers] = True
    return matrix


def _named(table: Table, labels: str) -> list[str]:
    if labels.endswith(".xml"):
        return read_label_names(locate(labels), table)
    return listed_labels(locate(labels), table) if locate(labels).is_file() else named_labels(table, labels)


def _labels_alone(path: Path, labels: str | None, count: int | None) -> Table:
    """A CSV file whose other columns, of any kind, are not looked at."""
    names = header(path, separator_of(head_of(path)) or ",")
    if count is not None:
        wanted: Collection[str] = names[-count:]
    else:
        assert labels is not None
        wanted = _named(Table(str(path), [Attribute(name, "numeric") for name in names]), labels)
    return read_csv(path, unused=set(names) - set(wanted))


def _has_words(path: Path) -> bool:
    """Whether the first line of JSON is a sentence of words."""
    _, first = next(iter(read_json_lines(path, '{"words": […]} or {"text": "…"}', lambda value: value)))
    return isinstance(first, dict) and "words" in first


def _of_texts(path: Path, head: Head, form: Format, labels: str | Path | None) -> Strata:
    if form is CSV:
        names = [name.casefold() for name in header(path, separator_of(head) or ",")]
        if not set(names) & set(LABELS) and (len(names) > 2 or set(names) & set(TEXT)):
            some = ", ".join(names[:8])
            raise ConfigError(
                f"{path} is read as CSV with the columns {some}: which are labels? Give --labels a,b or --labels tag_* "
                "or --label-count; rows are stratified by them"
            )
    layout = Layout() if labels is None else Layout(labels=str(labels))
    if form in (TSV, CSV):
        names = header(path, separator_of(head) or ",") if form is CSV else head.lines[0].split("\t")
        wanted = (str(labels).casefold(),) if labels is not None else LABELS
        if named_as(names, wanted) and not named_as(names, TEXT):  # the rows count, whichever column their text is
            layout = replace(layout, text=next(name for name in names if name.casefold() not in wanted))
    found = read_texts(path, layout)
    matrix = label_matrix([row.labels or () for row in found.rows])
    return matrix, f"read as {found.said}, stratified by {matrix.shape[1]} labels"


def _of_sentences(path: Path, form: Format, tags: str | None) -> Strata:
    if form is ROLES or (form in (CONLLU, JSON_LINES) and tags is None and _has_roles(path)):
        found = read_roles(path, gold=False)
        roles = [{tag for p in s.propositions for tag in p.tags or ()} for s in found.sentences]
        return _of_sets(roles, f"read as {found.format}", "roles")
    if form is JSON_LINES:
        kept = read_json_lines(path, '{"words": […], "tags": […]}', _json_tags)
        return _of_sets([some for _, some in kept], "read as JSONL", "tags")
    if form is COLUMNS:
        try:
            sentences = read_columns(path, tags=-1 if tags is None else int(tags))
        except ValueError:
            raise ConfigError(
                f"labels: found {tags!r}; {path} is read as columns, which go by number, from 0"
            ) from None
    else:
        read = read_conllu if form is CONLLU else read_docbin
        sentences = read(path, gold=False) if tags is None else read(path, tags=tags, gold=False)
    return _of_sets([set(s.tags or ()) for s in sentences], f"read as {form.name}", "tags")


def _has_roles(path: Path) -> bool:
    try:
        return any(sentence.propositions for sentence in read_roles(path, gold=False).sentences)
    except DataError:
        return False


def _json_tags(item: object) -> set[str]:
    tags = item.get("tags") if isinstance(item, dict) else None
    spans = item.get("entities") if isinstance(item, dict) else None
    if isinstance(tags, list):
        return set(map(str, tags))
    return {str(span.get("type")) for span in spans or () if isinstance(span, dict)}


def _of_sets(sets: list[set[str]], said: str, what: str) -> Strata:
    matrix = label_matrix(sets)
    how = f"stratified by {matrix.shape[1]} {what}" if matrix.shape[1] else f"not stratified, as it has no {what}"
    return matrix, f"{said}, {how}"
