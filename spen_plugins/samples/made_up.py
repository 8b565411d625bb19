"""Invented words."""

from __future__ import annotations

import random

from spen_plugins.samples.tagged_lexicon import CODAS, ONSETS, VOWELS


def coin(source: random.Random, syllables: int = 2) -> str:
    """A pronounceable word in lower case: "brastoon"."""
    return "".join(source.choice(ONSETS) + source.choice(VOWELS) + source.choice(CODAS) for _ in range(syllables))
