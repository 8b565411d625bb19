"""Decoders from probabilities to label sets, by a threshold or by expected F1, fitted to a validation part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from spen_plugins.scores.expected_f1 import SAMPLES, best_sets, find_best_sets, knows_sizes
from spen_plugins.scores.label_scores import Selection, score
from spen_plugins.spaces import IndependentLabels, LabelSet, Proposal

GRID = tuple(round(0.05 * i, 2) for i in range(1, 20))
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
        nonempty: predict the label of highest probability in place of an empty set.
    """

    threshold: float = 0.5
    temperature: float | None = None
    nonempty: bool = False

    @property
    def labelwise(self) -> bool:
        """True if a label's own probability alone decides on it."""
        return self.temperature is None and not self.nonempty

    def __call__(self, outputs: Outputs) -> Tensor:
        """The predicted labels, boolean `(example, label)`."""
        if not isinstance(outputs, Tensor):
            return torch.cat([self._decode(proposal) for proposal in outputs])
        predicted = outputs > self.threshold if self.temperature is None else best_sets(outputs, self.temperature)
        return _fill(predicted, outputs) if self.nonempty else predicted

    def _decode(self, proposal: Proposal) -> Tensor:
        if self.temperature is None:
            predicted = marginals(proposal) > self.threshold
        else:
            predicted = find_best_sets(proposal, self.temperature)
        if not self.nonempty:
            return predicted
        # A label in a hierarchy may be as probable as its parent, which belongs to it.
        hierarchical = isinstance(proposal.space, LabelSet) and proposal.space.forest is not None
        return _fill(predicted, marginals(proposal), ties=hierarchical)

    def __str__(self) -> str:
        least = "; for an empty set, the most probable label" if self.nonempty else ""
        if self.temperature is None:
            return f"{self.threshold:g}{least}"
        if self.temperature == 0:
            return f"none, but the most probable sets{least}"
        return f"none, but sets of highest expected F1 at temperature {self.temperature:g}{least}"


def _fill(predicted: Tensor, p: Tensor, ties: bool = False) -> Tensor:
    """The sets, with the label of highest probability in each empty one; with `ties`, all labels that have it."""
    likeliest = p == p.amax(1, keepdim=True) if ties else F.one_hot(p.argmax(1), p.shape[1]).bool()
    return predicted | likeliest & ~predicted.any(1, keepdim=True)


@dataclass(frozen=True)
class Fit:
    """Decoders among which a validation part chooses.

    Attributes:
        decode: "threshold", "expected_f1", or "validation" for both.
        threshold, temperature: of these decoders, a number, or "validation" for `GRID` and `TEMPERATURES`.
        selection: score of the validation part that chooses. If it is accuracy, "validation" stands for temperature 0,
            the most probable set, which no other set beats under the net's distribution.
        nonempty: of the decoders.
    """

    decode: Literal["threshold", "expected_f1", "validation"] = "threshold"
    threshold: float | Literal["validation"] = 0.5
    temperature: float | Literal["validation"] = "validation"
    selection: Selection = "example_f1"
    nonempty: bool = False

    @property
    def temperatures(self) -> list[float]:
        """All temperatures, in ascending order."""
        if self.temperature != "validation":
            return [float(self.temperature)]
        return [0.0] if self.selection == "accuracy" else list(TEMPERATURES)

    def decoders(self) -> list[LabelDecoder]:
        """All decoders, the nearest to a threshold of 0.5 or a temperature of 1 first."""
        thresholds = sorted(GRID, key=lambda t: abs(t - 0.5)) if self.threshold == "validation" else [self.threshold]
        ts = sorted(self.temperatures, key=lambda t: abs(t - 1))
        decoders = [LabelDecoder(float(t)) for t in thresholds] if self.decode != "expected_f1" else []
        decoders += [LabelDecoder(temperature=t) for t in ts] if self.decode != "threshold" else []
        return [replace(decoder, nonempty=self.nonempty) for decoder in decoders]

    def __call__(self, outputs: Outputs, gold: Tensor) -> LabelDecoder:
        """Returns the decoder with the best `selection` score; of equal ones, the first. Where labels depend on each
        other, temperatures are tried as long as the score rises.

        Args:
            outputs: of the validation part.
            gold: its labels, boolean `(example, label)`.
        """
        decoders = self.decoders()
        if len(decoders) == 1:
            return decoders[0]
        scored = cache(lambda decoder: round(score(decoder(outputs), gold, self.selection), 9))
        if not isinstance(outputs, Tensor) and self.decode != "threshold":
            by_threshold = [decoder for decoder in decoders if decoder.temperature is None]
            by_f1 = [LabelDecoder(temperature=t, nonempty=self.nonempty) for t in self.temperatures]
            decoders = [*by_threshold, _climb(by_f1, scored)]
        return max(decoders, key=scored)

    def __str__(self) -> str:
        """The way in which the decoder was chosen."""
        by_threshold = f"from {GRID[0]} to {GRID[-1]}" if self.threshold == "validation" else ""
        ts = self.temperatures
        by_f1 = f"from temperatures {ts[0]:g} to {ts[-1]:g}" if len(ts) > 1 else ""
        picked = f"picked on validation by {self.selection}"
        if self.decode == "validation":
            one, other = by_threshold or f"{self.threshold:g}", by_f1 or f"temperature {ts[0]:g}"
            sets = "the most probable set" if ts == [0] else f"expected F1, {other}"
            return f"{picked}: a threshold {one}, or {sets}"
        chosen = by_threshold if self.decode == "threshold" else by_f1
        return f"{picked} {chosen}" if chosen else "fixed"


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
