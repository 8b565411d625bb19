"""Strata and inputs of files of sentences: by tags, roles, fields or constituents.

Fields are tagged inline, in one text per line: <author> A. Writer. </author> <title> A Title. </title>. Constituents
are in brackets, in one tree per line: (S (NP (NNP Anna)) (VP (VBZ sleeps))).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spen_plugins.data.formats import JSON_LINES, Format, Head
from spen_plugins.data.parts.stratification import label_matrix
from spen_plugins.data.sentences.conll_roles import is_conll_2012, is_words_or_props
from spen_plugins.data.sentences.conllu_roles import is_conll_2009
from spen_plugins.data.sentences.docbin import DOCBIN
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.data.sentences.tagged import CONLLU, JSON_LIST, TagPlaces, read_tagged
from spen_plugins.data.sentences.tagged_rows import TOKEN_ROWS
from spen_plugins.data.tables.label_columns import ColumnKeys
from spen_plugins.data.text import read_lines
from spen_plugins.errors import DataError

_FIELD = re.compile(r"<\s*([A-Za-z][\w-]*)\s*>(.*?)<\s*/\s*\1\s*>")
_TAG = re.compile(r"<\s*/?\s*[A-Za-z][\w-]*\s*/?>")
_WORD = re.compile(r"\w+|[^\w\s]")
_LEAF = re.compile(r"\(\s*(?!-NONE-)[^\s()]+\s+([^\s()]+)\s*\)")
_NODE = re.compile(r"\(\s*([^\s()=-]+)[^\s()]*\s*(?=\()")


def read_fields(path: Path) -> list[tuple[tuple[str, ...], set[str]]]:
    """The words and marks of punctuation of each text of a file, and the names of its fields; lines without a word are
    skipped."""
    rows = [(tuple(_split_words(line)), _FIELD.findall(line)) for line in read_lines(path)]
    return [(words, {name for name, text in fields if _split_words(text)}) for words, fields in rows if words]


def _split_words(text: str) -> list[str]:
    return _WORD.findall(_TAG.sub(" ", text))


def _begins_with_field(head: Head) -> bool:
    matches = [re.match(r"\s*<\s*([A-Za-z][\w-]*)\s*>.*<\s*/\s*\1\s*>", line) for line in head.filled[:50]]
    return bool(matches) and all(matches)


INLINE = Format(
    "tagged fields", "one text per line, <author> A. Writer. </author> <title> A Title. </title>", _begins_with_field
)


def _is_tree(line: str) -> bool:
    line = line.strip()
    return line[0] == "(" and line[-1] == ")" and _LEAF.search(line) is not None


TREES = Format(
    "bracketed trees",
    "one tree per line, (S (NP (NNP Anna)) (VP (VBZ sleeps)))",
    lambda head: bool(head.filled) and all(map(_is_tree, head.filled[:50])),
)


class Strata(NamedTuple):
    """Strata of a file's rows, `(rows, labels)` boolean; a description of its format; and a key of each row's input,
    which equal inputs have in common."""

    labels: np.ndarray
    description: str
    inputs: Sequence[Hashable]


def _has_brackets(head: Head) -> bool:
    rows = [line.split() for line in head.filled[:50] if not line.startswith("#")]
    return bool(rows) and all(len(row) > 2 and "*" in row[-1] for row in rows)


def _is_columns(head: Head) -> bool:
    """True for lines of two or more cells with a blank line among them, unless most first cells have several words."""
    lines = [line for line in head.lines if not line.startswith("#")]
    rows = [line.split("\t") if "\t" in line else line.split() for line in lines if line.strip()]
    line_pattern = "".join("x" if line.strip() else " " for line in lines).strip()
    text_count = sum(len(cells[0].split()) > 1 for cells in rows)
    return " " in line_pattern and all(len(cells) > 1 for cells in rows) and 2 * text_count <= len(rows)


ROLES = Format(
    "columns with roles",
    "CoNLL-2005, CoNLL-2009 or CoNLL-2012",
    lambda head: is_conll_2009(head) or is_conll_2012(head) or is_words_or_props(head) or _has_brackets(head),
)
_COLUMNS = Format("columns", "one word and its tag per line, a blank line between sentences", _is_columns)
SENTENCES = (JSON_LIST, DOCBIN, TOKEN_ROWS, CONLLU, INLINE, TREES, ROLES, _COLUMNS)


def read_sentence_strata(path: Path, form: Format, keys: ColumnKeys) -> Strata:
    """The strata and inputs of a file's sentences; errors are those of its reader."""
    if form is INLINE:
        rows = read_fields(path)
        return stratify_sets([sets for _, sets in rows], f"read as {form.name}", "fields", [words for words, _ in rows])
    if form is TREES:
        lines = [line for line in read_lines(path) if line.strip()]
        labels = [set(_NODE.findall(line)) for line in lines]
        return stratify_sets(labels, f"read as {form.name}", "labels", [tuple(_LEAF.findall(line)) for line in lines])
    may_have_roles = form is ROLES or (keys.scheme is None and form in (CONLLU, JSON_LINES))
    role_strata = _read_roles(path, form) if keys.tags is None and keys.words is None and may_have_roles else None
    return _read_tags(path, keys) if role_strata is None else role_strata


def _read_roles(path: Path, form: Format) -> Strata | None:
    """Strata by roles; None if a file that may have tags in their place has none."""
    try:
        roles = read_roles(path, gold=False)
    except DataError:
        if form is ROLES:
            raise
        return None
    if form is not ROLES and not any(sentence.propositions for sentence in roles.sentences):
        return None
    sets = [{tag for p in sentence.propositions for tag in p.tags or ()} for sentence in roles.sentences]
    return stratify_sets(sets, f"read as {roles.format}", "roles", [sentence.words for sentence in roles.sentences])


def _read_tags(path: Path, keys: ColumnKeys) -> Strata:
    """Strata by tags; if a format has both tags and entities, tags take precedence."""
    schemes = ("bio",) if keys.tags == "ents" else ("none", "bio")
    for scheme in schemes if keys.scheme is None else (keys.scheme,):
        tagged = read_tagged(TagPlaces(words=keys.words, tags=keys.tags, scheme=scheme), path, gold=False)
        if any(sentence.tags for sentence in tagged.sentences):
            break
    inputs = [sentence.words for sentence in tagged.sentences]
    return stratify_sets([s.tags or () for s in tagged.sentences], f"read as {tagged.format}", "tags", inputs)


def stratify_sets(sets: Sequence[Collection[str]], description: str, noun: str, inputs: Sequence[Hashable]) -> Strata:
    """Strata by sets of names."""
    matrix = label_matrix(sets)
    names = matrix.shape[1]
    counted_noun = noun.removesuffix("s") if names == 1 else noun
    stratification = f"stratified by {names} {counted_noun}" if names else f"not stratified, as it has no {noun}"
    return Strata(matrix, f"{description}, {stratification}", inputs)
