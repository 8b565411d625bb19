"""Features of words from their letters and from files, vectors and clusters: indices per word, and tables."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import torch
from allennlp_light.modules.seq2vec_encoders import CnnEncoder
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.data.text import DIGITS
from spen_plugins.data.words import WordClusters, WordVectors
from spen_plugins.sentences.batches import REMEMBERED
from spen_plugins.task import Indexer

AFFIX_BUCKETS = 6000
HASHES = 3
"""Number of rows of a hashed word, which are summed."""
CHARACTERS = 1024
"""Rows of the table of characters; 0 is padding, 1 and 2 are a word's two ends."""
LONGEST = 40
"""Maximal number of characters of a word that are used."""
_LATIN_ROWS = 512
"""Number of characters with their own rows, those of Latin scripts; the others share the remaining rows."""
CASES = 4
"""Kinds of a word's first letter: 0 neither letter nor digit, 1 lower case, 2 upper case, 3 a digit."""


class WordPart(NamedTuple):
    """Indices of a word, `X.inputs[name]` `(batch, token, width)`, zero on padding.

    Parts with equal names give equal indices; a name must differ from the task's columns.
    """

    name: str
    width: int
    """Maximal number of indices of a word."""
    numbers: Callable[[str], Sequence[int]]
    """Indices of a word, at most `width`; padded with zeros."""


class WordIndexer(Indexer):
    """All parts of a network's word features; the indices of `REMEMBERED` words are cached."""

    def __init__(self, parts: Sequence[WordPart]) -> None:
        self.parts = parts
        self.name = "+".join(part.name for part in parts)
        self._word_indices: dict[str, np.ndarray] = {}

    def index(self, words: Sequence[str]) -> Sequence[str]:
        """The words themselves; features are looked up batch by batch."""
        return words

    def collate(self, items: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        numbers: dict[str, int] = {}
        rows = np.zeros((len(items), max(map(len, items))), dtype=np.int64)
        for row, words in zip(rows, items, strict=True):
            row[: len(words)] = [numbers.setdefault(word, len(numbers) + 1) for word in words]
        if len(self._word_indices) > REMEMBERED:
            self._word_indices = {}
        word_indices = self._word_indices  # threads may share a predictor
        for word in numbers:
            if word not in word_indices:
                word_indices[word] = self._index_word(word)
        edges = np.cumsum([part.width for part in self.parts])
        table = np.stack([np.zeros(edges[-1], dtype=np.int32), *(word_indices[word] for word in numbers)])
        tensors: dict[str, Tensor] = {}
        for part, columns in zip(self.parts, np.split(table, edges[:-1], 1), strict=True):
            if part.name == SPELLING.name:
                longest = int((columns > 0).sum(1).max())
                tensors[part.name] = torch.from_numpy(columns[:, :longest].astype(np.int64))
                tensors[f"{part.name}.index"] = torch.from_numpy(rows)
            else:
                tensors[part.name] = torch.from_numpy(columns[rows].astype(np.int64))
        return tensors

    def _index_word(self, word: str) -> np.ndarray:
        """Indices of a word, part by part."""
        padded = ([*(numbers := part.numbers(word)), *[0] * (part.width - len(numbers))] for part in self.parts)
        return np.array(list(chain.from_iterable(padded)), dtype=np.int32)


def _number_affixes(word: str) -> Sequence[int]:
    lower = word.lower()
    keys = (f"p{lower[:3]}", f"s{lower[-2:]}", f"t{lower[-3:]}", f"x{_find_shape(word)}")
    # zlib's checksum is the same in every process; Python's own hash of a string is not.
    return [1 + zlib.crc32(k.encode("utf-8", "surrogatepass")) % (AFFIX_BUCKETS - 1) for k in keys]


def _find_shape(word: str) -> str:
    """Cases and digits with repetitions collapsed: "McDonald's" -> "XxXx'x"."""
    kinds = ["X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in word[:20]]
    return "".join(kind for i, kind in enumerate(kinds) if not i or kind != kinds[i - 1])


def make_hashed(rows: int) -> WordPart:
    """A word in lower case, digits as 0, hashed to `HASHES` rows of a table, so that no vocabulary is needed.

    Words that share one row mostly differ in another (Svenstrup et al. 2017, with weights of one).
    """

    def hash_word(word: str) -> Sequence[int]:
        key = word.lower().translate(DIGITS)
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=4 * HASHES).digest()
        return (1 + np.frombuffer(digest, dtype="<u4") % (rows - 1)).tolist()

    return WordPart(f"words.hashed:{rows}", HASHES, hash_word)


def _number_case(word: str) -> Sequence[int]:
    first = word[:1]
    return [1 if first.islower() else 2 if first.isupper() else 3 if first.isdigit() else 0]


def _number_characters(word: str) -> Sequence[int]:
    points = [ord(character) for character in word[:LONGEST]]
    shared_rows = CHARACTERS - 3 - _LATIN_ROWS
    return [1, *(3 + (point if point < _LATIN_ROWS else _LATIN_ROWS + point % shared_rows) for point in points), 2]


AFFIXES = WordPart("words.affixes", 4, _number_affixes)
"""Hashed prefix, suffixes and shape of a word: four indices below `AFFIX_BUCKETS`."""
CASE = WordPart("words.case", 1, _number_case)
"""The kind of a word's first letter, one index below `CASES`."""
SPELLING = WordPart("words.characters", LONGEST + 2, _number_characters)
"""Characters of each distinct word of a batch, with end markers, so that a word is computed once.

`X.inputs` gets `"words.characters"` `(distinct word, character)`, below `CHARACTERS`, row 0 padding, the words in
order of first occurrence in the batch; and `"words.characters.index"` `(batch, token)`, rows of the former.
"""


class CharacterCnn(CnnEncoder):
    """allennlp-light's layers, `(word, character, char_dim)` -> `(word, filters * widths)`, over well-padded words.

    With a filter's width of padding after the longest word, each word ends in a window of padding alone, and more
    padding changes no maximum, so no mask is needed. The library's mask is NaN in float64: it adds that type's smallest
    number as a float32. The activation is increasing, so it can follow the maximum.
    """

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        columns = tokens.transpose(1, 2)
        return torch.cat([self._activation(layer(columns).amax(2)) for layer in self._convolution_layers], 1)


Contents = TypeVar("Contents")


def make_vector_rows(vectors: WordVectors, config: Any) -> WordPart:
    """The row of a word's vector, 0 if it has none."""
    name = f"vectors:{_compute_checksum(config.file, config.fold, config.digits)}"
    return WordPart(name, 1, lambda word: [vectors.row(word, config.fold, config.digits)])


def make_cluster_rows(clusters: WordClusters, config: Any) -> tuple[WordPart, list[int]]:
    """The index of the word's prefix of each length, 0 if it has none; and the rows of each length's table."""
    tables = [clusters.prefixes(length) for length in config.prefixes]
    numbers = [{prefix: row for row, prefix in enumerate(table, 1)} for table in tables]
    rows = {
        path: tuple(row[path[:length]] for row, length in zip(numbers, config.prefixes, strict=True))
        for path in set(clusters.paths.values())
    }
    no_rows = (0,) * len(config.prefixes)

    def find_rows(word: str) -> Sequence[int]:
        path = clusters.path(word)
        return no_rows if path is None else rows[path]

    name = f"clusters:{_compute_checksum(config.file, config.prefixes)}"
    return WordPart(name, len(config.prefixes), find_rows), [1 + len(table) for table in tables]


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


_CONTENTS: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


def read_once(read: Callable[[Path], Contents], path: Path) -> Contents:
    """The result of `read` for a file, shared by networks that use the same file while any of them exists."""
    if not path.is_file():
        return read(path)  # raises the error
    stat = path.stat()
    key = (read, path.resolve(), stat.st_mtime_ns, stat.st_size)
    contents = _CONTENTS.get(key)
    if contents is None:
        _CONTENTS[key] = contents = read(path)
    return contents


def _compute_checksum(*values: Any) -> str:
    return f"{zlib.crc32(repr(values).encode()):08x}"
