"""Reads tagged sentences in columns: one token a line, a blank line between sentences."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Words with a tag each, and what else is known of each word.

    Args:
        words: the words as the file has them; a file may have empty ones.
        tags: one tag a word; None where they aren't known.
        columns: name of each extra column -> one value a word.
        line: number of the sentence's first line in its file, from 1; None where there is no file.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    line: int | None = None
