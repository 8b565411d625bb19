"""Batches in word pieces, and vectors of words and texts from the states of their pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spen_plugins.spaces.base import take_vectors

Pooling = Literal["first", "mean"]


@dataclass(frozen=True)
class Reading:
    """A batch as an encoder reads it: in word pieces, one or more windows per example.

    Args:
        ids: `(batch, window * piece)` ids of pieces.
        owner: `(batch, window * piece)` word of each piece, -1 for special pieces, -2 for padding.
        first: `(batch, token)` first piece of each word, -1 on padding.
        windows: `(batch, window)`, 1 for windows that exist.
        marks: by name, `(batch, window * piece)`.
    """

    ids: Tensor
    owner: Tensor
    first: Tensor
    windows: Tensor
    marks: Mapping[str, Tensor]

    @property
    def width(self) -> int:
        """Number of pieces of a window, padding included."""
        return self.ids.shape[1] // self.windows.shape[1]

    def rows(self, values: Tensor) -> Tensor:
        """`(batch, window * piece, …)` -> `(row, piece, …)`, a row for each window that exists."""
        if self.windows.shape[1] == 1:
            return values
        return values.reshape(-1, self.width, *values.shape[2:])[self.windows.flatten() > 0]

    def join(self, states: Tensor) -> Tensor:
        """Vectors of the rows, `(row, piece, dim)` -> `(batch, window * piece, dim)`, 0 where there is no window."""
        if self.windows.shape[1] == 1:
            return states
        exists = self.windows.flatten() > 0
        padded = states.new_zeros(len(exists), self.width, states.shape[-1])
        return padded.index_put((exists.nonzero()[:, 0],), states).reshape(len(self.ids), -1, states.shape[-1])

    def example(self, i: int) -> Reading:
        """Example `i` by itself, without padding."""
        is_piece = self.owner[i] > -2
        count = int(self.windows[i].sum())
        width = int(is_piece.sum()) // count
        first = self.first[i][self.first[i] >= 0]
        return Reading(
            self.ids[i][is_piece][None],
            self.owner[i][is_piece][None],
            (first // self.width * width + first % self.width)[None],
            self.windows[i][None, :count],
            {name: values[i][is_piece][None] for name, values in self.marks.items()},
        )


def pool_words(states: Tensor, batch: Reading, pooling: Pooling) -> Tensor:
    """States `(batch, window * piece, dim)` -> vectors of words, `(batch, token, dim)`.

    A word's vector is that of its first piece or the mean of its pieces; a word without any has its neighbour's vector.
    """
    first = batch.first.clamp(min=0)
    if pooling == "first":
        return take_vectors(states, first)
    word = batch.owner.gather(1, first).unsqueeze(2)
    is_pooled = (batch.owner.unsqueeze(1) == word) & (first.unsqueeze(2) // batch.width == _number_windows(batch))
    weights = is_pooled.to(states.dtype)
    return (weights / weights.sum(-1, keepdim=True).clamp(min=1)) @ states


def pool_texts(states: Tensor, batch: Reading, pooling: Pooling) -> Tensor:
    """States `(batch, window * piece, dim)` -> vectors of texts, `(batch, dim)`.

    A text's vector is the mean of its windows' first pieces; or the mean of its special pieces and, for each word, the
    pieces in the window from which the word takes its vector.
    """
    owner, first = batch.owner, batch.first
    if pooling == "first":
        is_pooled = torch.arange(owner.shape[1], device=owner.device) % batch.width == 0
        is_pooled = is_pooled & (batch.windows.repeat_interleave(batch.width, 1) > 0)
    elif not first.shape[1]:  # a text without words
        is_pooled = owner == -1
    else:
        word_windows = first.clamp(min=0).gather(1, owner.clamp(min=0)) // batch.width
        is_pooled = (owner == -1) | ((owner >= 0) & (word_windows == _number_windows(batch)))
    weights = is_pooled.to(states.dtype).unsqueeze(1)
    return ((weights / weights.sum(-1, keepdim=True)) @ states).squeeze(1)


def _number_windows(batch: Reading) -> Tensor:
    """The window of each piece, `(window * piece,)`."""
    return torch.arange(batch.owner.shape[1], device=batch.owner.device) // batch.width
