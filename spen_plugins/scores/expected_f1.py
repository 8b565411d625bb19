"""Label sets of highest expected F1 (Lewis 1995; Dembczyński et al. 2011), for independent labels and under any
distribution that knows E[t^|y| y_i].

For the latter, the gain of label i in a set of size k is E[2 y_i / (k + |y|)] = 2 ∫_0^1 t^(k−1) E[t^|y| y_i] dt: the
best set of this size has the k largest gains. The rest holds for independent labels.

Among all sets of k labels, the k likeliest have the highest expected F1. With labels in this order, and S_i the number
of labels besides i that are on, it is

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
"""Approximate limit of probabilities times nodes in memory, 2 MB for each array; larger arrays take longer per
number."""
SAMPLED = 2**22
"""Approximate limit of sizes times labels in memory, 32 MB for each array, for dependent labels."""
SAMPLES = 1000
"""Samples of a distribution that doesn't know the joint law of its labels and sizes."""
TINY = 1e-12  # probabilities nearer to 0 or 1 have the logit of this one
EQUAL = 1e-9  # expected F1s this near count as equal: the smaller set is taken


def best_sets(p: Tensor, temperature: float = 1.0) -> Tensor:
    """The label set of highest expected F1 of each example, boolean `(example, label)`, on the device of `p`.

    As in the score, F1 is 0 if prediction or gold is empty: a set is empty only if no label has a probability.

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
            is_on = torch.arange(p.shape[1]) < sizes(ordered).unsqueeze(1)
            predicted[start : start + rows].scatter_(1, order, is_on)
    return predicted.to(p.device)


def find_best_sets(proposal: Proposal, temperature: float = 1.0) -> Tensor:
    """The label set of highest expected F1 under any distribution over label sets, boolean `(example, label)`.

    Uses `Proposal.label_powers`, or else `SAMPLES` samples from `sample_alike`. Labels that imply their parents are
    only chosen with them.

    Args:
        proposal: the distribution of a batch.
        temperature: T, as in `Proposal.tempered`; 0: the most probable set.
    """
    if temperature == 0:
        return proposal.mode[:, 0] > 0.5
    labels, device = proposal.logits.shape[-1], proposal.logits.device
    rows, has_sizes = max(1, SAMPLED // max(1, 256 * labels)), knows_sizes(proposal)
    sets = [torch.zeros(0, labels, dtype=torch.bool)]
    for start in range(0, proposal.logits.shape[0], rows):
        chunk = proposal.map_rows(lambda values, part=slice(start, start + rows): values[part].detach().cpu())
        chunk = chunk if temperature == 1 else chunk.tempered(temperature)
        if has_sizes:
            examples = torch.arange(chunk.logits.shape[0])
            sets.append(_find_best_sets(partial(_integrate_gains, chunk), examples, labels, chunk.space.forest))
        else:
            y = sample_alike(chunk, SAMPLES)
            weights = torch.full(y.shape[:2], 1 / SAMPLES, dtype=torch.double)
            sets.append(find_best_set(y, weights, chunk.space.forest))
    return torch.cat(sets).to(device)


def knows_sizes(proposal: Proposal) -> bool:
    """True if a distribution implements `label_powers`."""
    return proposal.map_rows(lambda values: values[:1].detach().cpu()).label_powers(torch.ones(1)) is not None


def sample_alike(proposal: Proposal, n: int) -> Tensor:
    """`n` samples of each example from the same random numbers, `(batch, n, *variables)`: decisions based on them
    depend neither on an example's batch nor on chance."""
    rows = []
    for row in range(proposal.logits.shape[0]):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            rows.append(proposal.map_rows(lambda values, part=slice(row, row + 1): values[part].detach()).sample(n))
    return torch.cat(rows)


def find_best_set(y: Tensor, weights: Tensor, forest: Forest | None = None) -> Tensor:
    """The label set of highest expected F1 under a distribution over given sets, boolean `(example, label)`.

    A set of k labels has Σ_i Σ_y w(y) y_i 2 / (k + |y|), so that the k labels with the largest inner sums are best.
    Larger k are tried until none can be better: F1 is at most 2|y| / (k + |y|).

    Args:
        y: sets, zeros and ones, `(example, set, label)`.
        weights: their probabilities, `(example, set)`.
        forest: the forest of labels that imply their parents.
    """
    rows = max(1, SAMPLED // max(1, y.shape[2] ** 2))
    sets = []
    for chunk, chunk_weights in zip(y.split(rows), weights.split(rows), strict=True):
        examples = torch.arange(len(chunk), device=y.device)
        sets.append(
            _find_best_sets(
                partial(_add_gains, chunk.to(chunk_weights.dtype), chunk_weights), examples, y.shape[2], forest
            )
        )
    return torch.cat(sets)


def _integrate_gains(proposal: Proposal, rows: Tensor, k: int) -> Tensor:
    """The gain of each label in sets of 1, …, k labels, of some examples, `(example, size, label)`."""
    chunk = proposal.map_rows(lambda values: values[rows])
    degree = k + chunk.logits.shape[-1]
    t, powers = _make_nodes(_count_nodes(degree, degree), k)
    return (powers / t).t() @ chunk.label_powers(t[:, 0])


def _add_gains(y: Tensor, weights: Tensor, rows: Tensor, k: int) -> Tensor:
    """The same gains under a distribution over sets `(example, set, label)` with weights `(example, set)`."""
    y, sizes = y[rows], torch.arange(1, k + 1, device=y.device, dtype=y.dtype)
    return (2 * weights[rows].unsqueeze(2) / (y.sum(2, keepdim=True) + sizes)).transpose(1, 2) @ y


def _find_best_sets(
    find_gains: Callable[[Tensor, int], Tensor], examples: Tensor, labels: int, forest: Forest | None = None
) -> Tensor:
    """The best sets from the labels' gains. Sets of k labels or more have at most the sum of all gains at size k.

    Args:
        find_gains: the indices of examples, and k -> the labels' gains in sets of 1, …, k labels, `(example, size,
            label)`.
        examples: the indices of all examples.
        forest: the forest of labels that imply their parents: children gain at most as much as their parents, and of
            equal gains a parent's comes first.
    """
    best_sizes, order = torch.zeros_like(examples), torch.arange(labels, device=examples.device)
    gains = torch.zeros(len(examples), labels, dtype=torch.double, device=examples.device)
    k = min(FIRST, labels)
    while len(examples):
        size_gains = find_gains(examples, k + 1)
        value, best_size = _find_best(size_gains[:, :k].topk(k, dim=2).values.cumsum(2).diagonal(dim1=1, dim2=2))
        best_sizes[examples] = best_size
        gains[examples] = size_gains[torch.arange(len(examples)), best_size.clamp(min=1) - 1].double()
        if k == labels:
            break
        examples = examples[value < size_gains[:, k].sum(1)]
        k = min(2 * k, labels)
    if forest is not None:
        gains, order = forest.limit(gains), torch.tensor(forest.preorder[0], device=gains.device)
    ranking = order[gains[:, order].sort(dim=1, descending=True, stable=True).indices]
    is_chosen = torch.arange(labels, device=gains.device) < best_sizes.unsqueeze(1)
    return torch.zeros_like(is_chosen).scatter_(1, ranking, is_chosen)


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
    labels, sums = ordered.shape[1], ordered.cumsum(1)
    best_sizes, examples = ordered.new_zeros(len(ordered), dtype=torch.long), torch.arange(len(ordered))
    k = min(FIRST, labels)
    while True:
        value, best_size = _find_best(expected_f1(ordered[examples], k))
        is_done = torch.ones_like(examples, dtype=torch.bool)
        if k < labels:
            is_done = value >= 2 * sums[examples, k] / (k + 1 + sums[examples, k])
        best_sizes[examples[is_done]] = best_size[is_done]
        examples = examples[~is_done]
        if not len(examples):
            return best_sizes
        k = min(2 * k, labels)


def expected_f1(ordered: Tensor, k: int) -> Tensor:
    """Expected F1 of the sets of the 1, …, k likeliest labels, `(example, k)`.

    Args:
        ordered: float64 probabilities of each example in descending order, `(example, label)`.
        k: size of the largest set.
    """
    t, powers = _make_nodes(_count_nodes(k + ordered.shape[1], k + float(ordered.sum(1).max())), k)
    factors = 1 - ordered.unsqueeze(1) * (1 - t)  # 1 − p + p t, (example, node, label)
    products = (ordered[:, None, :k] / factors[..., :k]).cumsum(2) * factors.prod(2, keepdim=True)
    return (products * powers).sum(1)


def _find_best(values: Tensor) -> tuple[Tensor, Tensor]:
    """The highest expected F1, and the smallest size that has it, 0 if it is 0."""
    highest = values.amax(1)
    best_size = (values >= highest.unsqueeze(1) - EQUAL).int().argmax(1) + 1
    return highest, torch.where(highest > 0, best_size, 0)


def _count_nodes(degree: int, growth: float) -> int:
    """Number of nodes for a polynomial below a degree that grows by e^(growth·δ); a multiple of 8, to keep few."""
    count = min(-(-degree // 2), math.ceil(math.sqrt(8 * growth)) + 8)
    return -(-count // 8) * 8


@cache
def _make_nodes(count: int, k: int) -> tuple[Tensor, Tensor]:
    """Gauss-Legendre nodes t on [0, 1], `(node, 1)`, and 2 t^i times their weights for i = 1, …, k, `(node, k)`."""
    nodes, weights = (torch.from_numpy(values).unsqueeze(1) for values in np.polynomial.legendre.leggauss(count))
    t = (nodes + 1) / 2
    return t, weights * t ** torch.arange(1, k + 1)
