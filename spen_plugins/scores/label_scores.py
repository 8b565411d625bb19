"""Scores of label sets, from counts of one pass, and of labels in the order of their probabilities.

The F1s, subset accuracy and Hamming loss equal torchmetrics' and scikit-learn's with `zero_division=0`, nDCG and
average precision scikit-learn's, as the tests check. The metric runs after every epoch: torchmetrics takes 17 ms for
1472 x 159, one pass about 1 ms, and scikit-learn's ranking a second for 1500 examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor

DEFINITIONS = {
    "example_f1": "F1 of each example's label set, averaged over examples; 0 where prediction or gold is empty",
    "micro_f1": "F1 of all (example, label) decisions together",
    "macro_f1": "F1 of each label, averaged over labels; 0 for a label neither predicted nor in gold",
    "accuracy": "share of examples whose label set is exactly right (subset accuracy)",
    "hamming": "share of wrong (example, label) decisions (Hamming loss; lower is better)",
    "ranking": "of the k likeliest labels: precision; recall; nDCG; R-precision, the hits by the smaller of k and the "
    "number of gold labels; means over examples that have a gold label",
    "example_ap": "average precision of each example's labels in the order of their probabilities; mean likewise",
    "label_ap": "average precision of each label's examples likewise; mean over labels that an example has",
}
AVERAGE_PRECISION = "average precision of all (example, label) probabilities together (micro); needs no threshold"
INCOHERENT = "share of predicted label sets that have a label without its parent in the hierarchy; lower is better"
Selection: TypeAlias = Literal["example_f1", "micro_f1", "macro_f1", "accuracy"]
"""Scores that can choose epochs and decoders."""


def scores(predicted: Tensor, gold: Tensor) -> dict[str, float]:
    """All scores of `predicted` against `gold`, both boolean `(example, label)`."""
    hits, errors = predicted & gold, predicted ^ gold
    return {
        "example_f1": example_f1(predicted, gold).mean().item(),
        "micro_f1": _compute_f1(hits.sum(), errors.sum()).item(),
        "macro_f1": _compute_f1(hits.sum(0), errors.sum(0)).mean().item(),
        "accuracy": (~errors.any(1)).double().mean().item(),
        "hamming": errors.double().mean().item(),
    }


def score(predicted: Tensor, gold: Tensor, selection: Selection) -> float:
    """One of `scores` by itself."""
    if (ratios := list_ratios(predicted, gold, selection)) is None:
        return scores(predicted, gold)[selection]
    numerator, denominator = (part.sum().item() for part in ratios)
    return numerator / denominator if denominator else 0.0


def example_f1(predicted: Tensor, gold: Tensor) -> Tensor:
    """F1 of each example, `(example,)` float64."""
    return _compute_f1((predicted & gold).sum(1), (predicted ^ gold).sum(1))


def list_ratios(predicted: Tensor, gold: Tensor, selection: Selection) -> tuple[Tensor, Tensor] | None:
    """Each example's numerator and denominator, `(example,)` float64; the score is the ratio of their sums. None for
    macro F1, which is not such a ratio."""
    if selection == "macro_f1":
        return None
    hits, errors = (predicted & gold).sum(1).double(), (predicted ^ gold).sum(1)
    if selection == "micro_f1":
        return 2 * hits, 2 * hits + errors
    values = (errors == 0).double() if selection == "accuracy" else example_f1(predicted, gold)
    return values, torch.ones_like(values)


def _compute_f1(hits: Tensor, errors: Tensor) -> Tensor:
    """2tp / (2tp + fp + fn), 0 without true positives."""
    return torch.where(hits > 0, 2 * hits / (2 * hits + errors).clamp(min=1).double(), 0.0)


def at_k(p: Tensor, gold: Tensor, cutoffs: Sequence[int]) -> dict[str, dict[str, float]]:
    """Precision, recall, nDCG and R-precision of the k likeliest labels, for each k; empty without any gold label.

    Args:
        p: probabilities, `(example, label)`.
        gold: boolean, `(example, label)`.
        cutoffs: each k; values above the number of labels are left out.
    """
    ks = [k for k in cutoffs if k <= p.shape[1]]
    has_gold = gold.any(1)
    if not ks or not has_gold.any():
        return {}
    p, gold = p[has_gold], gold[has_gold]
    hits = gold.gather(1, p.topk(max(ks), dim=1).indices).double()
    sizes = gold.sum(1)
    discount = 1 / torch.log2(torch.arange(max(ks), device=p.device).double() + 2)
    ideal_gains = discount.cumsum(0)
    means = {}
    for k in ks:
        top_hits, most_hits = hits[:, :k], sizes.clamp(max=k)
        hit_counts = top_hits.sum(1)
        values = {
            "precision": hit_counts / k,
            "recall": hit_counts / sizes,
            "ndcg": (top_hits * discount[:k]).sum(1) / ideal_gains[most_hits - 1],
            "r_precision": hit_counts / most_hits,
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
    probabilities, order = p[has_gold].sort(dim=1, descending=True)
    hits = gold[has_gold].gather(1, order).double()
    places = torch.arange(probabilities.shape[1], device=p.device)
    is_last = torch.ones_like(probabilities, dtype=torch.bool)
    is_last[:, :-1] = probabilities[:, :-1] != probabilities[:, 1:]
    # The place where each cell's step ends: the first place, from the cell on, that is the last of a step.
    ends = torch.where(is_last, places, probabilities.shape[1]).flip(1).cummin(1).values.flip(1)
    precision = hits.cumsum(1).gather(1, ends) / (ends + 1)
    return ((precision * hits).sum(1) / hits.sum(1)).mean().item()
