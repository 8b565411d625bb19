"""Invented words."""

from __future__ import annotations

import random

ONSETS = (
    *("b", "br", "d", "dr", "f", "g", "gl", "k", "kr", "l", "m"),
    *("n", "p", "pl", "r", "s", "st", "t", "tr", "v", "z"),
)
VOWELS = ("a", "e", "i", "o", "u", "ea", "oo")
CODAS = ("b", "d", "g", "l", "m", "n", "nd", "p", "r", "rk", "s", "st", "t")


def coin(source: random.Random, syllables: int = 2) -> str:
    """A pronounceable word in lower case: "brastoon"."""
    return "".join(source.choice(ONSETS) + source.choice(VOWELS) + source.choice(CODAS) for _ in range(syllables))
