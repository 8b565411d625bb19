"""Label sets of highest expected F1, if labels are independent (Lewis 1995; Dembczyński et al. 2011).

Of all sets of k labels, that of the k likeliest has the highest expected F1. With labels in this order, and S_i the
number of labels besides i that are on, it is

    F(k) = Σ_{i≤k} 2 p_i E[1 / (k + 1 + S_i)] = 2 ∫_0^1 t^k Σ_{i≤k} p_i Π_{j≠i} (1 − p_j + p_j t) dt,

as 1 / (n + 1) is the integral of t^n, and the expectation of t^S_i a product over labels. The integrand is a polynomial
in t of degree below k + L, so that Gauss-Legendre quadrature with (k + L) / 2 nodes is exact: quadratic in the number L
of labels. Its values grow at most by e^(δ (k + Σp)) within a distance δ of the interval, so that √(8 (k + Σp)) nodes,
and a few more, have an error below 1e-10 (Trefethen 2013, theorem 19.3).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor

FIRST = 32
"""Sizes of sets that are tried first."""
CELLS = 2**18
"""About the most probabilities times nodes in memory, 2 MB for each array: larger ones take longer for each number."""
SAMPLED = 2**22
"""About the most sizes times labels in memory, 32 MB for each array, where sets are given by samples."""
TINY = 1e-12  # probabilities nearer to 0 or 1 have the logit of this one
EQUAL = 1e-9  # expected F1s this near count as equal: the smaller set is taken


def best_sets(p: Tensor, temperature: float = 1.0) -> Tensor:
    """The label set of highest expected F1 of each example, boolean `(example, label)`, on the device of `p`.

    As in the score, F1 is 0 where prediction or gold is empty: a set is empty only where no label has a probability.

    Args:
        p: probabilities, `(example, label)`.
        temperature: T of the independent labels: each is on with probability sigmoid(logit(p) / T).
    """
    predicted = torch.zeros(p.shape, dtype=torch.bool)
    if p.numel():
        rows = max(1, CELLS // (p.shape[1] * _count_nodes(p.shape[1], 64)))
        for start in range(0, len(p), rows):
            chunk = tempered(p[start : start + rows].detach().cpu(), temperature)
            ordered, order = chunk.sort(dim=1, descending=True, stable=True)
            on = torch.arange(p.shape[1]) < sizes(ordered).unsqueeze(1)
            predicted[start : start + rows].scatter_(1, order, on)
    return predicted.to(p.device)


def find_best_set(y: Tensor, weights: Tensor) -> Tensor:
    """The label set of highest expected F1 under a distribution over given sets, boolean `(example, label)`.

    A set of k labels has Σ_i Σ_y w(y) y_i 2 / (k + |y|), so that the k labels with the largest inner sums are best.
    Larger k are tried until none can be better: F1 is at most 2|y| / (k + |y|).

    Args:
        y: sets, zeros and ones, `(example, set, label)`.
        weights: their probabilities, `(example, set)`.
    """
    rows = max(1, SAMPLED // max(1, y.shape[2] ** 2))
    return torch.cat([_find_best_sets(*pair) for pair in zip(y.split(rows), weights.split(rows), strict=True)])


def _find_best_sets(y: Tensor, weights: Tensor) -> Tensor:
    y, labels = y.to(weights.dtype), y.shape[2]
    on = y.sum(2)
    k = min(FIRST, labels)
    while True:
        sizes = torch.arange(1, k + 1, device=y.device, dtype=y.dtype)
        gains = (2 * weights.unsqueeze(2) / (on.unsqueeze(2) + sizes)).transpose(1, 2) @ y  # (example, size, label)
        ordered, order = gains.sort(dim=2, descending=True, stable=True)
        value, best = _best(ordered.cumsum(2).diagonal(dim1=1, dim2=2))
        if k == labels or bool((value >= (2 * weights * on / (k + 1 + on)).sum(1)).all()):
            break
        k = min(2 * k, labels)
    rows = torch.arange(len(y), device=y.device)
    chosen = torch.arange(labels, device=y.device) < best.unsqueeze(1)
    return torch.zeros(chosen.shape, dtype=torch.bool, device=y.device).scatter_(
        1, order[rows, best.clamp(min=1) - 1], chosen
    )


def tempered(p: Tensor, temperature: float) -> Tensor:
    """sigmoid(logit(p) / T) in float64; `p` itself for T = 1."""
    p = p.double()
    return p if temperature == 1 else torch.sigmoid(torch.logit(p, eps=TINY) / temperature)


def sizes(ordered: Tensor) -> Tensor:
    """Size of the best set of each example, `(example,)`, from probabilities in descending order.

    Larger sets are tried until none can be better: of k predicted labels H are right, and at least H are on, so that F1
    is at most 2H / (k + H), which is concave in H. So F(k) is at most 2P / (k + P), where P is the sum of the k largest
    probabilities; this bound falls with k.
    """
    labels, most = ordered.shape[1], ordered.cumsum(1)
    best_sizes, left = ordered.new_zeros(len(ordered), dtype=torch.long), torch.arange(len(ordered))
    k = min(FIRST, labels)
    while True:
        value, best = _best(expected_f1(ordered[left], k))
        done = torch.ones_like(left, dtype=torch.bool)
        if k < labels:
            done = value >= 2 * most[left, k] / (k + 1 + most[left, k])
        best_sizes[left[done]] = best[done]
        left = left[~done]
        if not len(left):
            return best_sizes
        k = min(2 * k, labels)


def expected_f1(ordered: Tensor, k: int) -> Tensor:
    """Expected F1 of the sets of the 1, …, k likeliest labels, `(example, k)`.

    Args:
        ordered: float64 probabilities of each example in descending order, `(example, label)`.
        k: size of the largest set.
    """
    t, powers = _nodes(_count_nodes(k + ordered.shape[1], k + float(ordered.sum(1).max())), k)
    off = 1 - ordered.unsqueeze(1) * (1 - t)  # 1 − p + p t, (example, node, label)
    on = (ordered[:, None, :k] / off[..., :k]).cumsum(2) * off.prod(2, keepdim=True)
    return (on * powers).sum(1)


def _best(values: Tensor) -> tuple[Tensor, Tensor]:
    """The highest expected F1, and the smallest size that has it; 0 for 0."""
    highest = values.amax(1)
    first = (values >= highest.unsqueeze(1) - EQUAL).int().argmax(1) + 1
    return highest, torch.where(highest > 0, first, 0)


def _count_nodes(degree: int, growth: float) -> int:
    """Number of nodes for a polynomial below a degree that grows by e^(growth·δ); a multiple of 8, to keep few."""
    count = min(-(-degree // 2), math.ceil(math.sqrt(8 * growth)) + 8)
    return -(-count // 8) * 8


@cache
def _nodes(count: int, k: int) -> tuple[Tensor, Tensor]:
    """Gauss-Legendre nodes t on [0, 1], `(node, 1)`, and 2 t^i times their weights for i = 1, …, k, `(node, k)`."""
    nodes, weights = (torch.from_numpy(values).unsqueeze(1) for values in np.polynomial.legendre.leggauss(count))
    t = (nodes + 1) / 2
    return t, weights * t ** torch.arange(1, k + 1)
