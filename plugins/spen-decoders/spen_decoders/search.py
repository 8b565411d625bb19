"""Walks over the sequences of a writer: along given ones, along samples, and by beam search.

All are vectorised over examples and rows; Python loops only over the labels of a sequence. Labels are numbers in the
order of writing, and the end is the number after the last.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from spen_decoders.writer import Memory, Writer
from spen_plugins.nn import take_vectors


def find_sequences(y: Tensor) -> Tensor:
    """Sets, boolean `(batch, sample, label)` -> their labels in order, then the end, up to the steps of the longest,
    `(batch, sample, step)`."""
    size, labels = y.sum(2, keepdim=True), y.shape[2]
    steps = int(size.max()) + 1 if y.numel() else 1
    order = torch.nn.functional.pad((~y).int().argsort(dim=2, stable=True), (0, 1))[..., :steps]
    return order.masked_fill(torch.arange(steps, device=y.device) >= size, labels)


def log_prob(writer: Writer, memory: Memory, labels: Tensor, temperature: float = 1.0) -> Tensor:
    """ln of the probability of each sequence, up to its first end, `(batch, sample)`.

    Args:
        labels: `(batch, sample, step)`; the last step is the end.
    """
    state = writer.begin(memory)
    state = state.gather(labels.new_zeros(labels.shape[:2]))
    total, is_open = 0, torch.ones_like(labels[..., 0], dtype=torch.bool)
    for step in range(labels.shape[2]):
        label = labels[..., step]
        value = torch.log_softmax(state.scores / temperature, 2).gather(2, label.unsqueeze(2)).squeeze(2)
        total = total + torch.where(is_open, value, 0)
        is_open = is_open & (label < writer.labels)
        if step + 1 < labels.shape[2]:
            state = writer.write(memory, state, label)
    return total


class Walk(NamedTuple):
    """Samples of sequences.

    Attributes:
        sets: boolean `(batch, sample, label)`.
        mean: the mean over samples of each label's probabilities, summed over steps: the probability of the label in
            the set, `(batch, label)`, differentiable.
    """

    sets: Tensor
    mean: Tensor


def sample(writer: Writer, memory: Memory, numbers: Tensor, temperature: float = 1.0) -> Walk:
    """Ancestral samples. Samples with the same beginning share its state, so that many cost little more than a few.

    The mean has the gradient of its expectation, through the probabilities and the choice of the samples: each
    beginning has the weight n/N · q / q̄, where q̄ is a copy of q without gradient.

    Args:
        numbers: uniform in (0, 1], one for each sample and step, `(batch or 1, sample, step)`. Sequences end with the
            last step; with one step more than labels, none is cut.
    """
    batch, n = len(memory.vectors), numbers.shape[1]
    numbers = numbers.expand(batch, -1, -1)
    state = writer.begin(memory)
    row = torch.zeros(batch, n, dtype=torch.long, device=numbers.device)
    sets = torch.zeros(batch, n, writer.labels + 1, dtype=torch.bool, device=numbers.device)
    is_open = torch.ones_like(row, dtype=torch.bool)
    log_q = state.scores.new_zeros(batch, 1)
    mean = state.scores.new_zeros(batch, writer.labels)
    for step in range(numbers.shape[2]):
        log_p = torch.log_softmax(state.scores / temperature, 2)
        count = torch.zeros_like(log_q).scatter_add(1, row, is_open.to(log_q.dtype))
        log_q = log_q.masked_fill(count == 0, 0)
        weight = count / n * torch.exp(log_q - log_q.detach())
        mean = mean + (weight.unsqueeze(1) @ log_p[..., :-1].exp()).squeeze(1)
        label = _draw(log_p.detach(), row, numbers[..., step]).masked_fill(~is_open, writer.labels)
        sets.scatter_(2, label.unsqueeze(2), True)
        is_open = is_open & (label < writer.labels)
        if not is_open.any():
            break
        parent, next_label, row = _merge(row, label, is_open, writer.labels)
        log_q = log_q.gather(1, parent) + log_p.flatten(1).gather(1, parent * log_p.shape[2] + next_label)
        state = writer.write(memory, state.gather(parent), next_label)
    return Walk(sets[..., :-1], mean)


def _draw(log_p: Tensor, row: Tensor, numbers: Tensor) -> Tensor:
    """Draws a label for each sample from the distribution of its row, by its number."""
    # One ascending line of all rows: row r goes from r to r + 1.
    cumulative = log_p.double().exp().cumsum(2)
    cumulative = cumulative / cumulative[..., -1:] + torch.arange(log_p.shape[1], device=row.device).view(1, -1, 1)
    place = torch.searchsorted(cumulative.flatten(1), row + numbers.double())
    return (place - row * log_p.shape[2]).clamp(0, log_p.shape[2] - 1)


def _merge(row: Tensor, label: Tensor, is_open: Tensor, labels: int) -> tuple[Tensor, Tensor, Tensor]:
    """Merges samples with equal beginnings into one row: the old row and the label of each new row, `(batch, row)`, and
    the new row of each sample."""
    key = (row * (labels + 1) + label).masked_fill(~is_open, (int(row.max()) + 2) * (labels + 1))
    sorted_key, place = key.sort(1)
    rank = torch.cat([torch.zeros_like(key[:, :1]), (sorted_key.diff(dim=1) > 0).long().cumsum(1)], 1)
    new_row = torch.zeros_like(rank).scatter(1, place, rank)
    # Rows without an open sample hold any valid key.
    valid_key = torch.where(is_open.gather(1, place), sorted_key, 0)
    keys = key.new_zeros(len(key), int(rank.max()) + 1).scatter(1, rank, valid_key)
    return keys // (labels + 1), keys % (labels + 1), new_row


class Best(NamedTuple):
    """The best sequences, best first.

    Attributes:
        sets: boolean `(batch, beam, label)`.
        log_q: ln of each sequence's probability, `(batch, beam)`; −∞ if there are no more.
    """

    sets: Tensor
    log_q: Tensor


def search(writer: Writer, memory: Memory, width: int, steps: int, temperature: float = 1.0) -> Best:
    """Beam search over sequences, which end with the last step, as in `sample`. Ended sequences stay in the beam as
    long as they are among the best."""
    state = writer.begin(memory)
    total, is_written = state.scores.new_zeros(len(state.scores), 1), state.is_written
    is_open = torch.ones_like(total, dtype=torch.bool)
    end = writer.labels
    for step in range(steps):
        log_p = torch.log_softmax(state.scores / temperature, 2)
        only_end = torch.full_like(log_p, -torch.inf)
        only_end[..., end] = 0
        values = (total.unsqueeze(2) + torch.where(is_open.unsqueeze(2), log_p, only_end)).flatten(1)
        total, place = values.topk(min(width, values.shape[1]), 1)
        parent, label = place // (end + 1), place % (end + 1)
        is_open = is_open.gather(1, parent) & (label < end) & (total > -torch.inf)
        is_written = take_vectors(is_written, parent)
        is_written = is_written | (torch.arange(end, device=label.device) == label.unsqueeze(2))
        if step + 1 == steps or not is_open.any():
            break
        state = writer.write(memory, state.gather(parent), label)
    return Best(is_written, total)
