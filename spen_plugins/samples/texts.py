"""The synthetic label corpus as texts: its words as sentences, with function words between them.

Labels and their dependencies are those of `labels`. The second of two sibling leaves reverses its pairs of words, so
that word order carries information that single words don't.
"""

from __future__ import annotations

import numpy as np

from spen_plugins.samples import labels as bags
from spen_plugins.samples.labels import labels

SMALL = ("the", "of", "a", "in", "and", "to", "with", "for")
PAIRS = ("vusi", "zepo")
"""Two words that may be adjacent in each leaf's texts; their order distinguishes siblings."""
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
    """Sentences of these words in random order, and for half of the leaves the pair."""
    pieces = list(rng.permutation(words)) if words else []
    pieces += [str(rng.choice(SMALL)) for _ in range(len(pieces) // 3)]
    pieces = list(rng.permutation(pieces)) if pieces else []
    for leaf in leaves:
        if rng.random() < 0.5:
            pieces.insert(int(rng.integers(len(pieces) + 1)), " ".join(PAIRS if leaf % 2 else PAIRS[::-1]))
    cut = [pieces[i : i + _SENTENCE] for i in range(0, len(pieces), _SENTENCE)]
    return " ".join(" ".join(sentence).capitalize() + "." for sentence in cut)
