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
    """The tree of each sentence of a CoNLL-U file, by its words; the first one of equal sentences."""
    trees: dict[tuple[str, ...], Tree] = {}
    for sentence in read_conllu(path, tags="deprel", columns={"head": "head"}):
        if sentence.words not in trees:
            trees[sentence.words] = _check_tree(path, sentence)
    return trees


def make_tree(heads: Sequence[int], relations: Sequence[str], first: int = 0) -> Tree:
    """A tree of heads from 0, -1 for none; `ValueError`, whose first argument is a word's number, from 0, if its head
    is no word, or it is below itself. Its second says why, with heads as the user's file counts them, from `first`."""
    n = len(heads)
    above = np.array(heads, dtype=np.int64)
    wrong = np.flatnonzero((above < -1) | (above >= n))
    if len(wrong):
        raise ValueError(int(wrong[0]), f"head {heads[wrong[0]] + first} of {n} words")
    at = above
    for _ in range(n):
        at = np.where(at >= 0, above[at], -1)
    if (at >= 0).any():
        raise ValueError(int(np.flatnonzero(at >= 0)[0]), "a word that is its own ancestor")
    return Tree(tuple(heads), tuple(relations))


def _check_tree(path: Path, sentence: TaggedSentence) -> Tree:
    wanted = "the number of another word of the sentence, or 0 for the root"
    heads = []
    for i, head in enumerate(sentence.columns["head"]):
        if not head.isascii() or not head.isdigit():
            raise DataError(path, sentence.line_of(i), f"{head!r} as a word's head", wanted)
        heads.append(int(head) - 1)
    try:
        return make_tree(heads, sentence.tags or (), first=1)
    except ValueError as error:
        word, problem = error.args
        raise DataError(path, sentence.line_of(word), problem, wanted) from None


TREE_CANDIDATES = (
    "single words and the spans of subtrees of the trees given, with their outermost punctuation and without; and what "
    "follows a copula in its subtree"
)
"""Description of `tree_candidates`, for a run's protocol."""


def tree_candidates(tree: Tree) -> np.ndarray:
    """Spans that may be arguments, `(candidate, 2)` first and last word, in order: single words; subtrees that are
    spans, and these without their outermost punctuation; what follows a copula in its subtree (PropBank's ARG2 of be,
    which is the head of UD's tree). Words that are punctuation are no candidates."""
    n = len(tree.heads)
    above, words = np.array(tree.heads), np.arange(n)
    relations = [relation.partition(":")[0] for relation in tree.relations]
    first, last, size = words.copy(), words.copy(), np.ones(n, dtype=np.int64)
    at = above
    while (at >= 0).any():
        below = at >= 0
        np.minimum.at(first, at[below], words[below])
        np.maximum.at(last, at[below], words[below])
        np.add.at(size, at[below], 1)
        at = np.where(below, above[at], -1)

    letters = np.array([relation != "punct" for relation in relations])
    # The nearest word that is no punctuation, from each on to the right and to the left; n and -1 without one.
    right = np.minimum.accumulate(np.where(letters, words, n)[::-1])[::-1]
    left = np.maximum.accumulate(np.where(letters, words, -1))
    spans = np.stack([first, last], 1)[size == last - first + 1]
    copulas = np.array([r == "cop" and above[i] >= 0 and i + 1 < n for i, r in enumerate(relations)], dtype=bool)
    after = np.stack([words[copulas] + 1, last[above[copulas]]], 1)
    after = after[after[:, 0] <= after[:, 1]]
    inner = np.concatenate([spans, after])
    inner = np.stack([right[inner[:, 0]], left[inner[:, 1]]], 1)
    every = np.concatenate([np.stack([words, words], 1), spans, inner])
    start, end = every.T
    every = every[(start <= end) & ((start < end) | letters[start.clip(max=n - 1)])]
    return np.unique(every, axis=0)


def all_spans(words: int, longest: int) -> np.ndarray:
    """All spans of at most `longest` words, `(candidate, 2)` first and last word, in order."""
    first, more = np.divmod(np.arange(words * longest), longest)
    return np.stack([first, first + more], 1)[first + more < words]
