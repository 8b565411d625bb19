"""Synthetic trees of a small grammar: deterministic, the same at every call and on every machine."""

from __future__ import annotations

import random

from spen_infnet.parsing.trees import Sentence, parse

SIZES = {"train": 200, "validation": 50, "test": 50}
_DEEPEST = 4

_RULES = {
    "TOP": ("S", "S", "S", "FRAG"),
    "S": ("NP VP .", "NP VP .", "NP ADVP VP .", "VP .", "PP , NP VP ."),
    "FRAG": ("NP .", "PP .", "ADVP ,  NP ."),
    "CLAUSE": ("NP VP",),
    "NP": ("DT NN", "DT JJ NN", "NNP", "PRP", "NP PP", "NP CC NP", "NNS"),
    "VP": ("VBZ NP", "VBZ NP PP", "VBZ", "VBZ SBAR", "VP CC VP", "VBZ ADJP"),
    "PP": ("IN NP",),
    "SBAR": ("THAT CLAUSE", "CLAUSE"),
    "ADJP": ("JJ", "RB JJ"),
    "ADVP": ("RB",),
}
_SHALLOW = {"TOP": ("S",), "NP": ("DT NN", "NNP"), "VP": ("VBZ NP", "VBZ"), "SBAR": ("THAT CLAUSE",)}
"""The rules below the deepest constituents, which do not recur."""
_LABELS = {"CLAUSE": "S"}
_WORDS = {
    "DT": "the a every this",
    "NN": "cat dog farmer letter house river story doctor",
    "NNS": "cats dogs letters stories",
    "NNP": "Anna Ben Boston Paris",
    "PRP": "she he it",
    "JJ": "old quiet green happy",
    "RB": "very often never",
    "VBZ": "sees knows writes says finds",
    "IN": "in near with of",
    "THAT": "that because",
    "CC": "and or",
    ".": ". !",
    ",": ",",
}
_TAGS = {"THAT": "IN"}


def sample_trees() -> dict[str, list[Sentence]]:
    """The trees of each part."""
    generator = random.Random(0)
    return {part: [parse(_write("TOP", generator, 0)) for _ in range(size)] for part, size in SIZES.items()}


def _write(symbol: str, generator: random.Random, depth: int) -> str:
    if symbol in _WORDS:
        return f"({_TAGS.get(symbol, symbol)} {generator.choice(_WORDS[symbol].split())})"
    rules = _SHALLOW.get(symbol, _RULES[symbol]) if depth > _DEEPEST else _RULES[symbol]
    children = " ".join(_write(child, generator, depth + 1) for child in generator.choice(rules).split())
    return f"({_LABELS.get(symbol, symbol)} {children})"
