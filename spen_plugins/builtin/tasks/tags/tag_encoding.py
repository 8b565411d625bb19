"""From the tags of files to tags as they are learned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spen_plugins.data.schemes import BrokenTags, complete_tags, spans, write_tags
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.errors import ConfigError, DataError


class TagEncoding:
    """The scheme in which a task learns its tags.

    Args:
        config: the task's.

    Attributes:
        scheme: "bio" or "bioes"; None if tags are independent.

    Raises:
        ConfigError: an encoding without spans, predicates under another scheme than "bio", or a column called words.
    """

    def __init__(self, config: Any) -> None:
        if "words" in config.columns:
            raise ConfigError("task.columns: found the name 'words', which is taken by the words; take another")
        self._config = config
        self.has_spans = config.scheme != "none"
        if config.encoding is not None and not self.has_spans:
            expected = "a task.scheme of spans beside it (bio, iob1, bioes or io)"
            raise ConfigError(f"task.encoding: found {config.encoding!r}; expected {expected}")
        self._has_predicates = "predicates" in (config.format, config.corpus)
        if self._has_predicates and config.scheme != "bio":
            raise ConfigError(f"task.scheme: found {config.scheme!r}; predicates are tagged under 'bio'")
        usual = "bioes" if config.scheme == "bioes" else "bio"
        self.scheme = (config.encoding or usual) if self.has_spans else None

    def encode(self, sentence: TaggedSentence, where: object) -> tuple[tuple[str, ...] | None, frozenset]:
        """Gold tags in this scheme, and their spans.

        Raises:
            DataError: the tags break the files' scheme.
        """
        if sentence.tags is None or self.scheme is None:
            return sentence.tags, frozenset()
        try:
            gold = spans(sentence.tags, self._config.scheme)
        except BrokenTags as broken:
            raise DataError(where, sentence.line_of(broken.index), broken.found, broken.expected) from None
        return tuple(write_tags(gold, len(sentence.words), self.scheme)), frozenset(gold)

    def encode_if_valid(self, sentence: TaggedSentence, where: object) -> tuple[str, ...] | None:
        """Tags in this scheme, or unchanged if they break the files' scheme."""
        try:
            return self.encode(sentence, where)[0]
        except DataError:
            return sentence.tags

    def order(self, tags: Iterable[str]) -> list[str]:
        """The tags in alphabetical order; those of spans by type, after O, and all of each type."""
        if self.scheme is None:
            return sorted(tags)
        if self._has_predicates:  # of one word each
            return sorted({"O", *tags}, reverse=True)
        return complete_tags(tags, self.scheme)
