"""Examples of task `arcs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spen_e2e.trees import Tree, make_tree
from spen_plugins import DataError
from spen_plugins.sentences import FORMS, Argument, Entry, Sentence, arguments_of, sentence_of, spans_of


@dataclass(eq=False)
class Example:
    """A sentence with all its predicates.

    Args:
        predicates: `(predicate,)` words.
        candidates: `(candidate, 2)` first and last word.
        pairs: `(pair, 2)` indices of predicate and candidate, predicate by predicate.
        names: gold BIO tags of each predicate, if known.
        roles: `(pair,)` gold roles, 0 for none; -1 for one unseen in training.
    """

    entry: Entry
    predicates: np.ndarray
    candidates: np.ndarray
    pairs: np.ndarray
    names: tuple[tuple[str, ...], ...] | None
    roles: np.ndarray | None

    @cached_property
    def arguments(self) -> list[list[Argument]]:
        """Gold arguments of each predicate, including those that are no candidates."""
        return [arguments_of(names) for names in self.names or ()]

    @cached_property
    def reached(self) -> list[list[Argument]]:
        """Gold arguments whose pieces are all candidates."""
        known = {(first, last) for first, last in self.candidates.tolist()}
        return [[a for a in some if known.issuperset(a.pieces)] for some in self.arguments]


def gold_roles(names: Sequence[Sequence[str]], spans: np.ndarray, number: dict[str, int]) -> np.ndarray:
    """Gold roles of pairs, as `Example.roles`.

    Args:
        names: BIO tags of each predicate.
        spans: `(pair, 3)` predicate, first and last word.
        number: index of each known role.
    """
    gold = {
        (i, first, last): number.get(role, -1)
        for i, tags in enumerate(names)
        for role, first, last in spans_of(tags)
        if role not in ("V", "C-V")
    }
    return np.array([gold.get((i, first, last), 0) for i, first, last in spans.tolist()], dtype=np.int64)


def reach_of(examples: Sequence[Example]) -> float:
    """Share of gold arguments whose pieces are all candidates; 1 without any."""
    gold = sum(len(some) for example in examples for some in example.arguments)
    reached = sum(len(some) for example in examples for some in example.reached)
    return round(reached / gold, 4) if gold else 1.0


def told(example: Example, arguments: Sequence[Sequence[Argument]]) -> Iterator[str]:
    """Pieces of arguments of each predicate, in words."""
    words = example.entry.words
    for predicate, some in zip(example.predicates.tolist(), arguments, strict=True):
        for role, (first, *others) in some:
            for name, (i, j) in [(role, first), *((f"C-{role}", place) for place in others)]:
                yield f"{words[predicate]} {name}: {' '.join(words[i : j + 1])}"


def parsed(item: Any) -> tuple[Sentence, Tree | None]:
    """A user's sentence, as in `RoleArcs.parse`, and its tree, if it has one.

    Raises:
        DataError: another form.
    """
    if isinstance(item, Mapping) and item.get("predicates") is None:
        raise DataError("input", None, repr(item)[:80], FORMS)
    sentence = sentence_of(item)
    return sentence, _given_tree(item, len(sentence.words))


def _all(values: Any, kind: type) -> bool:
    """True for a list of values of one kind."""
    return isinstance(values, (list, tuple)) and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)


def _given_tree(item: Mapping[str, Any], words: int) -> Tree | None:
    heads = item.get("heads")
    if heads is None:
        return None
    relations = item.get("relations", ["_"] * words)
    if not _all(heads, int) or not _all(relations, str) or not len(heads) == len(relations) == words:
        raise DataError("input", None, f"heads {heads!r:.60}, relations {relations!r:.60}", f"{words} of each")
    try:
        return make_tree(heads, relations)
    except ValueError as error:
        word, found = error.args
        raise DataError("input", None, f"{found} at word {word}", "heads from 0, -1 for none, in a tree") from None
