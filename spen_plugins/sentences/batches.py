"""Shared parts of tasks over sentences: vocabulary and padded tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.data.schemes import Span
from spen_plugins.data.text import DIGITS
from spen_plugins.task import Indexer

PADDING = "<pad>"
"""Word of a vocabulary for padding, number 0."""
UNKNOWN = "<unk>"
"""Word of a vocabulary for any unknown word, number 1."""
WHOLE = "sentence."
"""Prefix of the names of the tensors that have a row for each different sentence of a batch."""
REMEMBERED = 300_000
"""Most words whose indices are cached, for fast look-up; a full cache is emptied, so that a long text does not fill
the memory."""


class Vocabulary:
    """Words and their indices: 0 padding, 1 unknown, then `words` in order; the config is a `LookUpConfig`."""

    def __init__(self, words: Sequence[str], config: Any) -> None:
        self.words = list(words)
        self._config = config
        self._number = {word: i for i, word in enumerate(words, 2)}
        self._cache: dict[str, int] = {}

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], config: Any) -> Vocabulary:
        """The vocabulary of words that occur at least `min_count` times, most frequent first."""
        return cls.of_counts(Counter(word for words in sentences for word in words), config)

    @classmethod
    def of_counts(cls, words: Mapping[str, int], config: Any) -> Vocabulary:
        """The same vocabulary, from the number of times that each word occurs."""
        empty, counts = cls([], config), Counter[str]()
        for word, count in words.items():
            counts[empty.key(word)] += count
        sorted_counts = sorted(counts.items(), key=lambda i: (-i[1], i[0]))
        return cls([word for word, count in sorted_counts if count >= config.min_count], config)

    def key(self, word: str) -> str:
        """Normalised form of a word for the look-up."""
        word = word.lower() if self._config.lowercase else word
        return word.translate(DIGITS) if self._config.digits else word

    def number(self, word: str) -> int:
        """A word's index."""
        return self._number.get(self.key(word), 1)

    def entry(self, words: tuple[str, ...]) -> Entry:
        """A sentence with its words' indices."""
        cache = self._cache
        try:
            numbers = [cache[word] for word in words]
        except KeyError:
            indices = {word: self.number(word) for word in words}
            if len(cache) > REMEMBERED:
                cache.clear()
            cache.update(indices)
            numbers = [indices[word] for word in words]
        return Entry(words, np.array(numbers, dtype=np.int64))


@dataclass(eq=False)
class Entry:
    """A sentence, shared by all its examples."""

    words: tuple[str, ...]
    ids: np.ndarray
    """`(token,)` word indices."""
    items: dict[str, Any] = field(default_factory=dict)
    """Output of each indexer for the sentence, by the indexer's name."""

    def item(self, name: str, indexer: Indexer) -> Any:
        """Output of this indexer for the sentence, computed once."""
        if name not in self.items:
            self.items[name] = indexer.index(self.words)
        return self.items[name]

    def length(self, indexers: Mapping[str, Indexer]) -> int:
        """Length in words, or in pieces if indexers cut words into pieces: a few words can have many of them."""
        lengths = [indexer.length(self.item(name, indexer)) for name, indexer in indexers.items() if indexer.pads]
        return max((n for n in lengths if n is not None), default=len(self.ids))


@dataclass(eq=False)
class TaggedExample:
    """A sentence; `names` are its gold tags if known, in the task's encoding, `tags` their indices, -1 if unseen."""

    entry: Entry
    columns: dict[str, np.ndarray]
    """Name of each extra column -> `(token,)` value indices."""
    names: tuple[str, ...] | None = None
    tags: np.ndarray | None = None
    spans: frozenset[Span] = frozenset()
    """Gold spans, including types unseen in training."""
    weight: float = 1.0
    """The weight of its loss."""


@dataclass(frozen=True)
class SentenceBatch(Batch):
    """A batch with its examples, because `gold` can't represent labels that are unseen in training."""

    examples: tuple[Any, ...] = ()


def collate_words(entries: Sequence[Entry], indexers: Mapping[str, Indexer]) -> tuple[dict[str, Tensor], np.ndarray]:
    """`"words"` `(batch, token)` and the indexers' tensors; and the mask `(batch, token)` boolean."""
    lengths = np.fromiter((len(entry.ids) for entry in entries), dtype=np.int64, count=len(entries))
    mask = np.arange(int(lengths.max(initial=1))) < lengths[:, None]
    inputs = {"words": padded([entry.ids for entry in entries], mask)}
    for name, indexer in indexers.items():
        inputs.update(indexer.collate([entry.item(name, indexer) for entry in entries]))
    return inputs, mask


def collate_sentences(entries: Sequence[Entry], indexers: Mapping[str, Indexer]) -> dict[str, Tensor]:
    """Each different sentence once: the tensors of `collate_words` under `sentence.NAME`; and `"sentence"` `(batch,)`,
    the number of each row's sentence."""
    unique_entries = {entry.words: entry for entry in entries}
    indices = {words: i for i, words in enumerate(unique_entries)}
    inputs, _ = collate_words(list(unique_entries.values()), indexers)
    rows = torch.tensor([indices[entry.words] for entry in entries], dtype=torch.long)
    return {"sentence": rows, **{WHOLE + name: value for name, value in inputs.items()}}


def padded(rows: Sequence[np.ndarray], inside: np.ndarray) -> Tensor:
    """Indices of each sentence's tokens -> `(batch, token)`, 0 on padding."""
    numbers = np.zeros(inside.shape, dtype=np.int64)
    numbers[inside] = np.concatenate(rows)
    return torch.from_numpy(numbers)


def one_hot_gold(
    tags: Sequence[np.ndarray | None], inside: np.ndarray, size: int, unseen: int
) -> tuple[Tensor | None, Tensor]:
    """Gold `(batch, 1, token, tag)` and the mask of rows with gold, `(batch,)`.

    Args:
        tags: tag indices of each sentence, -1 for a tag that is not among the `size` known ones; None without gold.
        inside: `(batch, token)`, the mask of tokens.
        unseen: the tag used for index -1.
    """
    has_gold = np.array([row is not None for row in tags])
    if not has_gold.any():
        return None, torch.from_numpy(has_gold)
    lengths = inside.sum(1)
    rows = [np.zeros(n, np.int64) if row is None else row for row, n in zip(tags, lengths, strict=True)]
    numbers = padded(rows, inside)
    numbers = torch.where(numbers < 0, unseen, numbers)[:, None, :, None]
    marks = torch.from_numpy(inside & has_gold[:, None])[:, None, :, None].float()
    return torch.zeros(len(has_gold), 1, inside.shape[1], size).scatter_(-1, numbers, marks), torch.from_numpy(has_gold)
