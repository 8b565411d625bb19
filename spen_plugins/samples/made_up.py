"""Words nobody has seen."""

from __future__ import annotations

import random

from spen_plugins.samples.tagged_lexicon import CODAS, ONSETS, VOWELS


def coin(source: random.Random, syllables: int = 2) -> str:
    """A word that can be spoken, in lower case: "brastoon"."""
    return "".join(source.choice(ONSETS) + source.choice(VOWELS) + source.choice(CODAS) for _ in range(syllables))
