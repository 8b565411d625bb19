"""The synthetic label corpus as texts: its words as sentences, with small words between them.

Labels and what goes with what are those of `labels`. Of two sibling leaves the second turns the pairs of its words
round, so that the order of words says something that words alone don't.
"""

from __future__ import annotations

import numpy as np

from spen_plugins.samples import labels as bags
from spen_plugins.samples.labels import labels

SMALL = ("the", "of", "a", "in", "and", "to", "with", "for")
PAIRS = ("vusi", "zepo")
"""Two words each leaf's texts may hold beside one another; their order tells siblings apart."""
_SENTENCE = 9  # words, at most

__all__ = ["labels", "make"]


def make(seed: int = 0) -> dict[str, list[tuple[str, np.ndarray]]]:
    """Part -> texts and their label numbers; the same for the same seed."""
    rng = np.random.default_rng([seed, 1])
    words, names = bags.words(), labels()
    leaf = [name.count("/") == 2 for name in names]
    return {
        part: [
            (_text(rng, [words[i] for i in seen], [i for i in gold if leaf[i]]), gold)
            for seen, gold in zip(*rows, strict=True)
        ]
        for part, rows in bags.make(seed).items()
    }


def _text(rng: np.random.Generator, words: list[str], leaves: list[int]) -> str:
    """Sentences of these words in any order, and for half of the leaves the pair."""
    pieces = list(rng.permutation(words)) if words else []
    pieces += [str(rng.choice(SMALL)) for _ in range(len(pieces) // 3)]
    pieces = list(rng.permutation(pieces)) if pieces else []
    for leaf in leaves:
        if rng.random() < 0.5:
            pieces.insert(int(rng.integers(len(pieces) + 1)), " ".join(PAIRS if leaf % 2 else PAIRS[::-1]))
    cut = [pieces[i : i + _SENTENCE] for i in range(0, len(pieces), _SENTENCE)]
    return " ".join(" ".join(sentence).capitalize() + "." for sentence in cut)
