"""Reads span SRL in columns, in the format of CoNLL-2005 and the PropBank releases.

One token per line, a blank line between sentences, cells separated by tabs or spaces. After some fixed columns, each
predicate of the sentence has a column of brackets, in the predicates' order:

    # sent_id = example-1
    0   Forces   NNS   *   -      -         (ARG0*)
    1   killed   VBD   *   kill   kill.01   (V*)
    2   him      PRP   *   -      -         (ARG1*)

Lines before a sentence's first token that start with `#` and hold no tab are comments. If cells are separated by
spaces, `#` may be that token: then a line is a comment if it reads `# key = value` or has another number of cells.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from spen_plugins.data.schemes import Span, write_tags
from spen_plugins.data.text import read_lines
from spen_plugins.errors import DataError

UNMARKED = frozenset(("-", "_"))
AUXILIARIES = frozenset(
    ("be.03", "become.03", "do.01", "get.24", "go.04", "have.01", "have.02", "use.03"),
)
"""PropBank's rolesets of auxiliaries and modals, which have no arguments."""
_CELL = re.compile(r"(?P<roles>(?:\([^()*\s]+)*)\*(?P<closed>\)*)")
_NAMED = re.compile(r"#\s*sent_id\s*=\s*(.*)")
SETTING = re.compile(r"#\s*[A-Za-z][\w.:-]*(\s+[\w.:-]+)?\s*=")
"""A comment in a file whose cells are separated by blanks."""


@dataclass(frozen=True, slots=True)
class Proposition:
    """A predicate and its arguments.

    Args:
        predicate: the predicate's token, from 0.
        lemma: the content of the predicate's column.
        tags: one BIO tag per token, `B-V` at the predicate; None if the file has no brackets.
        roleset: the predicate's sense, `kill.01`, if the file has it.
        pos: the predicate's part of speech, in the file's tags, if it has them.
    """

    predicate: int
    lemma: str | None
    tags: tuple[str, ...] | None
    roleset: str | None = None
    pos: str | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words with the propositions over them."""

    words: tuple[str, ...]
    propositions: tuple[Proposition, ...]
    name: str | None = None

    def without_auxiliaries(self) -> Sentence:
        """The sentence without the propositions of `AUXILIARIES`."""
        propositions = tuple(p for p in self.propositions if p.roleset not in AUXILIARIES)
        return self if len(propositions) == len(self.propositions) else Sentence(self.words, propositions, self.name)


@dataclass(frozen=True, slots=True)
class Layout:
    """Column numbers, from 0; all columns from `brackets` on are bracket columns."""

    word: int
    predicate: int
    brackets: int
    roleset: int | None = None
    pos: int | None = None


LAYOUTS = {"propbank": Layout(1, 4, 6, roleset=5, pos=2), "word-predicate": Layout(0, 1, 2)}
"""Layouts by name: `propbank` is index, word, POS, unused, lemma, roleset, brackets ..."""
_EXPECTED = (
    "a word, a column that marks predicates ('-' elsewhere), then one column of brackets per predicate; or set the "
    f"layout: {', '.join(LAYOUTS)}; or a file of CoNLL-2012, CoNLL-U with roles or JSONL"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A sentence's lines as cells; `first` is the number of its first line."""

    first: int
    rows: list[list[str]]
    name: str | None = None


def read_srl(path: Path, layout: str | Layout = "auto", gold: bool = True) -> list[Sentence]:
    """All sentences of a file; without gold, a sentence may have no brackets at all.

    In the layout "auto", the last columns are brackets, the column before them has the predicates, and the first has
    the words, or the second if the first counts tokens.
    """
    return read_brackets(path, list(split_blocks(read_lines(path))), layout, gold)


def read_brackets(path: Path, blocks: list[Block], layout: str | Layout, gold: bool) -> list[Sentence]:
    """`read_srl` for blocks of lines that were already read."""
    if not blocks:
        raise DataError(path, None, "comments or blank lines only", "sentences, one token per line")
    columns = _find_layout(path, blocks, layout)
    return [_make_sentence(path, block, columns, gold) for block in blocks]


def split_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Sentences' lines as cells."""
    name, start = None, 0
    for end in [*(i for i, line in enumerate(lines) if not line.strip()), len(lines)]:
        first = start + _count_comments(lines[start:end])
        for line in lines[start:first]:
            match = _NAMED.match(line)
            name = match.group(1).strip() if match else name
        if first < end:
            rows = [line.rstrip().split("\t") if "\t" in line else line.split() for line in lines[first:end]]
            yield Block(first + 1, rows, name)
            name = None
        start = end + 1


def _count_comments(block: Sequence[str]) -> int:
    """Number of comments at the start of a block; `#` may also be a sentence's first word."""
    count = next((i for i, line in enumerate(block) if line[0] != "#" or "\t" in line), len(block))
    tokens = block[count:]
    if not count or not tokens or any("\t" in line for line in tokens):
        return count
    (width, _), *_ = Counter(len(line.split()) for line in tokens).most_common(1)
    return next(
        (i for i, line in enumerate(block[:count]) if len(line.split()) == width and not SETTING.match(line)), count
    )


def _find_layout(path: Path, blocks: list[Block], layout: str | Layout) -> Layout:
    if isinstance(layout, Layout):
        return layout
    if layout in LAYOUTS:
        return LAYOUTS[layout]
    votes = Counter(_count_fixed(row) for block in blocks[:200] for row in block.rows)
    fixed, _ = votes.most_common(1)[0]
    counts_tokens = all(row[0].isdigit() for row in blocks[0].rows)
    word = 1 if counts_tokens and fixed > 2 else 0
    if fixed - 1 <= word:
        line = blocks[0].first
        found = f"{len(blocks[0].rows[0])} columns, {fixed} before the first column of brackets"
        raise DataError(path, line, found, _EXPECTED)
    detected_layout = LAYOUTS["propbank"] if word == 1 and fixed == 6 else Layout(word, fixed - 1, fixed)
    rows = [row for block in blocks for row in block.rows if len(row) > detected_layout.predicate]
    if all(row[detected_layout.predicate] not in UNMARKED for row in rows):
        raise DataError(
            path, blocks[0].first, f"no '-' in the column of predicates, {detected_layout.predicate + 1}", _EXPECTED
        )
    return detected_layout


def _count_fixed(row: list[str]) -> int:
    """Number of columns before the brackets, judged by one line."""
    n = len(row)
    while n and "*" in row[n - 1] and (row[n - 1] == "*" or row[n - 1][0] == "(" or row[n - 1][-1] == ")"):
        n -= 1
    return n


def _make_sentence(path: Path, block: Block, columns: Layout, gold: bool) -> Sentence:
    rows = block.rows
    (width, _), *_ = Counter(len(row) for row in rows).most_common(1)
    for number, row in enumerate(rows, block.first):
        if len(row) != width or width < columns.brackets:
            is_wide = width >= columns.brackets
            expected = f"{width}, as in the rest of the sentence" if is_wide else f"at least {columns.brackets}"
            raise DataError(path, number, f"{len(row)} columns", expected)
    predicates = [i for i, row in enumerate(rows) if row[columns.predicate] not in UNMARKED]
    count = width - columns.brackets
    if count != len(predicates) and (gold or count):
        found = f"{len(predicates)} predicates marked in column {columns.predicate + 1} and {count} columns of brackets"
        raise DataError(path, block.first, found, "one column of brackets for each predicate")
    propositions = []
    for k, predicate in enumerate(predicates):
        tags = _read_tags(path, block, columns.brackets + k, predicate) if count else None
        row = rows[predicate]
        roleset_and_pos = (
            None if i is None or row[i] in (*UNMARKED, "*") else row[i] for i in (columns.roleset, columns.pos)
        )
        propositions.append(Proposition(predicate, row[columns.predicate], tags, *roleset_and_pos))
    return Sentence(tuple(row[columns.word] for row in rows), tuple(propositions), block.name)


def _read_tags(path: Path, block: Block, column: int, predicate: int) -> tuple[str, ...]:
    """BIO tags of one column of brackets."""
    spans = [Span(role, first, last + 1) for role, first, last in read_spans(path, block, column, nests=False)]
    tags = write_tags(spans, len(block.rows), "bio")
    if tags[predicate][2:] not in ("V", "C-V"):
        problem = f"{block.rows[predicate][column]!r} in column {column + 1} at its predicate"
        raise DataError(path, block.first + predicate, problem, "(V*) at the predicate")
    return tuple(tags)


def read_spans(path: Path, block: Block, column: int, nests: bool) -> list[tuple[str, int, int]]:
    """Role, first and last word of each argument of a column of brackets; with `nests`, arguments may be nested."""
    place, open_spans, spans = f"in column {column + 1}", [], []
    for i, row in enumerate(block.rows):
        cell, number = _CELL.fullmatch(row[column]), block.first + i
        if cell is None or not (nests or max(cell["roles"].count("("), len(cell["closed"])) < 2):
            expected = "*, (ROLE*, *) or (ROLE*)" + "; arguments don't nest" * (not nests)
            raise DataError(path, number, f"{row[column]!r} {place}", expected)
        if cell["roles"] and open_spans and not nests:
            role, first = open_spans[0]
            conflict = f"{row[column]!r} {place} inside ({role}* of line {block.first + first}"
            raise DataError(path, number, conflict, f"*) closing ({role}* first")
        open_spans += [(role, i) for role in cell["roles"].split("(")[1:]]
        for _ in cell["closed"]:
            if not open_spans:
                raise DataError(path, number, f"{row[column]!r} {place} with no bracket open", "* outside an argument")
            role, first = open_spans.pop()
            spans.append((role, first, i))
    if open_spans:
        role, first = open_spans[-1]
        problem = f"({role}* {place} not closed by the end of the sentence"
        raise DataError(path, block.first + first, problem, f"*) closing ({role}*")
    return spans


def write_brackets(tags: Sequence[str]) -> list[str]:
    """BIO tags as a column of brackets."""
    openings = (f"({tag[2:]}" if tag.startswith("B-") else "" for tag in tags)
    closings = (tag != "O" and not next_tag.startswith("I-") for tag, next_tag in pairwise([*tags, "O"]))
    return [f"{opening}*{')' * is_last}" for opening, is_last in zip(openings, closings, strict=True)]


KINDS = ("verbs", "nouns", "adjectives")
_LETTERS = {"V": "verbs", "M": "verbs", "A": "verbs", "N": "nouns", "J": "adjectives"}


def kind_of(pos: str | None) -> str | None:
    """One of `KINDS`, for a tag of the Penn Treebank or of Universal Dependencies; None for other tags."""
    if not pos or pos in ("ADV", "ADP"):
        return None
    return "adjectives" if pos == "ADJ" else _LETTERS.get(pos[0])
