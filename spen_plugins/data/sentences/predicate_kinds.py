"""Verbs, nouns and adjectives among predicates, by the part of speech that a file has."""

from __future__ import annotations

KINDS = ("verbs", "nouns", "adjectives")
_LETTERS = {"V": "verbs", "M": "verbs", "A": "verbs", "N": "nouns", "J": "adjectives"}


def kind_of(pos: str | None) -> str | None:
    """One of `KINDS`, of a tag of the Penn Treebank or of Universal Dependencies; None for others."""
    if not pos or pos in ("ADV", "ADP"):
        return None
    return "adjectives" if pos == "ADJ" else _LETTERS.get(pos[0])
