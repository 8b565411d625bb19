"""Features of words from their letters: indices per word."""

from __future__ import annotations

import hashlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from allennlp_light.modules.seq2vec_encoders import CnnEncoder
from torch import Tensor

from spen_plugins.sentences.batches import REMEMBERED
from spen_plugins.task import Indexer

AFFIX_BUCKETS = 6000
HASHES = 3
"""Number of rows of a hashed word, which are summed."""
CHARACTERS = 1024
"""Rows of the table of characters; 0 is padding, 1 and 2 are a word's two ends."""
LONGEST = 40
"""Most characters of a word that are used."""
_PLAIN = 512
"""Characters with their own rows, those of Latin scripts; the others share the remaining rows."""
CASES = 4
"""Kinds of a word's first letter: 0 neither letter nor digit, 1 lower case, 2 upper case, 3 a digit."""

_DIGITS = str.maketrans("123456789", "000000000")


class WordPart(ABC):
    """Indices of a word, `X.inputs[name]` `(batch, token, width)`, zero on padding.

    Parts with equal names give equal indices; a name must differ from the task's columns.
    """

    name: str
    width: int
    """Maximal number of indices of a word."""

    @abstractmethod
    def numbers(self, word: str) -> Sequence[int]:
        """Indices of a word, at most `width`; padded with zeros."""

    def collate(self, table: np.ndarray, rows: np.ndarray) -> dict[str, Tensor]:
        """Tensors of a batch.

        Args:
            table: `(1 + word, width)` indices of the batch's words, in order of first occurrence; zeros in row 0.
            rows: `(batch, token)` rows of the table, 0 on padding.
        """
        return {self.name: torch.from_numpy(table[rows].astype(np.int64))}


class WordIndexer(Indexer):
    """All parts of a network's word features; the indices of `REMEMBERED` words are kept."""

    def __init__(self, parts: Sequence[WordPart]) -> None:
        self.parts = parts
        self.name = "+".join(part.name for part in parts)
        self._known: dict[str, np.ndarray] = {}

    def index(self, words: Sequence[str]) -> Sequence[str]:
        """The words themselves; features are looked up batch by batch."""
        return words

    def collate(self, items: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        number: dict[str, int] = {}
        rows = np.zeros((len(items), max(map(len, items))), dtype=np.int64)
        for row, words in zip(rows, items, strict=True):
            row[: len(words)] = [number.setdefault(word, len(number) + 1) for word in words]
        if len(self._known) > REMEMBERED:
            self._known = {}
        known = self._known  # threads may share a predictor
        for word in number:
            if word not in known:
                known[word] = self._index_word(word)
        edges = np.cumsum([part.width for part in self.parts])
        table = np.stack([np.zeros(edges[-1], dtype=np.int32), *(known[word] for word in number)])
        tensors: dict[str, Tensor] = {}
        for part, columns in zip(self.parts, np.split(table, edges[:-1], 1), strict=True):
            tensors.update(part.collate(columns, rows))
        return tensors

    def _index_word(self, word: str) -> np.ndarray:
        """Indices of a word, those of one part after the other."""
        padded = ([*(numbers := part.numbers(word)), *[0] * (part.width - len(numbers))] for part in self.parts)
        return np.array(list(chain.from_iterable(padded)), dtype=np.int32)


class Affixes(WordPart):
    """Hashed prefix, suffixes and shape of a word: four indices below `AFFIX_BUCKETS`."""

    name = "words.affixes"
    width = 4

    def numbers(self, word: str) -> Sequence[int]:
        lower = word.lower()
        keys = (f"p{lower[:3]}", f"s{lower[-2:]}", f"t{lower[-3:]}", f"x{_find_shape(word)}")
        # zlib's checksum is the same in every process; Python's own hash of a string is not.
        return [1 + zlib.crc32(k.encode("utf-8", "surrogatepass")) % (AFFIX_BUCKETS - 1) for k in keys]


def _find_shape(word: str) -> str:
    """Cases and digits with repetitions collapsed: "McDonald's" -> "XxXx'x"."""
    kinds = ["X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in word[:20]]
    return "".join(kind for i, kind in enumerate(kinds) if not i or kind != kinds[i - 1])


class Hashed(WordPart):
    """A word in lower case, digits as 0, hashed to `HASHES` rows of a table, so that no vocabulary is needed.

    Words that share one row mostly differ in another (Svenstrup et al. 2017, with weights of one).
    """

    def __init__(self, rows: int) -> None:
        self.name = f"words.hashed:{rows}"
        self.width = HASHES
        self._rows = rows

    def numbers(self, word: str) -> Sequence[int]:
        key = word.lower().translate(_DIGITS)
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=4 * HASHES).digest()
        return (1 + np.frombuffer(digest, dtype="<u4") % (self._rows - 1)).tolist()


class Case(WordPart):
    """The kind of a word's first letter, one index below `CASES`."""

    name = "words.case"
    width = 1

    def numbers(self, word: str) -> Sequence[int]:
        first = word[:1]
        return [1 if first.islower() else 2 if first.isupper() else 3 if first.isdigit() else 0]


class Characters(WordPart):
    """Characters of each distinct word of a batch, with end markers, so that a word is computed once.

    `X.inputs` gets `"words.characters"` `(distinct word, character)`, below `CHARACTERS`, row 0 padding, the words in
    order of first occurrence in the batch; and `"words.characters.index"` `(batch, token)`, rows of the former.
    """

    name = "words.characters"
    width = LONGEST + 2

    def numbers(self, word: str) -> Sequence[int]:
        points = [ord(character) for character in word[:LONGEST]]
        shared = CHARACTERS - 3 - _PLAIN
        return [1, *(3 + (point if point < _PLAIN else _PLAIN + point % shared) for point in points), 2]

    def collate(self, table: np.ndarray, rows: np.ndarray) -> dict[str, Tensor]:
        longest = int((table > 0).sum(1).max())
        letters = torch.from_numpy(table[:, :longest].astype(np.int64))
        return {"words.characters": letters, "words.characters.index": torch.from_numpy(rows)}


class CharacterCnn(CnnEncoder):
    """allennlp-light's layers, `(word, character, char_dim)` -> `(word, filters * widths)`, over well-padded words.

    With a filter's width of padding after the longest word, each word ends in a window of padding alone, and more
    padding changes no maximum, so no mask is needed. The library's mask is NaN in float64: it adds that type's smallest
    number as a float32. The activation is increasing, so it can follow the maximum.
    """

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        columns = tokens.transpose(1, 2)
        return torch.cat([self._activation(layer(columns).amax(2)) for layer in self._convolution_layers], 1)
