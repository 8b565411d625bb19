"""Semantic roles of CoNLL-2012 (`gold_conll`) and of CoNLL-2005 in two files, words and props.

    wb/a2e/00/a2e_0001  0  1  left  VBD  (VP*)  leave 01  1  -  *  (V*)  -

Document, part, token, word, part of speech, parse, lemma, frame, sense, speaker, name, a column of brackets for each
predicate of the sentence, coreference. Other releases of PropBank leave out some of these; word, lemma and brackets are
found in all of them. Of CoNLL-2005, a file has a word a line, and one beside it verbs (`-` elsewhere) and brackets.
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
_BEGINS, _VERB = "#begin document", re.compile(r"\(V[*)]")
_BRACKETS = re.compile(r"\(?[^()*\s]*\*\)?")


def is_conll_2012(head: Head) -> bool:
    """True if the file says so, or its third column counts the tokens of each sentence from 0."""
    if any(line.startswith(_BEGINS) for line in head.lines):
        return True
    number, rows = 0, 0
    for line in head.lines:
        cells = line.split()
        if not cells or line.startswith("#"):
            number = 0
            continue
        if len(cells) <= FRAME or cells[TOKEN] != str(number):
            return False
        number, rows = number + 1, rows + 1
    return rows > 0


def read_conll_2012(path: Path, gold: bool = True) -> list[Sentence]:
    """All sentences of a file of CoNLL-2012.

    A word in nested arguments belongs to the inner one, and the outer one's later piece is a C-X. Predicates are the
    words with `(V*` in a column of brackets; in a file without brackets those with a frame.
    """
    lines = ["" if line.startswith(("#begin", "#end")) else line for line in read_lines(path)]
    blocks = list(split_blocks(lines))
    if not blocks:
        raise DataError(path, None, "comments or blank lines only", "sentences, one token per line")
    for block in blocks:
        width = len(block.rows[0])
        for number, row in enumerate(block.rows, block.first):
            if len(row) != width or width <= FRAME:
                wanted = f"{max(width, FRAME + 1)}, as in the sentence's first line"
                raise DataError(path, number, f"{len(row)} columns", wanted)
    after = int(not any("*" in row[-1] for block in blocks for row in block.rows if _verbs(row)))
    if not any(_verbs(row) for block in blocks for row in block.rows):
        if gold:
            raise DataError(path, None, "no (V*) in any line", "a column of brackets for each predicate")
        return [_sentence(path, block, None, after) for block in blocks]
    fixed = min(len(block.rows[0]) - sum(map(_verbs, block.rows)) for block in blocks) - after
    return [_sentence(path, block, fixed, after) for block in blocks]


def _verbs(row: Sequence[str]) -> int:
    """The number of columns of brackets that have their verb in this row."""
    return sum(bool(_VERB.search(cell)) for cell in row[FRAME + 1 :])


def _sentence(path: Path, block: Block, fixed: int | None, after: int) -> Sentence:
    """A sentence; `fixed` is the number of columns before the brackets, None without brackets."""
    rows = block.rows
    words = tuple(row[WORD] for row in rows)
    if fixed is None:
        marked = [i for i, row in enumerate(rows) if row[FRAME] not in UNMARKED]
        return Sentence(words, tuple(_proposition(rows[i], i, None) for i in marked), block.name)
    propositions = []
    for column in range(fixed, len(rows[0]) - after):
        predicate = next((i for i, row in enumerate(rows) if _VERB.search(row[column])), None)
        if predicate is None:
            found = f"no (V*) in column {column + 1}"
            raise DataError(path, block.first, found, "(V*) at the predicate in each column of brackets")
        tags = write_span_tags(len(rows), predicate, read_spans(path, block, column, nests=True))
        propositions.append(_proposition(rows[predicate], predicate, tags))
    propositions.sort(key=lambda proposition: proposition.predicate)
    return Sentence(words, tuple(propositions), block.name)


def _proposition(row: Sequence[str], predicate: int, tags: tuple[str, ...] | None) -> Proposition:
    """With its roleset: `leave.01` of the frame 01, or as it is written there."""
    lemma, frame = row[LEMMA], row[FRAME]
    known = frame not in UNMARKED and "*" not in frame and "(" not in frame
    roleset = None if not known else frame if "." in frame else f"{lemma}.{frame}"
    return Proposition(predicate, lemma, tags, roleset, row[POS])


def is_words_or_props(head: Head) -> bool:
    """True if the lines have a verb or `-` and brackets, and no word; or a word alone, and props are beside."""
    rows = [line.split() for line in head.filled if not line.startswith("#") or "\t" in line]
    if not _are_verbs(rows):
        return bool(rows) and all(len(cells) == 1 for cells in rows) and beside(head.path, "words", "props") is not None
    return all(_BRACKETS.fullmatch(cell) for cells in rows for cell in cells[1:])


def beside(path: Path, ours: str, theirs: str) -> Path | None:
    """CoNLL-2005's other file: `train.props` of `train.words`, `props/train.24.props` of `words/train.24.words`."""
    name = path.name.replace(ours, theirs) if ours in path.name else f"{path.stem}.{theirs}"
    folders = [path.parent, *([path.parent.with_name(theirs)] if path.parent.name == ours else [])]
    return next((place for folder in folders if (place := folder / name) != path and place.is_file()), None)


def read_props(path: Path, gold: bool = True) -> tuple[list[Sentence], str]:
    """All sentences of CoNLL-2005's words and props, given either file; and what was recognised."""
    words = beside(path, "props", "words")
    props = path
    if words is None or not _is_verbs(path):
        words, props = path, beside(path, "words", "props")
    if props is None or _is_verbs(words):
        wanted = f"the words in {path.with_suffix('.words').name} beside it, or one file with the words first"
        raise DataError(path, None, "verbs and brackets without words (CoNLL-2005's props)", wanted)
    blocks = list(split_blocks(list(_pasted(words, props))))
    name = f"CoNLL-2005: words of {words.name}, props of {props.name}"
    return read_brackets(props, blocks, Layout(0, 1, 2), gold), name


def _is_verbs(path: Path) -> bool:
    return _are_verbs([line.split() for line in read_lines(path) if line.strip()])


def _are_verbs(rows: Sequence[Sequence[str]]) -> bool:
    """True if most lines begin with `-`, as most words are no verbs; a word may be `-`, too."""
    return sum(cells[0] in UNMARKED for cells in rows) * 2 >= len(rows) > 0


def _pasted(words: Path, props: Path) -> Iterator[str]:
    for number, (word, prop) in enumerate(zip_longest(read_lines(words), read_lines(props), fillvalue=""), 1):
        one, other = word.split(), prop.split()
        if bool(one) != bool(other):
            here, there = (words, props) if one else (props, words)
            found = f"{' '.join(one or other):.60}, but no token in this line of {there.name}"
            raise DataError(here, number, found, "the same tokens in both files, line by line")
        yield "\t".join([*one[:1], *other])
