"""What feature networks know of a word's letters and of files about words: numbers per word, and tables of vectors."""

from __future__ import annotations

import hashlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import torch
from allennlp_light.modules.seq2vec_encoders import CnnEncoder
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.readers.clusters import WordClusters
from spen_plugins.readers.vectors import WordVectors
from spen_plugins.task import Indexer

AFFIX_BUCKETS = 6000
HASHES = 3
"""Rows of a hashed word, which are added up."""
CHARACTERS = 1024
"""Rows of the table of characters; 0 is padding, 1 and 2 are a word's two ends."""
LONGEST = 40
"""Characters kept of a word."""
_PLAIN = 512
"""Characters with a row of their own, which are those of Latin scripts; the others share the rows that are left."""
CASES = 4
"""Kinds of a word's first letter: 0 neither letter nor digit, 1 lower case, 2 upper case, 3 a digit."""

_DIGITS = str.maketrans("123456789", "000000000")

Read = TypeVar("Read")


class WordPart(ABC):
    """Numbers of a word, `X.inputs[name]` `(batch, token, width)`, zero on padding.

    Equal names mean equal numbers, and none is a name that a task's column would have.
    """

    name: str

    @abstractmethod
    def numbers(self, word: str) -> Sequence[int]:
        """As many for every word."""

    def collate(self, items: Sequence[np.ndarray], inside: np.ndarray) -> dict[str, Tensor]:
        """Tensors of a batch.

        Args:
            items: `(token, width)` numbers of each sentence.
            inside: `(batch, token)`, which tokens exist.
        """
        padded = np.zeros((*inside.shape, items[0].shape[1]), dtype=np.int64)
        padded[inside] = np.concatenate(items)
        return {self.name: torch.from_numpy(padded)}


class WordIndexer(Indexer):
    """All that a network wants to know of words, part by part; each word is looked at once."""

    def __init__(self, parts: Sequence[WordPart]) -> None:
        self.parts = parts
        self.name = "+".join(part.name for part in parts)
        self._known: dict[str, tuple[Sequence[int], ...]] = {}

    def index(self, words: Sequence[str]) -> list[np.ndarray]:
        """`(token, width)` for each part."""
        rows = [self._word(word) for word in words]
        return [_stacked([row[i] for row in rows]) for i in range(len(self.parts))]

    def collate(self, items: Sequence[list[np.ndarray]]) -> dict[str, Tensor]:
        counts = np.array([len(item[0]) for item in items])
        inside = np.arange(counts.max()) < counts[:, None]
        tensors: dict[str, Tensor] = {}
        for i, part in enumerate(self.parts):
            tensors.update(part.collate([item[i] for item in items], inside))
        return tensors

    def _word(self, word: str) -> tuple[Sequence[int], ...]:
        if word not in self._known:
            self._known[word] = tuple(part.numbers(word) for part in self.parts)
        return self._known[word]


def _stacked(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Rows of numbers, zeros after the shorter ones."""
    full = np.zeros((len(rows), max(map(len, rows))), dtype=np.int32)
    for line, row in zip(full, rows, strict=True):
        line[: len(row)] = row
    return full


class Affixes(WordPart):
    """Hashed prefix, suffixes and shape of a word: four numbers below `AFFIX_BUCKETS`."""

    name = "words.affixes"

    def numbers(self, word: str) -> Sequence[int]:
        lower = word.lower()
        keys = (f"p{lower[:3]}", f"s{lower[-2:]}", f"t{lower[-3:]}", f"x{_shape(word)}")
        # zlib's checksum is the same in every process; Python's own hash of a string is not.
        return [1 + zlib.crc32(k.encode()) % (AFFIX_BUCKETS - 1) for k in keys]


def _shape(word: str) -> str:
    """Cases and digits with runs made short: "McDonald's" -> "XxXx'x"."""
    kinds = ["X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in word[:20]]
    return "".join(kind for i, kind in enumerate(kinds) if not i or kind != kinds[i - 1])


class Hashed(WordPart):
    """A word in lower case, digits as 0, hashed to `HASHES` rows of a table, so that no vocabulary is needed.

    Words that share one row differ in another (Svenstrup et al. 2017, with weights of one).
    """

    def __init__(self, rows: int) -> None:
        self.name = f"words.hashed:{rows}"
        self._rows = rows

    def numbers(self, word: str) -> Sequence[int]:
        key = word.lower().translate(_DIGITS)
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=4 * HASHES).digest()
        return (1 + np.frombuffer(digest, dtype="<u4") % (self._rows - 1)).tolist()


class Case(WordPart):
    """The kind of a word's first letter, one number below `CASES`."""

    name = "words.case"

    def numbers(self, word: str) -> Sequence[int]:
        first = word[:1]
        return [1 if first.islower() else 2 if first.isupper() else 3 if first.isdigit() else 0]


class Characters(WordPart):
    """Characters of each different word of a batch between its two ends, so that a word is computed once.

    `X.inputs` gets `"words.characters"` `(different word, character)`, below `CHARACTERS`, row 0 padding; and
    `"words.characters.index"` `(batch, token)`, rows of the former.
    """

    name = "words.characters"

    def numbers(self, word: str) -> Sequence[int]:
        points = [ord(character) for character in word[:LONGEST]]
        shared = CHARACTERS - 3 - _PLAIN
        return [1, *(3 + (point if point < _PLAIN else _PLAIN + point % shared) for point in points), 2]

    def collate(self, items: Sequence[np.ndarray], inside: np.ndarray) -> dict[str, Tensor]:
        rows = np.zeros((1 + inside.sum(), max(item.shape[1] for item in items)), dtype=np.int16)
        at = 1
        for item in items:
            rows[at : at + len(item), : item.shape[1]] = item
            at += len(item)
        # As strings of bytes, which end before their last zeros: the row of padding is the least.
        keys = rows.view(f"S{rows.shape[1] * rows.itemsize}")[:, 0]
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        index = np.zeros(inside.shape, dtype=np.int64)
        index[inside] = place[1:]
        words = torch.from_numpy(rows[first].astype(np.int64))
        return {"words.characters": words, "words.characters.index": torch.from_numpy(index)}


class CharacterCnn(CnnEncoder):
    """allennlp-light's layers, `(word, character, char_dim)` -> `(word, filters * widths)`, over words padded enough.

    With a filter's width of padding after the longest word, each word ends in a window of padding alone, and more of
    them change no maximum: no mask is needed. The library's mask is NaN in float64: it adds that type's smallest number
    as a float32. The activation rises, so that it may follow the maximum.
    """

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        columns = tokens.transpose(1, 2)
        return torch.cat([self._activation(layer(columns).amax(2)) for layer in self._convolution_layers], 1)


class VectorRows(WordPart):
    """The row of a word's vector, 0 without one."""

    def __init__(self, vectors: WordVectors, config: Any) -> None:
        self.name = f"vectors:{_checksum(config.file, config.fold, config.digits)}"
        self._vectors, self._fold, self._digits = vectors, config.fold, config.digits

    def numbers(self, word: str) -> Sequence[int]:
        return [self._vectors.row(word, self._fold, self._digits)]


class ClusterRows(WordPart):
    """For each prefix length the number of the word's prefix, 0 without one."""

    def __init__(self, clusters: WordClusters, config: Any) -> None:
        self.name = f"clusters:{_checksum(config.file, config.prefixes)}"
        self._clusters = clusters
        self._none = (0,) * len(config.prefixes)
        tables = [clusters.prefixes(length) for length in config.prefixes]
        self.sizes = [1 + len(table) for table in tables]
        """Rows of each prefix length's table."""
        rows = [{prefix: row for row, prefix in enumerate(table, 1)} for table in tables]
        self._rows = {
            path: tuple(row[path[:length]] for row, length in zip(rows, config.prefixes, strict=True))
            for path in set(clusters.paths.values())
        }

    def numbers(self, word: str) -> Sequence[int]:
        path = self._clusters.path(word)
        return self._none if path is None else self._rows[path]


class VectorTable(nn.Module):
    """Vectors of words, `(...)` rows -> `(..., size)`; words without one share a vector that is learned.

    Vectors that are not trained stay out of the weights: every checkpoint would repeat them. A run's assets have them.
    """

    table: Tensor

    def __init__(self, vectors: WordVectors, tune: bool) -> None:
        super().__init__()
        if tune:
            self.table = nn.Parameter(vectors.matrix.clone())
        else:
            self.register_buffer("table", vectors.matrix, persistent=False)
        self.unknown = nn.Parameter(vectors.matrix[1:].mean(0))

    def forward(self, rows: Tensor) -> Tensor:
        return F.embedding(rows, self.table, padding_idx=0) + (rows == 0).unsqueeze(-1) * self.unknown


class ClusterTable(nn.Module):
    """Embeddings of clusters' prefixes, `(..., prefix)` numbers -> `(..., prefix * dim)`; one table for each length."""

    starts: Tensor

    def __init__(self, sizes: Sequence[int], dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sum(sizes), dim)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.register_buffer("starts", torch.tensor([0, *sizes[:-1]]).cumsum(0), persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        return self.embedding(rows + self.starts).flatten(-2)


_READ: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


def read_once(read: Callable[[Path], Read], path: Path) -> Read:
    """What `read` makes of a file; networks that want the same one share it while any of them lives."""
    if not path.is_file():
        return read(path)  # which says what is wrong
    stat = path.stat()
    key = (read, path.resolve(), stat.st_mtime_ns, stat.st_size)
    found = _READ.get(key)
    if found is None:
        _READ[key] = found = read(path)
    return found


def _checksum(*values: Any) -> str:
    return f"{zlib.crc32(repr(values).encode()):08x}"
