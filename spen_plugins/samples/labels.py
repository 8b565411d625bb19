"""A synthetic multi-label corpus: texts about topics of a small taxonomy, as bags of words.

It is not real data, but has the structure of real data on a small scale. Labels are a taxonomy of three levels
(ancestors implied). Siblings exclude each other within a text; a second topic depends on the first by affinities, some
pairs frequent, most impossible. A label's words occur with a small probability, many labels share words, and some words
are noise: a single label's evidence is ambiguous, and label dependencies help.
"""

from __future__ import annotations

import numpy as np

from spen_plugins.readers.table import Ragged

TAXONOMY = {
    "science": {
        "physics": ("optics", "particles"),
        "biology": ("cells", "evolution"),
        "computing": ("networks", "theory"),
    },
    "culture": {"music": ("opera", "jazz"), "film": ("drama", "animation"), "books": ("poetry", "crime")},
    "sport": {"football": ("league", "cup"), "cycling": ("road", "track"), "tennis": ("singles", "doubles")},
    "society": {"health": ("nutrition", "hospitals"), "politics": ("elections", "law"), "economy": ("trade", "work")},
}
SIZES = {"train": 1500, "validation": 500, "test": 500}
FEATURES = 300
_OWN, _SHARED = 5, 7  # words of a label alone, and words shared with one other label


def labels() -> list[str]:
    """The 40 label names: `science`, `science/physics`, `science/physics/optics`, ..."""
    names: list[str] = []
    for top, middles in TAXONOMY.items():
        names.append(top)
        for middle, leaves in middles.items():
            names += [f"{top}/{middle}", *(f"{top}/{middle}/{leaf}" for leaf in leaves)]
    return names


def words() -> list[str]:
    """Invented words, one for each feature: `babo`, `bade`, ..."""
    first, second = [c + v for c in "bdfgklmnprst" for v in "aeiou"], [c + v for c in "bdlnr" for v in "ou"]
    return [first[i % 60] + second[i // 60] for i in range(FEATURES)]


def make(seed: int = 0) -> dict[str, tuple[Ragged, Ragged]]:
    """Part -> word numbers and label numbers of its examples; the same for the same seed."""
    rng = np.random.default_rng(seed)
    total = sum(SIZES.values())
    gold = _draw_labels(rng, total)
    rate = _word_rates(rng)
    # a word is absent if no cause emits it
    silent = np.exp(gold.astype(float) @ np.log1p(-rate)) * (1 - 0.03)
    seen = rng.random((total, FEATURES)) > silent
    parts, at = {}, 0
    for name, size in SIZES.items():
        rows = slice(at, at + size)
        parts[name] = (Ragged.of(seen[rows]), Ragged.of(gold[rows]))
        at += size
    return parts


def _draw_labels(rng: np.random.Generator, rows: int) -> np.ndarray:
    """`(rows, 40)` boolean."""
    names = labels()
    place = {name: i for i, name in enumerate(names)}
    middles = [name for name in names if name.count("/") == 1]
    weight = rng.dirichlet(np.full(len(middles), 3.0))
    affinity = _affinities(rng, middles)
    gold = np.zeros((rows, len(names)), dtype=bool)
    for row in range(rows):
        first = rng.choice(len(middles), p=weight)
        chosen = [first]
        if rng.random() < 0.5:
            chosen.append(rng.choice(len(middles), p=affinity[first]))
        for number, middle in enumerate(chosen):
            name = middles[middle]
            gold[row, [place[name.partition("/")[0]], place[name]]] = True
            if rng.random() < 0.8:  # the leaf of a second topic depends on the first topic
                leaves = TAXONOMY[name.partition("/")[0]][name.partition("/")[2]]
                likely = (first + middle) % 2 if number else int(rng.random() < 0.4)
                leaf = leaves[likely if rng.random() < 0.85 else 1 - likely]
                gold[row, place[f"{name}/{leaf}"]] = True
    return gold


def _affinities(rng: np.random.Generator, middles: list[str]) -> np.ndarray:
    """`(first, second)` probabilities: two or three partners each, never a sibling or itself."""
    table = np.zeros((len(middles), len(middles)))
    for i, name in enumerate(middles):
        others = [j for j, other in enumerate(middles) if other.partition("/")[0] != name.partition("/")[0]]
        table[i, rng.choice(others, size=3, replace=False)] = (0.6, 0.3, 0.1)
    return table


def _word_rates(rng: np.random.Generator) -> np.ndarray:
    """`(label, word)`: emission probabilities of words; top labels have only their children's words."""
    names = labels()
    rate = np.zeros((len(names), FEATURES))
    for i, name in enumerate(names):
        depth = name.count("/")
        own = slice(i * _OWN, (i + 1) * _OWN)
        rate[i, own] = (0.15, 0.25, 0.2)[depth]
        shared = rng.choice(np.arange(len(names) * _OWN, FEATURES), size=_SHARED, replace=False)
        rate[i, shared] = (0.1, 0.3, 0.3)[depth]
    return rate
