"""Word vectors from words, letters and files: the input layer of the networks `bilstm` and `encoder`."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from allennlp_light.modules import TimeDistributed
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.batch import X
from spen_plugins.builtin.features.word_tables import (
    AFFIX_BUCKETS,
    AFFIXES,
    CASE,
    CASES,
    CHARACTERS,
    SPELLING,
    CharacterCnn,
    ClusterTable,
    VectorTable,
    WordIndexer,
    make_cluster_rows,
    make_hashed,
    make_vector_rows,
    read_once,
)
from spen_plugins.data.catalogue import locate
from spen_plugins.data.text import sha256
from spen_plugins.data.words import STORED, WordClusters, WordVectors, read_clusters, read_vectors
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.files import save_bytes
from spen_plugins.spaces.sparse import Lists
from spen_plugins.task import Indexer, Task, WordInputs

UNKNOWN = 1


class WordNetwork(FeatureNetwork):
    """A network over sentences. `_embed` computes vectors of words, of width `word_width`, for subclasses.

    With a `reader`, such as a pretrained encoder, a word's vector ends in the reader's vector of the word: the letters
    and cases beside it add what an encoder of lower-case words doesn't see.

    Published scores depend on the order of weights, random numbers and parts of a vector: add new ones at the end.
    """

    parts: ClassVar[Mapping[str, str]] = {"reader": "features"}

    def __init__(self, config: Any, task: Task, name: str, reader: FeatureNetwork | None) -> None:
        super().__init__(config, task)
        inputs = task.inputs
        if not isinstance(inputs, WordInputs):
            raise ConfigError(
                f"features {name!r} requires sentences (tasks 'srl' and 'tagging'), but this task has other inputs; "
                "use 'mlp' or 'ngrams'"
            )
        self.words = nn.Embedding(len(inputs.words), config.word_dim, padding_idx=0) if config.word_dim else None
        marks = inputs.marks if config.mark_dim else {}
        self.marks = nn.ModuleDict({mark: nn.Embedding(n, config.mark_dim) for mark, n in marks.items()})
        self.affixes = Bags(AFFIX_BUCKETS, config.affix_dim) if config.affix_dim else None
        for table in (self.words, self.affixes, *self.marks.values()):
            if table is not None:
                nn.init.normal_(table.weight, std=0.1)
        width = config.word_dim + config.affix_dim + config.mark_dim * len(self.marks)
        self.characters = nn.Embedding(CHARACTERS, config.char_dim, padding_idx=0) if config.char_dim else None
        if config.char_dim:
            cnn = CharacterCnn(config.char_dim, config.char_filters, tuple(config.char_widths), nn.ReLU())
            self.cnn = TimeDistributed(cnn)
            width += cnn.get_output_dim()
        self.word_width = width + self._add_others(config, inputs)
        self.reader = reader
        if reader is not None:
            self.word_width += reader.output_dim
        if not self.word_width:
            raise ConfigError(
                f"features {name!r} has no input: word_dim, mark_dim, affix_dim, char_dim, column_dim, case_dim and "
                "hash_dim are 0 or unused here, and vectors, clusters and reader are null; set one of them"
            )

    def _add_others(self, config: Any, inputs: WordInputs) -> int:
        """Makes tables of columns, case, vectors and clusters, and the indexer's parts; returns the tables' width."""
        self._columns = list(inputs.columns) if config.column_dim else []
        self.columns = nn.ModuleList(
            nn.Embedding(inputs.columns[column], config.column_dim, padding_idx=0) for column in self._columns
        )
        self.case = nn.Embedding(CASES, config.case_dim) if config.case_dim else None
        for table in (*self.columns, self.case):
            if table is not None:
                nn.init.normal_(table.weight, std=0.1)
        width = config.column_dim * len(self._columns) + config.case_dim
        tables = ((AFFIXES, self.affixes), (SPELLING, self.characters), (CASE, self.case))
        parts = [part for part, table in tables if table is not None]
        self.vectors = self.clusters = None
        self._contents: dict[str, WordVectors | WordClusters] = {}  # of files, by the setting that names the file
        if config.vectors is not None:
            self._contents["vectors"] = vectors = read_once(read_vectors, locate(config.vectors.file))
            self.vectors = VectorTable(vectors, config.vectors.tune)
            self._vector_part = make_vector_rows(vectors, config.vectors)
            parts.append(self._vector_part)
            width += len(self.vectors.unknown)
        if config.clusters is not None:
            self._contents["clusters"] = clusters = read_once(read_clusters, locate(config.clusters.file))
            self._cluster_part, sizes = make_cluster_rows(clusters, config.clusters)
            self.clusters = ClusterTable(sizes, config.clusters.dim)
            parts.append(self._cluster_part)
            width += config.clusters.dim * len(config.clusters.prefixes)
        self.hashed = Bags(config.hash_rows, config.hash_dim) if config.hash_dim else None
        if self.hashed is not None:
            nn.init.normal_(self.hashed.weight, std=0.1)
            self._hash_part = make_hashed(config.hash_rows)
            parts.append(self._hash_part)
            width += config.hash_dim
        self._indexer = WordIndexer(parts)
        return width

    def indexer(self) -> tuple[str, Indexer] | None:
        return (self._indexer.name, self._indexer) if self._indexer.parts else None

    def save_assets(self, folder: Path) -> None:
        """Saves the vectors and clusters, also for words unseen in training."""
        for key, contents in self._contents.items():
            save_bytes(contents.to_bytes(), folder / _name_asset(key, getattr(self.config, key).file), parents=True)

    def checksums(self) -> dict[str, str]:
        sources = (self.config.vectors, self.config.clusters)
        return {options.file: sha256(locate(options.file)) for options in sources if options is not None}

    @classmethod
    def relocated(cls, config: Any, assets: Path) -> Any:
        updates = {}
        for key in ("vectors", "clusters"):
            options = getattr(config, key)
            if options is not None and (path := assets / _name_asset(key, options.file)).is_file():
                updates[key] = options.model_copy(update={"file": str(path)})
        return config.model_copy(update=updates)

    def _embed(self, x: X) -> tuple[Tensor, Tensor]:
        """`(batch, token, word_width)`, arbitrary on padding, and the mask `(batch, token)`."""
        inputs, words, mask = x.inputs, x.inputs["words"], token_mask(x)
        parts = []
        if self.words is not None:
            parts.append(self.words(self._hide_words(words, mask, UNKNOWN)))
        if self.affixes is not None:
            parts.append(self.affixes(inputs[AFFIXES.name]))
        parts.extend(table(inputs[name]) for name, table in self.marks.items())
        if self.characters is not None:
            letters = F.pad(inputs["words.characters"], (0, max(self.config.char_widths)))
            # The library's wrapper needs a time dimension.
            spellings = self.cnn(self.characters(letters).unsqueeze(0)).squeeze(0)
            parts.append(F.embedding(inputs["words.characters.index"], spellings))
        for name, table in zip(self._columns, self.columns, strict=True):
            parts.append(table(self._hide_words(inputs[name], mask, UNKNOWN)))
        if self.case is not None:
            parts.append(self.case(inputs[CASE.name].squeeze(-1)))
        if self.vectors is not None:
            parts.append(self.vectors(self._hide_words(inputs[self._vector_part.name].squeeze(-1), mask, 0)))
        if self.clusters is not None:
            parts.append(self.clusters(self._hide_words(inputs[self._cluster_part.name], mask, 0)))
        if self.hashed is not None:
            parts.append(self.hashed(self._hide_words(inputs[self._hash_part.name], mask, 0)))
        if self.reader is not None:
            parts.append(self.reader(x))
        return torch.cat(parts, -1), mask

    def _hide_words(self, numbers: Tensor, mask: Tensor, unknown: int) -> Tensor:
        """Word dropout: in training a share of tokens read as unknown, `(batch, token)` or `(batch, token, width)`."""
        if not self.training or not self.config.word_dropout:
            return numbers
        is_hidden = (torch.rand(mask.shape, device=mask.device) < self.config.word_dropout) & mask
        return torch.where(is_hidden if numbers.dim() == 2 else is_hidden.unsqueeze(-1), unknown, numbers)


class Bags(nn.EmbeddingBag):
    """Sums of rows of a table, with derivatives of any order, unlike torch's own."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__(rows, width, mode="sum")

    def forward(self, rows: Tensor) -> Tensor:
        """Row indices `(batch, token, number)` -> `(batch, token, width)`."""
        offsets = torch.arange(0, rows.numel(), rows.shape[-1], device=rows.device)
        return Lists(rows.flatten(), offsets, len(self.weight)).sums(self.weight).unflatten(0, rows.shape[:-1])


def token_mask(x: X) -> Tensor:
    """The mask of words, `(batch, token)`.

    Raises:
        ConfigError: `x.mask` is not a mask of words, but for example of arcs.
    """
    words = x.inputs["words"]
    if x.mask is None:
        return torch.ones_like(words, dtype=torch.bool)
    if x.mask.shape != words.shape:
        raise ConfigError(
            f"outputs are not tags of words: found {x.mask.shape[1]} variables per example for {words.shape[1]} words; "
            "choose a net and an energy for such outputs; `spen describe inference_net` and `spen describe energy` "
            "list what is installed"
        )
    return x.mask


def _name_asset(kind: str, file: str) -> str:
    """An asset's name: equal for networks with the same file, made unique by a checksum of its path."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", Path(file).name).strip("-")[-40:]
    return f"{kind}-{slug}-{zlib.crc32(file.encode()):08x}" + (STORED if kind == "vectors" else ".txt")
