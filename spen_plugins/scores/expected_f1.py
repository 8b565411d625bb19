"""Label sets of highest expected F1 (Lewis 1995; Dembczyński et al. 2011), if labels are independent, and under any
distribution that knows E[t^|y| y_i].

For the latter, the gain of label i in a set of size k is E[2 y_i / (k + |y|)] = 2 ∫_0^1 t^(k−1) E[t^|y| y_i] dt: the
best set of this size has the k largest gains. What follows is for independent labels.

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
from collections.abc import Callable
from functools import cache, partial

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
        temperature: T of the independent labels: each is on with probability sigmoid(logit(p) / T); 0: the most
            probable set.
    """
    if temperature == 0:
        return p > 0.5
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

    By `Proposal.label_powers`, or else under `SAMPLES` samples, as of `sample_alike`. If labels imply their
    parents, they are only chosen with them.

    Args:
        proposal: the distribution of a batch.
        temperature: T, as of `Proposal.tempered`; 0: the most probable set.
    """
    if temperature == 0:
        return proposal.mode[:, 0] > 0.5
    labels, home = proposal.logits.shape[-1], proposal.logits.device
    rows, is_known = max(1, SAMPLED // max(1, 256 * labels)), knows_sizes(proposal)
    chosen = [torch.zeros(0, labels, dtype=torch.bool)]
    for start in range(0, proposal.logits.shape[0], rows):
        chunk = proposal.map_rows(lambda values, at=slice(start, start + rows): values[at].detach().cpu())
        chunk = chunk if temperature == 1 else chunk.tempered(temperature)
        if is_known:
            left = torch.arange(chunk.logits.shape[0])
            chosen.append(_find_best_sets(partial(_integrate_gains, chunk), left, labels, chunk.space.forest))
        else:
            y = sample_alike(chunk, SAMPLES)
            weights = torch.full(y.shape[:2], 1 / SAMPLES, dtype=torch.double)
            chosen.append(find_best_set(y, weights, chunk.space.forest))
    return torch.cat(chosen).to(home)


def knows_sizes(proposal: Proposal) -> bool:
    """True if a distribution implements `label_powers`."""
    return proposal.map_rows(lambda values: values[:1].detach().cpu()).label_powers(torch.ones(1)) is not None


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
        left = torch.arange(len(some), device=y.device)
        parts.append(_find_best_sets(partial(_add_gains, some.to(theirs.dtype), theirs), left, y.shape[2], forest))
    return torch.cat(parts)


def _integrate_gains(proposal: Proposal, rows: Tensor, k: int) -> Tensor:
    """The gain of each label in sets of 1, …, k labels, of some examples, `(example, size, label)`."""
    some = proposal.map_rows(lambda values: values[rows])
    degree = k + some.logits.shape[-1]
    t, powers = _nodes(_count_nodes(degree, degree), k)
    return (powers / t).t() @ some.label_powers(t[:, 0])


def _add_gains(y: Tensor, weights: Tensor, rows: Tensor, k: int) -> Tensor:
    """The same under a distribution over sets `(example, set, label)`, of weights `(example, set)`."""
    y, sizes = y[rows], torch.arange(1, k + 1, device=y.device, dtype=y.dtype)
    return (2 * weights[rows].unsqueeze(2) / (y.sum(2, keepdim=True) + sizes)).transpose(1, 2) @ y


def _find_best_sets(
    find_gains: Callable[[Tensor, int], Tensor], left: Tensor, labels: int, forest: Forest | None = None
) -> Tensor:
    """The best sets from the labels' gains. Sets of k labels or more have at most the sum of all gains at size k.

    Args:
        find_gains: of the labels in sets of 1, …, k labels, `(example, size, label)`, from numbers of examples, and k.
        left: the numbers of all examples.
        forest: of labels that imply their parents: gains of children are at most their parents', and of equal ones a
            parent comes first.
    """
    best_sizes, order = torch.zeros_like(left), torch.arange(labels, device=left.device)
    gains = torch.zeros(len(left), labels, dtype=torch.double, device=left.device)
    k = min(FIRST, labels)
    while len(left):
        tried = find_gains(left, k + 1)
        value, best = _best(tried[:, :k].topk(k, dim=2).values.cumsum(2).diagonal(dim1=1, dim2=2))
        best_sizes[left] = best
        gains[left] = tried[torch.arange(len(left)), best.clamp(min=1) - 1].double()
        if k == labels:
            break
        left = left[value < tried[:, k].sum(1)]
        k = min(2 * k, labels)
    if forest is not None:
        gains, order = forest.limit(gains), torch.tensor(forest.preorder[0], device=gains.device)
    ranking = order[gains[:, order].sort(dim=1, descending=True, stable=True).indices]
    chosen = torch.arange(labels, device=gains.device) < best_sizes.unsqueeze(1)
    return torch.zeros_like(chosen).scatter_(1, ranking, chosen)


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
