"""Dependency trees, and the spans of words that may be arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spen_plugins import DataError
from spen_plugins.sentences import TaggedSentence, read_conllu


@dataclass(frozen=True, slots=True)
class Tree:
    """A dependency tree of Universal Dependencies."""

    heads: tuple[int, ...]
    """Each word's head, from 0; -1 for the root's."""
    relations: tuple[str, ...]
    """Each word's relation to its head, with or without a subtype."""


def read_trees(path: Path) -> dict[tuple[str, ...], Tree]:
    """The tree of each sentence of a CoNLL-U file, by its words; for equal sentences, the first tree."""
    trees: dict[tuple[str, ...], Tree] = {}
    for sentence in read_conllu(path, tags="deprel", columns={"head": "head"}):
        if sentence.words not in trees:
            trees[sentence.words] = _check_tree(path, sentence)
    return trees


def make_tree(heads: Sequence[int], relations: Sequence[str], first: int = 0) -> Tree:
    """A tree of heads from 0, -1 for none.

    Raises:
        ValueError: a word's head is no word, or the word is its own ancestor. Its arguments are the word's number, from
            0, and the problem, with heads counted from `first` as in the user's file.
    """
    n = len(heads)
    parents = np.array(heads, dtype=np.int64)
    invalid = np.flatnonzero((parents < -1) | (parents >= n))
    if len(invalid):
        raise ValueError(int(invalid[0]), f"head {heads[invalid[0]] + first} of {n} words")
    ancestors = parents
    for _ in range(n):
        ancestors = np.where(ancestors >= 0, parents[ancestors], -1)
    if (ancestors >= 0).any():
        raise ValueError(int(np.flatnonzero(ancestors >= 0)[0]), "a word that is its own ancestor")
    return Tree(tuple(heads), tuple(relations))


def _check_tree(path: Path, sentence: TaggedSentence) -> Tree:
    expected = "the number of another word of the sentence, or 0 for the root"
    heads = []
    for i, head in enumerate(sentence.columns["head"]):
        if not head.isascii() or not head.isdigit():
            raise DataError(path, sentence.line_of(i), f"{head!r} as a word's head", expected)
        heads.append(int(head) - 1)
    try:
        return make_tree(heads, sentence.tags or (), first=1)
    except ValueError as error:
        word, problem = error.args
        raise DataError(path, sentence.line_of(word), problem, expected) from None


TREE_CANDIDATES = (
    "single words and the spans of subtrees of the trees given, with their outermost punctuation and without; and what "
    "follows a copula in its subtree"
)
"""Description of `tree_candidates`, for a run's protocol."""


def tree_candidates(tree: Tree) -> np.ndarray:
    """Spans that may be arguments, `(candidate, 2)` first and last word, in order: single words; subtrees that are
    spans, and these without their outermost punctuation; what follows a copula in its subtree (PropBank's ARG2 of be,
    which is the head of UD's tree). Punctuation marks are not candidates."""
    n = len(tree.heads)
    parents, words = np.array(tree.heads), np.arange(n)
    relations = [relation.partition(":")[0] for relation in tree.relations]
    first, last, size = words.copy(), words.copy(), np.ones(n, dtype=np.int64)
    ancestors = parents
    while (ancestors >= 0).any():
        has_ancestor = ancestors >= 0
        np.minimum.at(first, ancestors[has_ancestor], words[has_ancestor])
        np.maximum.at(last, ancestors[has_ancestor], words[has_ancestor])
        np.add.at(size, ancestors[has_ancestor], 1)
        ancestors = np.where(has_ancestor, parents[ancestors], -1)

    is_word = np.array([relation != "punct" for relation in relations])
    # The nearest word that is not punctuation, from each one on to the right and to the left; n and -1 without one.
    next_word = np.minimum.accumulate(np.where(is_word, words, n)[::-1])[::-1]
    previous_word = np.maximum.accumulate(np.where(is_word, words, -1))
    spans = np.stack([first, last], 1)[size == last - first + 1]
    copulas = np.array([r == "cop" and parents[i] >= 0 and i + 1 < n for i, r in enumerate(relations)], dtype=bool)
    complements = np.stack([words[copulas] + 1, last[parents[copulas]]], 1)
    complements = complements[complements[:, 0] <= complements[:, 1]]
    inner = np.concatenate([spans, complements])
    inner = np.stack([next_word[inner[:, 0]], previous_word[inner[:, 1]]], 1)
    candidates = np.concatenate([np.stack([words, words], 1), spans, inner])
    start, end = candidates.T
    candidates = candidates[(start <= end) & ((start < end) | is_word[start.clip(max=n - 1)])]
    return np.unique(candidates, axis=0)


def all_spans(words: int, longest: int) -> np.ndarray:
    """All spans of at most `longest` words, `(candidate, 2)` first and last word, in order."""
    first, offset = np.divmod(np.arange(words * longest), longest)
    return np.stack([first, first + offset], 1)[first + offset < words]
