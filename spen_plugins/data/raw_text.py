"""Raw text, as a task is given it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class RawText(Protocol):
    """Raw text, and what finds sentences and predicates in it."""

    text: str

    def sentences(self) -> list[list[str]]:
        """The words of each sentence."""

    def predicates(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """The words that are predicates, from 0, of each sentence."""
