"""One step of writing a label set: from the previous label to scores of the next."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from spen_plugins.nn import at_least_float32, take_vectors


class Memory(NamedTuple):
    """The text as a decoder sees it.

    Attributes:
        vectors: vectors of the words, `(batch, word, dim)`.
        mask: `(batch, word)`, with at least one word in each row.
        dropout_factors: factors of dropout, one draw for all steps and samples, so that q(y | x) is one distribution,
            `(batch, 1, embedding + dim)`; ones outside training.
    """

    vectors: Tensor
    mask: Tensor
    dropout_factors: Tensor


class State(NamedTuple):
    """A beginning of a sequence for each row of each example, all `(batch, row, …)`.

    Attributes:
        hidden, cell: states of the LSTM, `dim`.
        context: the words' mean by attention, `dim`.
        scores: scores of the next label and of the end, which is the last one; −∞ for labels that can't follow.
        is_written: labels so far, boolean.
    """

    hidden: Tensor
    cell: Tensor
    context: Tensor
    scores: Tensor
    is_written: Tensor

    def gather(self, rows: Tensor) -> State:
        """The states of some rows, `(batch, new row)`."""
        return State(*(take_vectors(part, rows) for part in self))


class Writer(nn.Module):
    """An LSTM with attention, whose inputs are the previous label and the previous context (Luong et al. 2015).

    Labels have numbers in the order in which they are written; the end, and the start, is the number after the last.

    Args:
        labels: number of labels.
        width: width of the words' vectors.
        config: the config of the net `sequence`.
    """

    def __init__(self, labels: int, width: int, config: Any) -> None:
        super().__init__()
        self.labels, self.config = labels, config
        dim, embedding = config.dim, config.embedding
        self.memory = nn.Linear(width, dim, bias=False)
        self.start = nn.Linear(dim, 2 * dim)
        self.embedding = nn.Embedding(labels + 1, embedding)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.gate = None if config.global_temperature is None else nn.Linear(2 * embedding, embedding)
        self.lstm = nn.LSTMCell(embedding + dim, dim)
        self.query = nn.Linear(dim, dim, bias=False)
        self.mix = nn.Linear(2 * dim, dim)
        self.output = nn.Linear(dim, labels + 1)

    def remember(self, words: Tensor, mask: Tensor) -> Memory:
        """Words' vectors `(batch, word, width)` with their mask -> the memory, with dropout drawn in training."""
        vectors = self.memory(words) * mask.unsqueeze(2)
        p = self.config.dropout if self.training else 0.0
        factors = vectors.new_ones(len(words), 1, self.config.embedding + self.config.dim)
        if p:
            factors = (torch.rand_like(factors) >= p).to(factors.dtype) / (1 - p)
        return Memory(vectors, mask, factors)

    def begin(self, memory: Memory) -> State:
        """The state before the first label, with one row for each example."""
        mean = memory.vectors.sum(1) / memory.mask.sum(1, keepdim=True)
        hidden, cell = torch.tanh(self.start(mean)).unsqueeze(1).chunk(2, 2)
        batch = len(mean)
        state = State(
            hidden.contiguous(),
            cell.contiguous(),
            torch.zeros_like(hidden),
            hidden.new_zeros(batch, 1, self.labels + 1),
            torch.zeros(batch, 1, self.labels, dtype=torch.bool, device=mean.device),
        )
        return self.write(memory, state, torch.full((batch, 1), self.labels, device=mean.device), first=True)

    def write(self, memory: Memory, state: State, label: Tensor, first: bool = False) -> State:
        """The state after each row's next label, `(batch, row)`; after the end, it has no meaning."""
        size = self.config.embedding
        embedded = self.embedding(label)
        if self.gate is not None:
            embedded = self._add_mean_embedding(embedded, state, first)
        inputs = torch.cat([embedded * memory.dropout_factors[..., :size].to(embedded.dtype), state.context], 2)
        hidden, cell = self.lstm(inputs.flatten(0, 1), (state.hidden.flatten(0, 1), state.cell.flatten(0, 1)))
        hidden, cell = hidden.view_as(state.hidden), cell.view_as(state.cell)
        match = (self.query(hidden) @ memory.vectors.transpose(1, 2)).masked_fill(~memory.mask.unsqueeze(1), -torch.inf)
        context = torch.softmax(match, 2).to(hidden.dtype) @ memory.vectors
        factors = memory.dropout_factors[..., size:].to(hidden.dtype)
        mixed = torch.tanh(self.mix(torch.cat([hidden, context], 2))) * factors
        numbers = torch.arange(self.labels, device=label.device)
        is_written = state.is_written | (numbers == label.unsqueeze(2))
        is_blocked = is_written
        if self.config.order != "none":  # all labels up to the last one written
            is_blocked = is_written | ((numbers < label.unsqueeze(2)) & (label < self.labels).unsqueeze(2))
        scores = at_least_float32(self.output(mixed))
        scores = scores.masked_fill(torch.nn.functional.pad(is_blocked, (0, 1)), -torch.inf)
        return State(hidden, cell, context, scores, is_written)

    def _add_mean_embedding(self, embedded: Tensor, state: State, first: bool) -> Tensor:
        """SGM's global embedding: the last label's embedding and, by a gate, the mean over the last step's distribution
        (Yang et al. 2018, Eq. 12 to 14)."""
        if first:
            mean_embedding = embedded
        else:
            shares = torch.softmax(state.scores / self.config.global_temperature, 2)
            mean_embedding = shares.to(embedded.dtype) @ self.embedding.weight
        gate = torch.sigmoid(self.gate(torch.cat([embedded, mean_embedding], 2)))
        return gate * embedded + (1 - gate) * mean_embedding
