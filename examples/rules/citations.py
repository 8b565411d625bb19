"""The rules about words that task `citations` has built in, as a file: a start for rules of your own, which take their
place.

`words.gaps` says what stands before each word: "glued" (nothing), "space" or "break" (a space after punctuation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from spen_implicit.citations.rules import RULES, find_rules
from spen_rules import rule

find_once = lru_cache(maxsize=1)(find_rules)  # each rule below asks for the same citation


def make_finder(name: str) -> Callable[[Sequence[str]], Iterator[tuple[int, int]]]:
    def find(words: Sequence[str]) -> Iterator[tuple[int, int]]:
        found = find_once(tuple(words), words.gaps)
        return ((i, i + 1) for i, one in enumerate(found) if one == name)

    find.__name__ = name
    return find


for name, fields in RULES.items():
    rule(*fields)(make_finder(name))
