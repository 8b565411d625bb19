"""Feature networks `ngrams`, layers over bags of words and hashed n-grams, and `bag`, for linear models: vectors, and
tf-idf of texts' n-grams."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor

from spen_plugins.batch import X
from spen_plugins.builtin.features.mlp import BagLinear, Layers, make_rest
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.settings.config import Config
from spen_plugins.task import Indexer, Task, TextInputs, VectorInputs

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_2 = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)
_CACHE_SIZE = 500_000
"""Maximal number of distinct words whose hashes are cached."""

BagRows = tuple[np.ndarray, np.ndarray]
"""Distinct rows `(n,)` int32, and their values `(n,)` float32."""


class Grams(Config):
    """N-grams of a text that are counted."""

    words: int = Field(2, ge=1)
    """Longest n-gram, in words."""
    characters: list[PositiveInt] | None = Field(None, min_length=2, max_length=2)
    """Shortest and longest n-gram of characters, inside words with end markers; null: none."""
    vocabulary: bool = True
    """If true, single words have their own rows (unknown words none); otherwise they are hashed like the others."""
    buckets: int = Field(2**15, ge=0)
    """Number of rows shared by hashed n-grams."""

    @model_validator(mode="after")
    def _check_hashing(self) -> Grams:
        low, high = self.characters or (1, 1)
        if low > high:
            raise ValueError(f"characters: found {self.characters}; expected the shorter length first, as in [3, 5]")
        if not self.buckets and (self.words > 1 or self.characters or not self.vocabulary):
            raise ValueError("buckets: found 0; hashed n-grams (words > 1, characters, no vocabulary) require buckets")
        return self


class Ngrams(FeatureNetwork):
    """Texts -> `(batch, hidden[-1])`: a weighted sum of embeddings, then layers (fastText; Joulin et al. 2017).

    Words of the vocabulary have their own rows. N-grams of two and more words, and character n-grams of single words,
    share `buckets` rows by a machine-independent hash. Plain bags of words are `words=1, buckets=0`.
    """

    class Config(Layers, Grams):
        pass

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__(config, task)
        if not isinstance(task.inputs, TextInputs):
            raise ConfigError("features 'ngrams' requires texts (task 'text'), but this task has other inputs")
        self._indexer = NgramIndexer(task.inputs.words if config.vocabulary else None, config)
        self.first = BagLinear(self._indexer.size, config.hidden[0])
        # A text has few of very many n-grams, and its values have norm 1: an initial scale of one over the square root
        # of the table's rows, as in a dense layer, would start every text near 0.
        torch.nn.init.normal_(self.first.weight, std=0.1)
        self.rest = make_rest(config)
        self.output_dim = config.hidden[-1]

    def indexer(self) -> tuple[str, Indexer]:
        return self._indexer.name, self._indexer

    def forward(self, x: X) -> Tensor:
        rows, offsets, values = (x.inputs[f"{self._indexer.name}.{part}"] for part in ("rows", "offsets", "values"))
        return self.rest(self.first(rows, offsets, values.to(self.first.weight.dtype)))


class NgramIndexer(Indexer):
    """A text's words -> its bag: rows, and 1 + ln c for an n-gram that occurs c times.

    A batch has `name.rows` and `name.values` `(total,)`, and `name.offsets` `(batch,)`.

    Args:
        vocabulary: words with their own rows, which come first; None if words are hashed.
        config: config of the network; networks with equal settings share an indexer, named after them.
        normed: if true, a text's values have the L2 norm 1.
    """

    def __init__(self, vocabulary: Sequence[str] | None, config: Any, normed: bool = True) -> None:
        self._word_numbers = None if vocabulary is None else {word: i for i, word in enumerate(vocabulary)}
        self._c, self._vocabulary_size, self._normed = config, len(vocabulary or ()), normed
        self.size = self._vocabulary_size + config.buckets
        low, high = config.characters or (0, 0)
        kind = "words" if vocabulary is not None else "hashes"
        self.name = f"{kind}-{config.words}-{low}-{high}-{config.buckets}{'-normed' * normed}"
        self._character_rows: dict[str, np.ndarray] = {}

    def index(self, words: Sequence[str]) -> BagRows:
        c, rows = self._c, []
        if self._word_numbers is not None:
            numbers = map(self._word_numbers.get, words)
            rows.append(np.array([number for number in numbers if number is not None], dtype=np.int64))
        if c.buckets:
            rows += [self._find_rows(grams) for grams in self._hash_word_grams(words)]
        if c.characters:
            rows += [self._find_character_rows(word) for word in words]
        distinct_rows, counts = np.unique(np.concatenate(rows), return_counts=True)
        values = 1 + np.log(counts)
        if self._normed:
            values /= np.sqrt(values @ values) or 1.0
        return distinct_rows.astype(np.int32), values.astype(np.float32)

    def collate(self, items: Sequence[BagRows]) -> dict[str, Tensor]:
        lengths = np.array([len(rows) for rows, _ in items], dtype=np.int64)
        tensors = {
            "rows": np.concatenate([rows for rows, _ in items]).astype(np.int64),
            "values": np.concatenate([values for _, values in items]),
            "offsets": lengths.cumsum() - lengths,
        }
        return {f"{self.name}.{part}": torch.from_numpy(value) for part, value in tensors.items()}

    def _find_rows(self, hashes: np.ndarray) -> np.ndarray:
        """Hashes -> rows after the vocabulary's. Sums of hashes are mixed first, because their low bits are weak."""
        mixed = (hashes ^ (hashes >> _SHIFT)) * _FACTOR_2
        return self._vocabulary_size + ((mixed ^ (mixed >> _SHIFT)) % np.uint64(self._c.buckets)).astype(np.int64)

    def _hash_word_grams(self, words: Sequence[str]) -> list[np.ndarray]:
        """Hashes of n-grams, by n; in an n-gram all unknown words are equal."""
        word_numbers = self._word_numbers
        hashes = np.fromiter(
            (stable_hash(word if word_numbers is None or word in word_numbers else "") for word in words),
            np.uint64,
            len(words),
        )
        grams, hashes_by_n = hashes, [hashes] if word_numbers is None else []
        for n in range(2, min(self._c.words, len(words)) + 1):
            grams = grams[:-1] * _FACTOR + hashes[n - 1 :]
            hashes_by_n.append(grams)
        return hashes_by_n

    def _find_character_rows(self, word: str) -> np.ndarray:
        """Rows of a word's character n-grams, with `<` and `>` at its ends; none if the word is shorter."""
        if word in self._character_rows:
            return self._character_rows[word]
        low, high = self._c.characters
        text = f"<{word}>"
        grams = [text[i : i + n] for n in range(low, min(high, len(text)) + 1) for i in range(len(text) - n + 1)]
        rows = self._find_rows(np.array([stable_hash(f"#{gram}") for gram in grams], dtype=np.uint64))
        if len(self._character_rows) < _CACHE_SIZE:
            self._character_rows[word] = rows
        return rows


@lru_cache(_CACHE_SIZE)
def stable_hash(text: str) -> int:
    """64 bits of BLAKE2b: the same in every process and on every machine, unlike Python's own `hash`."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class Bag(FeatureNetwork):
    """Vectors as they are, or the tf-idf values of a text's n-grams with L2 norm 1: `(batch, size)`.

    It has no parameters. idf is ln((1 + n) / (1 + n with the n-gram)) + 1 over the texts of `learn`, and 1 before that.
    """

    class Config(Grams):
        buckets: int = Field(2**17, ge=0)
        """Number of entries shared by hashed n-grams of texts."""

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__(config, task)
        self._indexer: NgramIndexer | None = None
        if isinstance(task.inputs, VectorInputs):
            self.output_dim = task.inputs.size
        elif isinstance(task.inputs, TextInputs):
            # The values have norm 1 after idf.
            self._indexer = NgramIndexer(task.inputs.words if config.vocabulary else None, config, normed=False)
            self.output_dim = self._indexer.size
            self.register_buffer("idf", torch.ones(self.output_dim))
        else:
            raise ConfigError("features 'bag' requires vectors or texts, but this task has other inputs")

    def indexer(self) -> tuple[str, Indexer] | None:
        return None if self._indexer is None else (self._indexer.name, self._indexer)

    def learn(self, batches: Iterable[X]) -> None:
        """Sets the idf of texts' n-grams from training texts."""
        if self._indexer is None:
            return
        texts, text_counts = 0, np.zeros(self.output_dim)
        for x in batches:
            texts += x.size
            text_counts += np.bincount(x.inputs[f"{self._indexer.name}.rows"].cpu().numpy(), minlength=self.output_dim)
        self.idf.copy_(torch.from_numpy(np.log((1 + texts) / (1 + text_counts)) + 1))

    def lists(self, x: X) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of a batch as lists of entries: `row`, `column` and `value` of each, `(total,)`."""
        names = ("indices", "offsets", "values")
        if self._indexer is not None:
            names = tuple(f"{self._indexer.name}.{part}" for part in ("rows", "offsets", "values"))
        column, offsets = x.inputs[names[0]], x.inputs[names[1]]
        value = x.inputs.get(names[2], torch.ones_like(column, dtype=torch.float32))
        lengths = torch.diff(offsets, append=offsets.new_tensor([len(column)]))
        row = torch.repeat_interleave(torch.arange(x.size, device=column.device), lengths)
        if self._indexer is not None:
            value = value.to(self.idf.dtype) * self.idf[column]
            square = value.new_zeros(x.size).index_add(0, row, value.square())
            value = value / square.clamp(min=1e-12).sqrt()[row]
        return row, column, value

    def forward(self, x: X) -> Tensor:
        if "vector" in x.inputs:
            return x.inputs["vector"]
        row, column, value = self.lists(x)
        return value.new_zeros(x.size, self.output_dim).index_put((row, column), value, accumulate=True)
