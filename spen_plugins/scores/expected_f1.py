"""Label sets of highest expected F1 (Lewis 1995; Dembczyński et al. 2011), if labels are independent, and under any
distribution that knows the probability of each label beside each size of the set.

For the latter, the gain of label i in a set of size k is Σ_s 2 / (k + s) P(y_i = 1, |y| = s): the best set of this size
has the k largest gains. What follows is for independent labels.

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

from spen_plugins.spaces import Proposal
from spen_plugins.spaces.forest import Forest

FIRST = 32
"""Sizes of sets that are tried first."""
CELLS = 2**18
"""About the most probabilities times nodes in memory, 2 MB for each array: larger ones take longer for each number."""
SAMPLED = 2**22
"""About the most sizes times labels in memory, 32 MB for each array, where labels are dependent."""
SAMPLES = 1000
"""Samples of a distribution that doesn't know the joint law of its labels and sizes."""
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


def find_best_sets(proposal: Proposal, temperature: float = 1.0) -> Tensor:
    """The label set of highest expected F1 under any distribution over label sets, boolean `(example, label)`.

    By `Proposal.label_sizes`, or else under `SAMPLES` samples, as of `sample_alike`. If labels imply their
    parents, they are only chosen with them.

    Args:
        proposal: the distribution of a batch.
        temperature: T, as of `Proposal.tempered`.
    """
    labels, home = proposal.logits.shape[-1], proposal.logits.device
    rows = max(1, SAMPLED // max(1, 256 * labels))
    chosen = [torch.zeros(0, labels, dtype=torch.bool)]
    for start in range(0, proposal.logits.shape[0], rows):
        chunk = proposal.map_rows(lambda values, at=slice(start, start + rows): values[at].detach().cpu())
        chunk = chunk if temperature == 1 else chunk.tempered(temperature)
        joint, forest = chunk.label_sizes(), chunk.space.forest
        if joint is None:
            y = sample_alike(chunk, SAMPLES)
            chosen.append(find_best_set(y, torch.full(y.shape[:2], 1 / SAMPLES, dtype=torch.double), forest))
        else:
            size = torch.arange(1, joint.shape[1] + 1, dtype=joint.dtype).expand(joint.shape[:2])
            chosen.append(_find_best_sets(joint, torch.ones_like(size), size, joint.sum(2), forest))
    return torch.cat(chosen).to(home)


def sample_alike(proposal: Proposal, n: int) -> Tensor:
    """`n` samples of each example from the same random numbers, `(batch, n, *variables)`: what is decided by them
    depends neither on an example's batch nor on chance."""
    rows = []
    for row in range(proposal.logits.shape[0]):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            rows.append(proposal.map_rows(lambda values, at=slice(row, row + 1): values[at].detach()).sample(n))
    return torch.cat(rows)


def find_best_set(y: Tensor, weights: Tensor, forest: Forest | None = None) -> Tensor:
    """The label set of highest expected F1 under a distribution over given sets, boolean `(example, label)`.

    A set of k labels has Σ_i Σ_y w(y) y_i 2 / (k + |y|), so that the k labels with the largest inner sums are best.
    Larger k are tried until none can be better: F1 is at most 2|y| / (k + |y|).

    Args:
        y: sets, zeros and ones, `(example, set, label)`.
        weights: their probabilities, `(example, set)`.
        forest: of labels that imply their parents.
    """
    rows = max(1, SAMPLED // max(1, y.shape[2] ** 2))
    parts = []
    for some, theirs in zip(y.split(rows), weights.split(rows), strict=True):
        on = (some := some.to(theirs.dtype)).sum(2)
        parts.append(_find_best_sets(some, theirs, on, theirs * on, forest))
    return torch.cat(parts)


def _find_best_sets(y: Tensor, weights: Tensor, size: Tensor, expected: Tensor, forest: Forest | None = None) -> Tensor:
    """The best sets from parts of the distribution in which sets have one size each.

    Args:
        y: probability of each label within a part, `(example, part, label)`.
        weights: that of the part, `(example, part)`.
        size: of the sets in a part, likewise.
        expected: weights times sizes of the parts, likewise.
        forest: of labels that imply their parents: gains of children are at most their parents', and of equal ones a
            parent comes first.
    """
    labels, left = y.shape[2], torch.arange(len(y), device=y.device)
    gains, best_sizes = y.new_zeros(len(y), labels), torch.zeros_like(left)
    k = min(FIRST, labels)
    while len(left):
        sizes, of = torch.arange(1, k + 1, device=y.device, dtype=y.dtype), size[left].unsqueeze(2)
        tried = (2 * weights[left].unsqueeze(2) / (of + sizes)).transpose(1, 2) @ y[left]  # (example, size, label)
        value, best = _best(tried.topk(k, dim=2).values.cumsum(2).diagonal(dim1=1, dim2=2))
        best_sizes[left] = best
        gains[left] = tried[torch.arange(len(left), device=y.device), best.clamp(min=1) - 1]
        if k == labels:
            break
        left = left[value < (2 * expected[left] / (k + 1 + size[left])).sum(1)]
        k = min(2 * k, labels)
    order = torch.arange(labels, device=y.device)
    if forest is not None:
        gains, order = forest.limit(gains), torch.tensor(forest.preorder[0], device=y.device)
    ranking = order[gains[:, order].sort(dim=1, descending=True, stable=True).indices]
    chosen = torch.arange(labels, device=y.device) < best_sizes.unsqueeze(1)
    return torch.zeros(chosen.shape, dtype=torch.bool, device=y.device).scatter_(1, ranking, chosen)


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
