"""Scores of label sets, from counts of one pass; of labels in the order of their probabilities; and decoders from
probabilities to label sets, by a threshold or by expected F1, fitted to a validation part.

The F1s, subset accuracy and Hamming loss equal torchmetrics' and scikit-learn's with `zero_division=0`, nDCG and
average precision scikit-learn's, which the tests hold. The metric runs after every epoch: torchmetrics takes 17 ms for
1472 x 159 where one pass takes about 1, and scikit-learn's ranking a second for 1500 examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from spen_plugins.scores.expected_f1 import SAMPLES, best_sets, find_best_sets, knows_sizes
from spen_plugins.spaces import IndependentLabels, Proposal

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
GRID = tuple(round(0.05 * i, 2) for i in range(1, 20))


def scores(predicted: Tensor, gold: Tensor) -> dict[str, float]:
    """All scores of `predicted` against `gold`, both boolean `(example, label)`."""
    both, wrong = predicted & gold, predicted ^ gold
    return {
        "example_f1": example_f1(predicted, gold).mean().item(),
        "micro_f1": _f1(both.sum(), wrong.sum()).item(),
        "macro_f1": _f1(both.sum(0), wrong.sum(0)).mean().item(),
        "accuracy": (~wrong.any(1)).double().mean().item(),
        "hamming": wrong.double().mean().item(),
    }


def example_f1(predicted: Tensor, gold: Tensor) -> Tensor:
    """F1 of each example, `(example,)` float64."""
    return _f1((predicted & gold).sum(1), (predicted ^ gold).sum(1))


def _f1(both: Tensor, wrong: Tensor) -> Tensor:
    """2tp / (2tp + fp + fn), 0 without true positives."""
    return torch.where(both > 0, 2 * both / (2 * both + wrong).clamp(min=1).double(), 0.0)


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


TEMPERATURES = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
"""Of which one is picked."""


Outputs: TypeAlias = Tensor | Sequence[Proposal]
"""Outputs from which label sets are decided: probabilities of independent labels, `(example, label)`, or the
distributions of some batches, in which labels depend on each other."""


def as_outputs(proposal: Proposal) -> Outputs:
    """The outputs of a batch."""
    return marginals(proposal) if isinstance(proposal, IndependentLabels) else [proposal]


def marginals(proposal: Proposal) -> Tensor:
    """The probability of each label, `(example, label)` float32, without gradient."""
    return proposal.mean[:, 0].detach().float()


def describe_law(proposal: Proposal) -> str:
    """The law of dependent labels under which F1 is expected; empty for independent ones."""
    if isinstance(proposal, IndependentLabels):
        return ""
    return "the exact law of labels and sizes" if knows_sizes(proposal) else f"{SAMPLES} samples"


@dataclass(frozen=True)
class LabelDecoder:
    """Decides on label sets.

    Attributes:
        threshold: a label is predicted if its probability is above it.
        temperature: None, or that of the distribution under which the set of highest expected F1 is predicted, at 0
            the most probable set; then there is no threshold.
    """

    threshold: float = 0.5
    temperature: float | None = None

    def __call__(self, outputs: Outputs) -> Tensor:
        """The predicted labels, boolean `(example, label)`."""
        if not isinstance(outputs, Tensor):
            return torch.cat([self._decode(proposal) for proposal in outputs])
        return outputs > self.threshold if self.temperature is None else best_sets(outputs, self.temperature)

    def _decode(self, proposal: Proposal) -> Tensor:
        if self.temperature is None:
            return marginals(proposal) > self.threshold
        return find_best_sets(proposal, self.temperature)

    def __str__(self) -> str:
        if self.temperature is None:
            return f"{self.threshold:g}"
        if self.temperature == 0:
            return "none, but the most probable sets"
        return f"none, but sets of highest expected F1 at temperature {self.temperature:g}"


@dataclass(frozen=True)
class Fit:
    """Decoders among which a validation part chooses.

    Attributes:
        decode: "threshold", "expected_f1", or "validation" for both.
        threshold, temperature: of these decoders, a number, or "validation" for `GRID` and `TEMPERATURES`.
    """

    decode: Literal["threshold", "expected_f1", "validation"] = "threshold"
    threshold: float | Literal["validation"] = 0.5
    temperature: float | Literal["validation"] = "validation"

    @property
    def temperatures(self) -> list[float]:
        """All temperatures, in ascending order."""
        if self.temperature != "validation":
            return [float(self.temperature)]
        return list(TEMPERATURES)

    def decoders(self) -> list[LabelDecoder]:
        """All decoders, the nearest to a threshold of 0.5 or a temperature of 1 first."""
        thresholds = sorted(GRID, key=lambda t: abs(t - 0.5)) if self.threshold == "validation" else [self.threshold]
        ts = sorted(self.temperatures, key=lambda t: abs(t - 1))
        decoders = [LabelDecoder(float(t)) for t in thresholds] if self.decode != "expected_f1" else []
        return decoders + [LabelDecoder(temperature=t) for t in ts] if self.decode != "threshold" else decoders

    def __call__(self, outputs: Outputs, gold: Tensor) -> LabelDecoder:
        """Returns the decoder with the best example F1; of equal ones, the first. Where labels depend on each other,
        temperatures are tried as long as the score rises.

        Args:
            outputs: of the validation part.
            gold: its labels, boolean `(example, label)`.
        """
        decoders = self.decoders()
        if len(decoders) == 1:
            return decoders[0]
        score = cache(lambda decoder: round(example_f1(decoder(outputs), gold).mean().item(), 9))
        if not isinstance(outputs, Tensor) and self.decode != "threshold":
            by_threshold = [decoder for decoder in decoders if decoder.temperature is None]
            decoders = [*by_threshold, _climb([LabelDecoder(temperature=t) for t in self.temperatures], score)]
        return max(decoders, key=score)

    def __str__(self) -> str:
        """The way in which the decoder was chosen."""
        by_threshold = f"from {GRID[0]} to {GRID[-1]}" if self.threshold == "validation" else ""
        ts = self.temperatures
        by_f1 = f"from temperatures {ts[0]:g} to {ts[-1]:g}" if self.temperature == "validation" else ""
        if self.decode == "validation":
            one, other = by_threshold or f"{self.threshold:g}", by_f1 or f"temperature {self.temperature:g}"
            return f"picked on validation: a threshold {one}, or expected F1, {other}"
        chosen = by_threshold if self.decode == "threshold" else by_f1
        return f"picked on validation {chosen}" if chosen else "fixed"


def _climb(decoders: Sequence[LabelDecoder], score: Callable[[LabelDecoder], float]) -> LabelDecoder:
    """The best of decoders with ascending temperatures, tried from 1 towards whichever side scores better and as long
    as it does: under flat laws the best sets of dependent labels are large, and take long to find."""
    at = min(range(len(decoders)), key=lambda i: abs(decoders[i].temperature - 1))
    for step in (1, -1):
        while 0 <= at + step < len(decoders) and score(decoders[at + step]) > score(decoders[at]):
            at += step
    return decoders[at]


def between(logits: Tensor, predicted: Tensor) -> Tensor:
    """Log-odds of each row `(..., 1)` that those of predicted labels are above, and the others' below.

    Half-way between the two nearest, so equal to them if they are equal; 1 beyond the last if all are predicted, or
    none.

    Args:
        logits: log-odds of the labels, `(..., label)`.
        predicted: the likeliest labels of each row, boolean.
    """
    last = logits.masked_fill(~predicted, torch.inf).amin(-1, keepdim=True)
    following = logits.masked_fill(predicted, -torch.inf).amax(-1, keepdim=True)
    return (torch.where(last.isinf(), following + 2, last) + torch.where(following.isinf(), last - 2, following)) / 2
