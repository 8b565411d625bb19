"""Scores of labels in the order of their probabilities: of the first k, and average precision.

They equal scikit-learn's (`ndcg_score`, `average_precision_score`), which the tests hold; computed here for all
examples at once, where scikit-learn takes a second for 1500 of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

DEFINITIONS = {
    "ranking": "of the k likeliest labels: precision; recall; nDCG; R-precision, the hits by the smaller of k and the "
    "number of gold labels; means over examples that have a gold label",
    "example_ap": "average precision of each example's labels in the order of their probabilities; mean likewise",
    "label_ap": "average precision of each label's examples likewise; mean over labels that an example has",
}


def at_k(p: Tensor, gold: Tensor, at: Sequence[int]) -> dict[str, dict[str, float]]:
    """Precision, recall, nDCG and R-precision of the k likeliest labels, for each k; empty without any gold label.

    Args:
        p: probabilities, `(example, label)`.
        gold: boolean, `(example, label)`.
        at: each k; those above the number of labels are left out.
    """
    ks = [k for k in at if k <= p.shape[1]]
    has_gold = gold.any(1)
    if not ks or not has_gold.any():
        return {}
    p, gold = p[has_gold], gold[has_gold]
    hits = gold.gather(1, p.topk(max(ks), dim=1).indices).double()
    sizes = gold.sum(1)
    discount = 1 / torch.log2(torch.arange(max(ks), device=p.device).double() + 2)
    ideal = discount.cumsum(0)
    means = {}
    for k in ks:
        first, most = hits[:, :k], sizes.clamp(max=k)
        right = first.sum(1)
        values = {
            "precision": right / k,
            "recall": right / sizes,
            "ndcg": (first * discount[:k]).sum(1) / ideal[most - 1],
            "r_precision": right / most,
        }
        means[str(k)] = {name: value.mean().item() for name, value in values.items()}
    return means


def average_precision(p: Tensor, gold: Tensor) -> float | None:
    """Mean over rows of the average precision of a row's cells; rows without gold don't count, None without any.

    Cells of equal probability count as one step, as in scikit-learn.

    Args:
        p: probabilities, `(row, cell)`.
        gold: boolean, `(row, cell)`.
    """
    has_gold = gold.any(1)
    if not has_gold.any():
        return None
    ordered, order = p[has_gold].sort(dim=1, descending=True)
    right = gold[has_gold].gather(1, order).double()
    place = torch.arange(ordered.shape[1], device=p.device)
    last = torch.ones_like(ordered, dtype=torch.bool)
    last[:, :-1] = ordered[:, :-1] != ordered[:, 1:]
    # the place where the step of each cell ends: the smallest from here on that is a last one
    ends = torch.where(last, place, ordered.shape[1]).flip(1).cummin(1).values.flip(1)
    precision = right.cumsum(1).gather(1, ends) / (ends + 1)
    return ((precision * right).sum(1) / right.sum(1)).mean().item()
