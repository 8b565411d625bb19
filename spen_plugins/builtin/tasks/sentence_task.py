"""What tasks over files of sentences have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spen_plugins.builtin.tasks.file_parts import FileParts
from spen_plugins.task import Indexer, Task


class SentenceTask(Task):
    """A task over files of sentences: `load` and `restore` set `_parts` and `_read`, and an example has an `entry`."""

    _parts: Mapping[str, Sequence[Any]]
    _read: FileParts[Any]

    def part(self, name: str) -> Sequence[Any]:
        return self._parts[name]

    def notes(self) -> Sequence[str]:
        return self._read.notes

    def checksums(self) -> dict[str, str]:
        return self._read.checksums

    def length(self, example: Any) -> int:
        return example.entry.length(self.all_indexers())

    def words_read(self, example: Any) -> int | None:
        return example.entry.words_read(self.all_indexers())

    def all_indexers(self) -> dict[str, Indexer]:
        """The indexers of all that reads a sentence."""
        return self.indexers
