"""Semantic roles of CoNLL-2012 (`gold_conll`) and of CoNLL-2005 in two files, words and props.

    wb/a2e/00/a2e_0001  0  1  left  VBD  (VP*)  leave 01  1  -  *  (V*)  -

Document, part, token, word, part of speech, parse, lemma, frame, sense, speaker, name, a column of brackets for each
predicate of the sentence, coreference. Other releases of PropBank leave out some of these, but all have word, lemma and
brackets. CoNLL-2005 has a file with one word per line, and beside it a file with verbs (`-` elsewhere) and brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from spen_plugins.data.formats import Head
from spen_plugins.data.schemes import write_span_tags
from spen_plugins.data.sentences.srl import (
    UNMARKED,
    Block,
    Layout,
    Proposition,
    Sentence,
    read_brackets,
    read_spans,
    split_blocks,
)
from spen_plugins.data.text import read_lines
from spen_plugins.errors import DataError

TOKEN, WORD, POS, LEMMA, FRAME = 2, 3, 4, 6, 7  # columns of CoNLL-2012, from 0
_DOCUMENT_START, _VERB = "#begin document", re.compile(r"\(V[*)]")
_BRACKETS = re.compile(r"\(?[^()*\s]*\*\)?")


def is_conll_2012(head: Head) -> bool:
    """True if a line starts with `#begin document`, or the third column counts each sentence's tokens from 0."""
    if any(line.startswith(_DOCUMENT_START) for line in head.lines):
        return True
    number, count = 0, 0
    for line in head.lines:
        cells = line.split()
        if not cells or line.startswith("#"):
            number = 0
            continue
        if len(cells) <= FRAME or cells[TOKEN] != str(number):
            return False
        number, count = number + 1, count + 1
    return count > 0


def read_conll_2012(path: Path, gold: bool = True) -> list[Sentence]:
    """All sentences of a file of CoNLL-2012.

    A word in nested arguments belongs to the inner argument, and the outer argument's later piece is a C-X. Predicates
    are the words with `(V*` in a column of brackets; in a file without brackets, the words with a frame.
    """
    lines = ["" if line.startswith(("#begin", "#end")) else line for line in read_lines(path)]
    blocks = list(split_blocks(lines))
    if not blocks:
        raise DataError(path, None, "comments or blank lines only", "sentences, one token per line")
    for block in blocks:
        width = len(block.rows[0])
        for number, row in enumerate(block.rows, block.first):
            if len(row) != width or width <= FRAME:
                expected = f"{max(width, FRAME + 1)}, as in the sentence's first line"
                raise DataError(path, number, f"{len(row)} columns", expected)
    trailing = int(not any("*" in row[-1] for block in blocks for row in block.rows if _count_verbs(row)))
    if not any(_count_verbs(row) for block in blocks for row in block.rows):
        if gold:
            raise DataError(path, None, "no (V*) in any line", "a column of brackets for each predicate")
        return [_make_sentence(path, block, None, trailing) for block in blocks]
    leading = min(len(block.rows[0]) - sum(map(_count_verbs, block.rows)) for block in blocks) - trailing
    return [_make_sentence(path, block, leading, trailing) for block in blocks]


def _count_verbs(row: Sequence[str]) -> int:
    """The number of bracket columns with their verb in this row."""
    return sum(bool(_VERB.search(cell)) for cell in row[FRAME + 1 :])


def _make_sentence(path: Path, block: Block, leading: int | None, trailing: int) -> Sentence:
    """A sentence; `leading` columns are before the brackets (None: there are no brackets), `trailing` after them."""
    rows = block.rows
    words = tuple(row[WORD] for row in rows)
    if leading is None:
        predicates = [i for i, row in enumerate(rows) if row[FRAME] not in UNMARKED]
        return Sentence(words, tuple(_make_proposition(rows[i], i, None) for i in predicates), block.name)
    propositions = []
    for column in range(leading, len(rows[0]) - trailing):
        predicate = next((i for i, row in enumerate(rows) if _VERB.search(row[column])), None)
        if predicate is None:
            problem = f"no (V*) in column {column + 1}"
            raise DataError(path, block.first, problem, "(V*) at the predicate in each column of brackets")
        tags = write_span_tags(len(rows), predicate, read_spans(path, block, column, nests=True))
        propositions.append(_make_proposition(rows[predicate], predicate, tags))
    propositions.sort(key=lambda proposition: proposition.predicate)
    return Sentence(words, tuple(propositions), block.name)


def _make_proposition(row: Sequence[str], predicate: int, tags: tuple[str, ...] | None) -> Proposition:
    """A proposition with its roleset: `leave.01` for the frame 01, or the frame if it has a dot."""
    lemma, frame = row[LEMMA], row[FRAME]
    has_frame = frame not in UNMARKED and "*" not in frame and "(" not in frame
    roleset = None if not has_frame else frame if "." in frame else f"{lemma}.{frame}"
    return Proposition(predicate, lemma, tags, roleset, row[POS])


def is_words_or_props(head: Head) -> bool:
    """True if each line has a verb or `-`, and brackets, but no word; or one word, and there is a file of props."""
    rows = [line.split() for line in head.filled if not line.startswith("#") or "\t" in line]
    if not _are_props(rows):
        return bool(rows) and all(len(cells) == 1 for cells in rows) and beside(head.path, "words", "props") is not None
    return all(_BRACKETS.fullmatch(cell) for cells in rows for cell in cells[1:])


def beside(path: Path, kind: str, other_kind: str) -> Path | None:
    """CoNLL-2005's other file: `train.props` for `train.words`, `props/train.24.props` for `words/train.24.words`."""
    name = path.name.replace(kind, other_kind) if kind in path.name else f"{path.stem}.{other_kind}"
    folders = [path.parent, *([path.parent.with_name(other_kind)] if path.parent.name == kind else [])]
    return next((place for folder in folders if (place := folder / name) != path and place.is_file()), None)


def read_props(path: Path, gold: bool = True) -> tuple[list[Sentence], str]:
    """All sentences of CoNLL-2005's words and props, given either file; and a description of the format."""
    words = beside(path, "props", "words")
    props = path
    if words is None or not _is_props(path):
        words, props = path, beside(path, "words", "props")
    if props is None or _is_props(words):
        expected = f"the words in {path.with_suffix('.words').name} beside it, or one file with the words first"
        raise DataError(path, None, "verbs and brackets without words (CoNLL-2005's props)", expected)
    blocks = list(split_blocks(list(_join_columns(words, props))))
    name = f"CoNLL-2005: words of {words.name}, props of {props.name}"
    return read_brackets(props, blocks, Layout(0, 1, 2), gold), name


def _is_props(path: Path) -> bool:
    return _are_props([line.split() for line in read_lines(path) if line.strip()])


def _are_props(rows: Sequence[Sequence[str]]) -> bool:
    """True if half the lines or more begin with `-`, as most words are not verbs; a word may be `-`, too."""
    return sum(cells[0] in UNMARKED for cells in rows) * 2 >= len(rows) > 0


def _join_columns(words: Path, props: Path) -> Iterator[str]:
    for number, (word, prop) in enumerate(zip_longest(read_lines(words), read_lines(props), fillvalue=""), 1):
        word_cells, prop_cells = word.split(), prop.split()
        if bool(word_cells) != bool(prop_cells):
            file, other_file = (words, props) if word_cells else (props, words)
            problem = f"{' '.join(word_cells or prop_cells):.60}, but no token in this line of {other_file.name}"
            raise DataError(file, number, problem, "the same tokens in both files, line by line")
        yield "\t".join([*word_cells[:1], *prop_cells])
