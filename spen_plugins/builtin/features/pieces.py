"""Words -> word pieces of a pretrained encoder, in windows of at most its length."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from spen_plugins.task import Indexer

REMEMBERED = 2000
"""Number of the last sentences whose pieces are cached, for runs of a process with equal tokenisers: the components of
a pipeline read the same batch of sentences one after the other."""


@dataclass(frozen=True)
class Pieces:
    """A sentence in word pieces, in one window if the encoder can read it at once.

    Args:
        ids: `(window, piece)` ids of the pieces, special ones included.
        owner: `(window, piece)` word of each piece, -1 for special ones.
        first: `(token,)` first piece of each word, in the window where it has most context: an index into the
            concatenated windows.
    """

    ids: np.ndarray
    owner: np.ndarray
    first: np.ndarray


class PieceIndexer(Indexer):
    """Words -> word pieces: `X.inputs` gets `NAME.ids` and `NAME.owner` (-2 padding), `(batch, window * piece)`,
    `NAME.first` `(batch, token)`, -1 on padding, and `NAME.windows` `(batch, window)`, 1 for windows that exist.

    A sentence with more pieces than the model's positions is read in windows, which share a quarter of their pieces.
    """

    pads = True

    def __init__(self, name: str, tokenizer: Any, longest: int) -> None:
        self.name = name
        self._tokenizer = tokenizer
        self._reader = _find_reader(tokenizer, longest)

    def index(self, words: Sequence[str]) -> Pieces:
        return self._reader.index(tuple(words))

    def length(self, item: Pieces) -> int:
        return item.ids.size

    def collate(self, items: Sequence[Pieces]) -> dict[str, Tensor]:
        windows, width = (max(item.ids.shape[axis] for item in items) for axis in (0, 1))
        ids = np.full((len(items), windows, width), self._tokenizer.pad_token_id or 0, dtype=np.int64)
        owner = np.full((len(items), windows, width), -2, dtype=np.int64)
        first = np.full((len(items), max(1, *(len(item.first) for item in items))), -1, dtype=np.int64)
        exists = np.zeros((len(items), windows), dtype=np.int64)
        for i, item in enumerate(items):
            count, size = item.ids.shape
            ids[i, :count, :size], owner[i, :count, :size], exists[i, :count] = item.ids, item.owner, 1
            first[i, : len(item.first)] = item.first // size * width + item.first % size
        tensors = {"ids": ids, "owner": owner, "first": first, "windows": exists}
        return {f"{self.name}.{part}": torch.from_numpy(t.reshape(len(t), -1)) for part, t in tensors.items()}


class _Reader:
    """Cuts sentences into pieces, and caches those of the last sentences."""

    def __init__(self, tokenizer: Any, longest: int) -> None:
        self._tokenizer, self._longest = tokenizer, longest
        self.index: Callable[[tuple[str, ...]], Pieces] = lru_cache(REMEMBERED)(self._index)

    def _index(self, words: tuple[str, ...]) -> Pieces:
        encoding = self._tokenizer(list(words) or [""], is_split_into_words=True, truncation=False, verbose=False)
        # An encoder needs a piece, and a tokeniser without special ones may find none.
        ids = np.array(encoding["input_ids"] or [_find_filler(self._tokenizer)], dtype=np.int64)
        owner = np.array([-1 if word is None else word for word in encoding.word_ids() or [None]], dtype=np.int64)
        word_pieces = np.flatnonzero(owner >= 0)
        begin, end = (word_pieces[0], word_pieces[-1] + 1) if len(word_pieces) else (len(ids), len(ids))
        room = max(1, self._longest - begin - (len(ids) - end))
        starts = find_window_starts(end - begin, room)
        size = min(room, end - begin)
        places = [np.r_[:begin, begin + start : begin + start + size, end : len(ids)] for start in starts]
        first = _find_first_pieces(owner[begin:end], len(words), starts, size, begin, len(places[0]))
        return Pieces(np.stack([ids[place] for place in places]), np.stack([owner[place] for place in places]), first)


def _find_filler(tokenizer: Any) -> int:
    """The piece for a sentence that has none."""
    ids = (tokenizer.unk_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, 0)
    return next(piece for piece in ids if piece is not None)


_READERS: WeakValueDictionary[tuple[bytes, int], _Reader] = WeakValueDictionary()


def _find_reader(tokenizer: Any, longest: int) -> _Reader:
    """The reader that equal tokenisers share; a new one for a tokeniser that can't be compared."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return _Reader(tokenizer, longest)
    key = hashlib.sha256(f"{type(tokenizer)} {_find_filler(tokenizer)} {backend.to_str()}".encode()).digest(), longest
    reader = _READERS.get(key)
    if reader is None:
        reader = _READERS[key] = _Reader(tokenizer, longest)
    return reader


def find_window_starts(pieces: int, room: int) -> list[int]:
    """First pieces of the windows of a sentence, which have one size and share at least a quarter of it."""
    last = max(0, pieces - room)
    return [*range(0, last, max(1, room - room // 4)), last]


def _find_first_pieces(
    owner: np.ndarray, words: int, starts: Sequence[int], size: int, begin: int, width: int
) -> np.ndarray:
    """`Pieces.first` of each word.

    Args:
        owner: word of each piece, without special ones.
        words: number of words.
        starts, size: the windows, in pieces.
        begin: number of special pieces at a window's beginning.
        width: number of pieces in a window, special ones included.
    """
    first, has_piece = np.zeros(words, dtype=np.int64), np.zeros(words, dtype=bool)
    if len(owner):
        changes = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
        word_starts, word_ends = changes[:-1], changes[1:]
        # A word's context is its distance to the nearer end of a window; negative if the window cuts the word.
        context = np.stack([np.minimum(word_starts - start, start + size - word_ends) for start in starts])
        best = context.argmax(0)
        first[owner[word_starts]] = best * width + begin + np.maximum(word_starts - np.array(starts)[best], 0)
        has_piece[owner[word_starts]] = True
    for i in np.flatnonzero(~has_piece):  # a word without any piece (a control character)
        first[i] = first[i - 1] if i else 0
    return first
