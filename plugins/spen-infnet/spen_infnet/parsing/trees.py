"""Constituency trees: reading and writing brackets, and labelled spans.

    (TOP (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))

A tree has no parts of speech: its leaves are the positions of words. Its root is `ROOT`, which is no constituent. Trees
may be deep, so no function here is recursive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from spen_plugins import DataError, read_lines, shorten

ROOT = "TOP"
JOINT = "+"
"""Joins the labels of a unary chain, from the top."""
MARK = ":"
"""Separates the parts of a tag (`tags.Tag`)."""
UNKNOWN = "XX"
"""The part of speech that is written if none is known."""

_ROOTS = frozenset(("", ROOT, "ROOT", "S1"))
_TOKEN = re.compile(r"\(\s*[^\s()]*|\)|[^\s()]+")
_ESCAPED = {"(": "-LRB-", ")": "-RRB-"}
_BEGINNING = re.compile(r"\((\s+|[^\s()a-z]+\s*)\((?![A-Z][a-z])[^\s()a-z][^\s()]*(?![^\s(])|\([A-Z]+$")
_TREE = "one tree per line, as in (TOP (S (NP (DT The) (NN cat)) (VP (VBZ sleeps))))"


@dataclass(frozen=True, slots=True)
class Tree:
    """A constituent; each child is a constituent or a word's position, from 0."""

    label: str
    children: tuple[Tree | int, ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with the parts of speech of its words, and its tree."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    tree: Tree


Span = tuple[int, int, str]
"""Start, end (exclusive) and label of a constituent."""


def read(path: Path) -> list[Sentence]:
    """The trees of a file, one per line; raises `DataError` for a line that is not a tree."""
    return [parse(line, path, number) for number, line in enumerate(read_lines(path), 1) if line.strip()]


def parse(line: str, path: object = "input", number: int | None = None) -> Sentence:
    """The sentence of a bracketed tree.

    Function tags are cut (NP-SBJ=1 is NP), traces and constituents without a word are removed, and a tree without root
    gets one. `-LRB-` and `-RRB-` within words are read as brackets.

    Raises:
        DataError: brackets that don't match, a word without part of speech, a label that is empty or has `+` or `:`.
    """
    words: list[str] = []
    tags: list[str] = []
    # Label, children, and the word of each open bracket; the outermost entry holds finished trees.
    stack: list[tuple[str, list[Tree | int], list[str]]] = [("", [], [])]
    for token in _TOKEN.findall(line):
        label, children, texts = stack[-1]
        if token[0] == "(":
            stack.append((token[1:].strip(), [], []))
        elif token != ")":
            texts.append(token)
        elif len(stack) == 1:
            raise DataError(path, number, f"a bracket too many in {shorten(line)}", _TREE)
        else:
            stack.pop()
            if texts and (children or len(texts) > 1 or not label):
                raise DataError(path, number, f"{texts[-1]!r} without a part of speech in {shorten(line)}", _TREE)
            if texts and label != "-NONE-":
                stack[-1][1].append(len(words))
                words.append(_read_word(texts[0]))
                tags.append(label)
            elif children:
                stack[-1][1].append(Tree(re.split("[-=]", label, maxsplit=1)[0], tuple(children)))
    if len(stack) > 1 or stack[0][2] or len(stack[0][1]) != 1:
        problem = "an unclosed bracket" if len(stack) > 1 else f"{len(stack[0][1])} trees"
        advice = "; join each tree into one line" if len(stack) > 1 else ""
        raise DataError(path, number, f"{problem} in {shorten(line)}", f"{_TREE}{advice}")
    tree = _add_root(*stack[0][1])
    for *_, label in find_nodes(tree):
        if not label or {JOINT, MARK} & {*label}:
            raise DataError(
                path, number, f"the label {label!r} in {shorten(line)}", f"labels without {JOINT} and {MARK}"
            )
    return Sentence(tuple(words), tuple(tags), tree)


def is_beginning(line: str) -> bool:
    """True for a line that begins as a tree does, `(TOP (S` or `(S` alone, perhaps one of several lines of a tree;
    prose in brackets has lowercase letters there."""
    return _BEGINNING.match(line.strip()) is not None


def _add_root(tree: Tree | int) -> Tree:
    """The tree below `ROOT`, which takes the place of a root of another name."""
    return Tree(ROOT, tree.children if isinstance(tree, Tree) and tree.label in _ROOTS else (tree,))


def write(tree: Tree, words: Sequence[str], tags: Sequence[str] | None = None) -> str:
    """The tree in brackets, on one line; without parts of speech, with `UNKNOWN` for each."""
    pieces: list[str] = []
    for item in _walk(tree):
        if isinstance(item, Tree):
            pieces.append(f" ({item.label}")
        elif item is None:
            pieces.append(")")
        else:
            pieces.append(f" ({UNKNOWN if tags is None else tags[item]} {_write_word(words[item])})")
    return "".join(pieces).strip()


def find_nodes(tree: Tree) -> list[Span]:
    """Every constituent but the root, in preorder, with one entry for each node of a unary chain."""
    nodes: list[Span | None] = []
    stack: list[tuple[int, int, str]] = []
    position = 0
    for item in _walk(tree):
        if isinstance(item, Tree):
            stack.append((len(nodes), position, item.label))
            nodes.append(None)
        elif item is None:
            index, start, label = stack.pop()
            nodes[index] = start, position, label
        else:
            position += 1
    return [span for span in nodes[1:] if span is not None]


def spans(tree: Tree) -> list[Span]:
    """Every constituent but the root, in preorder, where unary chains are one label joined by `+`, as in S+VP."""
    chains = groupby(find_nodes(tree), key=lambda span: span[:2])
    return [(start, end, JOINT.join(label for *_, label in chain)) for (start, end), chain in chains]


def build(spans: Iterable[Span], length: int) -> Tree:
    """The tree over `length` words with these constituents below its root: the inverse of `spans`.

    Raises:
        ValueError: a span outside of the sentence or without a word, or two that cross.
    """
    stack: list[tuple[int, str, list[Tree | int]]] = [(length, ROOT, [])]
    position = 0

    def read_until(start: int) -> None:
        nonlocal position
        while position < start:
            stack[-1][2].append(position)
            position += 1
            while len(stack) > 1 and stack[-1][0] == position:
                _, label, children = stack.pop()
                stack[-1][2].append(Tree(label, tuple(children)))

    for start, end, labels in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not 0 <= start < end <= length:
            raise ValueError(f"found the span ({start}, {end}, {labels}) in a sentence of {length} words")
        read_until(start)
        if end > stack[-1][0]:
            raise ValueError(
                f"found the span ({start}, {end}, {labels}), which crosses a span that ends at {stack[-1][0]}"
            )
        stack.extend((end, label, []) for label in labels.split(JOINT))
    read_until(length)
    return Tree(ROOT, tuple(stack[0][2]))


def _walk(tree: Tree) -> Iterator[Tree | int | None]:
    """Each constituent as it opens, each word, and None as a constituent closes."""
    pending: list[Tree | int | None] = [tree]
    while pending:
        item = pending.pop()
        yield item
        if isinstance(item, Tree):
            pending.append(None)
            pending.extend(reversed(item.children))


def _read_word(text: str) -> str:
    for bracket, escaped in _ESCAPED.items():
        text = text.replace(escaped, bracket)
    return text


def _write_word(word: str) -> str:
    for bracket, escaped in _ESCAPED.items():
        word = word.replace(bracket, escaped)
    return re.sub(r"\s+", "_", word)
