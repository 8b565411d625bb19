"""Features of words from files, vectors and clusters: indices per word, and tables."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.builtin.features.word_tables import WordPart
from spen_plugins.data.words.clusters import WordClusters
from spen_plugins.data.words.vectors import WordVectors

Contents = TypeVar("Contents")


class VectorRows(WordPart):
    """The row of a word's vector, 0 if it has none."""

    def __init__(self, vectors: WordVectors, config: Any) -> None:
        self.name = f"vectors:{_compute_checksum(config.file, config.fold, config.digits)}"
        self._vectors, self._fold, self._digits = vectors, config.fold, config.digits
        self.width = 1

    def numbers(self, word: str) -> Sequence[int]:
        return [self._vectors.row(word, self._fold, self._digits)]


class ClusterRows(WordPart):
    """The index of the word's prefix of each length, 0 if it has none."""

    def __init__(self, clusters: WordClusters, config: Any) -> None:
        self.name = f"clusters:{_compute_checksum(config.file, config.prefixes)}"
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


def read_once(read: Callable[[Path], Contents], path: Path) -> Contents:
    """The result of `read` for a file, shared by networks that use the same file while any of them exists."""
    if not path.is_file():
        return read(path)  # raises the error
    stat = path.stat()
    key = (read, path.resolve(), stat.st_mtime_ns, stat.st_size)
    contents = _READ.get(key)
    if contents is None:
        _READ[key] = contents = read(path)
    return contents


def _compute_checksum(*values: Any) -> str:
    return f"{zlib.crc32(repr(values).encode()):08x}"
