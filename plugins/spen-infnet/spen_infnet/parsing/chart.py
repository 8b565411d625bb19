"""Sums over trees of labelled spans, their best tree and exact draws, by one recursion over the width of spans.

A *place* is a possible span. Places are numbered by the span's last word, then by its first one, so that those of a
shorter sentence come first: a sentence of n words has n (n + 1) / 2.

A tree is a set of labelled spans that do not cross, and its score is the sum of theirs. Each tree counts once. In a
chart of binary trees with an empty label of score 0 (Stern, Andreas & Klein 2017), a tree counts as often as it has
binarisations. Here an empty span is never a right child, which leaves one binarisation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import isqrt
from typing import Any

import torch
from torch import Tensor

Reduce = Callable[[Tensor], Tensor]
"""Scores of alternatives on the last axis -> one score."""


def count_places(words: int) -> int:
    """Number of spans in a sentence of `words` words."""
    return words * (words + 1) // 2


def count_words(places: int) -> int:
    """Number of words of the longest sentence with at most `places` places."""
    return (isqrt(8 * places + 1) - 1) // 2


@lru_cache(maxsize=1024)
@torch.inference_mode(False)  # inference tensors would fail in training
def find_ends(words: int) -> tuple[Tensor, Tensor]:
    """First and last word of each place, `(place,)` each."""
    last, first = torch.tril_indices(words, words)
    return first, last


@lru_cache(maxsize=1024)
@torch.inference_mode(False)
def sort_by_width(words: int) -> Tensor:
    """The places of one word, then those of two, and so on, each sorted by their first word, `(place,)`."""
    first, last = find_ends(words)
    return torch.argsort(last - first, stable=True)


def fold(left: Tensor, right: Tensor, lengths: Tensor, reduce: Reduce) -> Tensor:
    """Reduces the scores of all binary trees of each sentence, `(batch,)`; 0 for a sentence without words.

    With `log_sum` the result is ln Z by the inside algorithm (Baker 1979), in O(n³); with `best` it is the score of the
    best tree (CKY). All spans of one width are reduced at once.

    Args:
        left, right: the score of each place as a left and as a right child, `(batch, place)`; the whole sentence counts
            as a left child.
        lengths: words of each sentence, `(batch,)`.
    """
    words = count_words(left.shape[1])
    if not words:
        return left.sum(1)
    order, widths = sort_by_width(words).to(left.device), list(range(words, 0, -1))
    lefts, rights = (scores.index_select(1, order).split(widths, 1) for scores in (left, right))
    sentence_scores = [lefts[0][:, 0]]
    # For each span, by its first word: the scores of its prefixes, from one word on, and of its suffixes, down to one
    # word.
    prefixes, suffixes = lefts[0].unsqueeze(-1), rights[0].unsqueeze(-1)
    for left_scores, right_scores in zip(lefts[1:], rights[1:], strict=True):
        inside_scores = reduce(prefixes[:, :-1] + suffixes[:, 1:])
        prefixes = torch.cat([prefixes[:, :-1], (inside_scores + left_scores).unsqueeze(-1)], -1)
        suffixes = torch.cat([(inside_scores + right_scores).unsqueeze(-1), suffixes[:, 1:]], -1)
        sentence_scores.append(prefixes[:, 0, -1])
    value = torch.stack(sentence_scores, 1).gather(1, (lengths.unsqueeze(1) - 1).clamp(min=0))[:, 0]
    return torch.where(lengths > 0, value, 0.0)


def fold_trees(spans: Tensor, lengths: Tensor, reduce: Reduce) -> Tensor:
    """Reduces the scores of all trees whose nodes may have any number of children, `(batch,)`.

    Args:
        spans: the score of each place as a constituent, its labels reduced, `(batch, place)`; no constituent scores 0.
        lengths: words of each sentence, `(batch,)`.
    """
    first, last = find_ends(count_words(spans.shape[1]))
    spans = spans[:, : len(first)]
    optional = reduce(torch.stack([torch.zeros_like(spans), spans], -1))
    return fold(optional, torch.where((first == last).to(spans.device), optional, spans), lengths, reduce)


def log_sum(scores: Tensor) -> Tensor:
    """ln Σ exp, `(…, alternative)` -> `(…)`."""
    return torch.logsumexp(scores, -1)


def best(scores: Tensor) -> Tensor:
    """The highest score, `(…, alternative)` -> `(…)`; if several are equal, its gradient is 1 at one of them."""
    return scores.max(-1).values


class _Draw(torch.autograd.Function):
    """ln Σ exp, whose gradient is 1 at an alternative drawn by its probability: the gradient of a fold is a draw."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        ctx.save_for_backward(scores)
        return log_sum(scores)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (scores,) = ctx.saved_tensors
        rows = gradient.nonzero(as_tuple=True)
        result = torch.zeros_like(scores)
        result[(*rows, _draw(scores[rows]))] = gradient[rows]
        return result


def log_partition(scores: Tensor, lengths: Tensor) -> Tensor:
    """ln Z over all trees, `(batch,)`, from scores of labels `(batch, place, label)`."""
    return fold_trees(log_sum(scores), lengths, log_sum)


def marginals(scores: Tensor, lengths: Tensor) -> Tensor:
    """The probability of each labelled span, `(batch, place, label)`: the gradient of ln Z, differentiable in scores
    that require a gradient."""
    is_differentiable = scores.requires_grad
    with torch.enable_grad():
        scores = scores if is_differentiable else scores.detach().requires_grad_()
        total = log_partition(scores, lengths).sum()
        return torch.autograd.grad(total, scores, create_graph=is_differentiable)[0]


def best_trees(scores: Tensor, lengths: Tensor) -> Tensor:
    """The trees of highest score, `(batch, place)`: 0 where there is no constituent, otherwise 1 + its label."""
    value, label = scores.detach().max(-1)
    return torch.where(_trace(value, lengths, best), label + 1, 0)


def sample_trees(scores: Tensor, lengths: Tensor, n: int) -> Tensor:
    """Exact independent draws, `(batch, n, place)`, as in `best_trees`."""
    spans = log_sum(scores.detach()).repeat_interleave(n, 0)
    is_constituent = _trace(spans, lengths.repeat_interleave(n), _Draw.apply)
    tree, place = is_constituent.nonzero(as_tuple=True)
    labels = torch.zeros_like(is_constituent, dtype=torch.long)
    labels[tree, place] = 1 + _draw(scores.detach()[tree // n, place])
    return labels.view(len(scores), n, -1)


def _trace(spans: Tensor, lengths: Tensor, reduce: Reduce) -> Tensor:
    """True at the constituents of the tree that a reduction selects, `(batch, place)`."""
    with torch.enable_grad():
        spans = spans.detach().requires_grad_()
        total = fold_trees(spans, lengths, reduce).sum()
        return torch.autograd.grad(total, spans)[0] > 0.5


def _draw(scores: Tensor) -> Tensor:
    """Draws the number of an alternative by its probability for each row: `(row, alternative)` -> `(row,)`."""
    if not len(scores):
        return scores.new_zeros(0, dtype=torch.long)
    return torch.multinomial(torch.softmax(scores, -1), 1)[:, 0]


def are_trees(spans: Tensor) -> Tensor:
    """True for sets of spans of which no two cross, `(…,)`.

    Args:
        spans: `(…, place)` boolean.
    """
    words = count_words(spans.shape[-1])
    if not words:
        return spans.new_ones(spans.shape[:-1])
    first, last = (ends.to(spans.device) for ends in find_ends(words))
    table = spans.new_zeros(*spans.shape[:-1], words, words)
    table[..., first, last] = spans[..., : len(first)]
    positions = torch.arange(words, device=spans.device)
    last_words = torch.where(table, positions, -1).amax(-1)  # the last word of the longest span that begins with a word
    later_ends = torch.where(positions > positions.unsqueeze(1), last_words.unsqueeze(-2), -1)
    return ~(table & (later_ends.cummax(-1).values > positions)).flatten(-2).any(-1)
