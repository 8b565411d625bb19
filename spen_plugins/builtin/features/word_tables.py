"""Features of words from their letters and from files: indices per word, and tables of vectors."""

from __future__ import annotations

import hashlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import torch
from allennlp_light.modules.seq2vec_encoders import CnnEncoder
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.data.words.clusters import WordClusters
from spen_plugins.data.words.vectors import WordVectors
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

Read = TypeVar("Read")


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
            table: `(word, width)` indices of all words seen so far; zeros in row 0.
            rows: `(batch, token)` rows of the table, 0 on padding.
        """
        return {self.name: torch.from_numpy(table[rows].astype(np.int64))}


class WordIndexer(Indexer):
    """All parts of a network's word features; each word is processed once."""

    def __init__(self, parts: Sequence[WordPart]) -> None:
        self.parts = parts
        self.name = "+".join(part.name for part in parts)
        self._known = _Rows(parts)

    def index(self, words: Sequence[str]) -> Sequence[str]:
        """The words themselves; features are looked up batch by batch."""
        return words

    def collate(self, items: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        counts = np.array([len(words) for words in items])
        rows = np.zeros((len(items), int(counts.max())), dtype=np.int64)
        with _LOCK:
            if len(self._known) > REMEMBERED:
                self._known = _Rows(self.parts)
            known = self._known
            rows[np.arange(rows.shape[1]) < counts[:, None]] = [known[word] for words in items for word in words]
            tables = known.tables()
        tensors: dict[str, Tensor] = {}
        for part, table in zip(self.parts, tables, strict=True):
            tensors.update(part.collate(table, rows))
        return tensors


_LOCK = Lock()
"""Threads may share a predictor. The lock is global, so that indexers can be copied to other processes."""


class _Rows(dict[str, int]):
    """Word -> its row, from 1, in the table of each part."""

    def __init__(self, parts: Sequence[WordPart]) -> None:
        super().__init__()
        self._parts = parts
        self._tables = [np.zeros((1, part.width), dtype=np.int32) for part in parts]
        self._new: list[str] = []

    def __missing__(self, word: str) -> int:
        self._new.append(word)
        self[word] = row = len(self) + 1
        return row

    def tables(self) -> list[np.ndarray]:
        """The tables with all words looked up so far; full tables double in size."""
        before, after = len(self) + 1 - len(self._new), len(self) + 1
        for i, part in enumerate(self._parts if self._new else ()):
            if after > len(self._tables[i]):
                larger = np.zeros((2 * after, part.width), dtype=np.int32)
                larger[:before] = self._tables[i][:before]
                self._tables[i] = larger
            for row, word in enumerate(self._new, before):
                numbers = part.numbers(word)
                self._tables[i][row, : len(numbers)] = numbers
        self._new = []
        return list(self._tables)


class Affixes(WordPart):
    """Hashed prefix, suffixes and shape of a word: four indices below `AFFIX_BUCKETS`."""

    name = "words.affixes"
    width = 4

    def numbers(self, word: str) -> Sequence[int]:
        lower = word.lower()
        keys = (f"p{lower[:3]}", f"s{lower[-2:]}", f"t{lower[-3:]}", f"x{_shape(word)}")
        # zlib's checksum is the same in every process; Python's own hash of a string is not.
        return [1 + zlib.crc32(k.encode("utf-8", "surrogatepass")) % (AFFIX_BUCKETS - 1) for k in keys]


def _shape(word: str) -> str:
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
        different, first, place = np.unique(np.append(0, rows), return_index=True, return_inverse=True)
        # The table's rows depend on earlier batches, which a resumed run has not seen.
        order = first.argsort()
        spelt = table[different[order]]
        longest = int((spelt > 0).sum(1).max())
        words = torch.from_numpy(spelt[:, :longest].astype(np.int64))
        index = torch.from_numpy(order.argsort()[place[1:]].reshape(rows.shape))
        return {"words.characters": words, "words.characters.index": index}


class CharacterCnn(CnnEncoder):
    """allennlp-light's layers, `(word, character, char_dim)` -> `(word, filters * widths)`, over well-padded words.

    With a filter's width of padding after the longest word, each word ends in a window of padding alone, and more
    padding changes no maximum, so no mask is needed. The library's mask is NaN in float64: it adds that type's smallest
    number as a float32. The activation is increasing, so it can follow the maximum.
    """

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        columns = tokens.transpose(1, 2)
        return torch.cat([self._activation(layer(columns).amax(2)) for layer in self._convolution_layers], 1)


class VectorRows(WordPart):
    """The row of a word's vector, 0 if it has none."""

    def __init__(self, vectors: WordVectors, config: Any) -> None:
        self.name = f"vectors:{_checksum(config.file, config.fold, config.digits)}"
        self._vectors, self._fold, self._digits = vectors, config.fold, config.digits
        self.width = 1

    def numbers(self, word: str) -> Sequence[int]:
        return [self._vectors.row(word, self._fold, self._digits)]


class ClusterRows(WordPart):
    """The index of the word's prefix of each length, 0 if it has none."""

    def __init__(self, clusters: WordClusters, config: Any) -> None:
        self.name = f"clusters:{_checksum(config.file, config.prefixes)}"
        self._clusters = clusters
        self.width = len(config.prefixes)
        self._none = (0,) * len(config.prefixes)
        tables = [clusters.prefixes(length) for length in config.prefixes]
        self.sizes = [1 + len(table) for table in tables]
        """Number of rows of each prefix length's table."""
        rows = [{prefix: row for row, prefix in enumerate(table, 1)} for table in tables]
        self._rows = {
            path: tuple(row[path[:length]] for row, length in zip(rows, config.prefixes, strict=True))
            for path in set(clusters.paths.values())
        }

    def numbers(self, word: str) -> Sequence[int]:
        path = self._clusters.path(word)
        return self._none if path is None else self._rows[path]


class VectorTable(nn.Module):
    """Vectors of words, `(...)` rows -> `(..., size)`; words without one share a learned vector.

    Vectors that are not trained are not stored with the weights of every checkpoint, but with the run's assets.
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
    """Embeddings of clusters' prefixes, `(..., prefix)` indices -> `(..., prefix * dim)`; one table per length."""

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
    """The result of `read` for a file, shared by networks that use the same file while any of them exists."""
    if not path.is_file():
        return read(path)  # raises the error
    stat = path.stat()
    key = (read, path.resolve(), stat.st_mtime_ns, stat.st_size)
    found = _READ.get(key)
    if found is None:
        _READ[key] = found = read(path)
    return found


def _checksum(*values: Any) -> str:
    return f"{zlib.crc32(repr(values).encode()):08x}"
