"""A synthetic multi-label corpus: texts about topics of a small taxonomy, and the same as bags of words.

It is not real data, but has the structure of real data on a small scale. Labels are a taxonomy of three levels
(ancestors implied). Siblings exclude each other within a text; a second topic depends on the first by affinities, some
pairs frequent, most impossible. A label's words occur with a small probability, many labels share words, and some words
are noise: a single label's evidence is ambiguous, and label dependencies help. In texts, the second of two sibling
leaves reverses the pair "vusi zepo", so that word order carries information that single words don't.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from spen_plugins.data.table import Ragged
from spen_plugins.data.tables.label_columns import read_names
from spen_plugins.data.text import read_lines
from spen_plugins.samples import FOLDER, cut

SIZES = {"train": 1500, "validation": 500, "test": 500}
FEATURES = 300


def labels() -> list[str]:
    """The 40 label names: `science`, `science/physics`, `science/physics/optics`, ..."""
    return read_names(FOLDER / "labels.txt")


def words() -> list[str]:
    """Invented words, one for each feature: `babo`, `bade`, ..."""
    first, second = [c + v for c in "bdfgklmnprst" for v in "aeiou"], [c + v for c in "bdlnr" for v in "ou"]
    return [first[i % 60] + second[i // 60] for i in range(FEATURES)]


def texts() -> dict[str, list[tuple[str, np.ndarray]]]:
    """Part -> texts and their label numbers."""
    rows = (line.split("\t") for line in read_lines(FOLDER / "texts.tsv.gz"))
    return cut(((text, np.array(gold.split(","), dtype=np.int32)) for text, gold in rows), SIZES)


def bags() -> dict[str, tuple[Ragged, Ragged]]:
    """Part -> word numbers and label numbers of its texts, without function words and the pair."""
    word_numbers = {word: i for i, word in enumerate(words())}

    def find_numbers(text: str) -> list[int]:
        return sorted(word_numbers[word] for word in re.findall("[a-z]+", text.lower()) if word in word_numbers)

    return {
        part: (_make_ragged([find_numbers(text) for text, _ in rows]), _make_ragged([gold for _, gold in rows]))
        for part, rows in texts().items()
    }


def _make_ragged(rows: Sequence[Sequence[int] | np.ndarray]) -> Ragged:
    return Ragged(np.cumsum([0, *map(len, rows)]), np.concatenate(rows).astype(np.int32))
