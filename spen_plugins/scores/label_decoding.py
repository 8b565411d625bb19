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
"""Temperatures of which one is picked."""

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
    """The law of dependent labels under which F1 is expected; empty for independent labels."""
    if isinstance(proposal, IndependentLabels):
        return ""
    return "the exact law of labels and sizes" if knows_sizes(proposal) else f"{SAMPLES} samples"


@dataclass(frozen=True)
class LabelDecoder:
    """Decides on label sets.

    Attributes:
        threshold: a label is predicted if its probability is above it.
        temperature: T of the distribution under which the set of highest expected F1 is predicted, at 0 the most
            probable set; then there is no threshold. None: decode by the threshold.
        nonempty: predict the label of highest probability in place of an empty set.
    """

    threshold: float = 0.5
    temperature: float | None = None
    nonempty: bool = False

    @property
    def labelwise(self) -> bool:
        """True if the decision on a label depends on its own probability alone."""
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
        has_hierarchy = isinstance(proposal.space, LabelSet) and proposal.space.forest is not None
        return _fill(predicted, marginals(proposal), ties=has_hierarchy)

    def __str__(self) -> str:
        suffix = "; for an empty set, the most probable label" if self.nonempty else ""
        if self.temperature is None:
            return f"{self.threshold:g}{suffix}"
        if self.temperature == 0:
            return f"none, but the most probable sets{suffix}"
        return f"none, but sets of highest expected F1 at temperature {self.temperature:g}{suffix}"


def _fill(predicted: Tensor, p: Tensor, ties: bool = False) -> Tensor:
    """The sets, with the label of highest probability in each empty one; with `ties`, all labels that have it."""
    is_likeliest = p == p.amax(1, keepdim=True) if ties else F.one_hot(p.argmax(1), p.shape[1]).bool()
    return predicted | is_likeliest & ~predicted.any(1, keepdim=True)


@dataclass(frozen=True)
class Fit:
    """Decoders among which a validation part chooses.

    Attributes:
        decode: "threshold", "expected_f1", or "validation" for both.
        threshold, temperature: of the decoders: a number, or "validation" for `GRID` and `TEMPERATURES`.
        selection: score of the validation part that chooses. If it is accuracy, "validation" stands for temperature 0,
            the most probable set, which no other set beats under the net's distribution.
        nonempty: as in the decoders.
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
        """All decoders, those nearest to a threshold of 0.5 or a temperature of 1 first."""
        thresholds = sorted(GRID, key=lambda t: abs(t - 0.5)) if self.threshold == "validation" else [self.threshold]
        ts = sorted(self.temperatures, key=lambda t: abs(t - 1))
        decoders = [LabelDecoder(float(t)) for t in thresholds] if self.decode != "expected_f1" else []
        decoders += [LabelDecoder(temperature=t) for t in ts] if self.decode != "threshold" else []
        return [replace(decoder, nonempty=self.nonempty) for decoder in decoders]

    def __call__(self, outputs: Outputs, gold: Tensor) -> LabelDecoder:
        """Returns the decoder with the best `selection` score; of equal ones, the first. If labels depend on each
        other, temperatures are tried as long as the score rises.

        Args:
            outputs: the validation part's outputs.
            gold: its labels, boolean `(example, label)`.
        """
        decoders = self.decoders()
        if len(decoders) == 1:
            return decoders[0]
        rate = cache(lambda decoder: round(score(decoder(outputs), gold, self.selection), 9))
        if not isinstance(outputs, Tensor) and self.decode != "threshold":
            threshold_decoders = [decoder for decoder in decoders if decoder.temperature is None]
            f1_decoders = [LabelDecoder(temperature=t, nonempty=self.nonempty) for t in self.temperatures]
            decoders = [*threshold_decoders, _climb(f1_decoders, rate)]
        return max(decoders, key=rate)

    def __str__(self) -> str:
        """The way in which the decoder was chosen."""
        thresholds = f"from {GRID[0]} to {GRID[-1]}" if self.threshold == "validation" else ""
        ts = self.temperatures
        temperatures = f"from temperatures {ts[0]:g} to {ts[-1]:g}" if len(ts) > 1 else ""
        origin = f"picked on validation by {self.selection}"
        if self.decode == "validation":
            threshold, temperature = thresholds or f"{self.threshold:g}", temperatures or f"temperature {ts[0]:g}"
            sets = "the most probable set" if ts == [0] else f"expected F1, {temperature}"
            return f"{origin}: a threshold {threshold}, or {sets}"
        choices = thresholds if self.decode == "threshold" else temperatures
        return f"{origin} {choices}" if choices else "fixed"


def _climb(decoders: Sequence[LabelDecoder], score: Callable[[LabelDecoder], float]) -> LabelDecoder:
    """The best of decoders with ascending temperatures, tried from 1 towards whichever side scores better and as long
    as it does: under flat laws the best sets of dependent labels are large, and take long to find."""
    index = min(range(len(decoders)), key=lambda i: abs(decoders[i].temperature - 1))
    for step in (1, -1):
        while 0 <= index + step < len(decoders) and score(decoders[index + step]) > score(decoders[index]):
            index += step
    return decoders[index]


def between(logits: Tensor, predicted: Tensor) -> Tensor:
    """Log-odds of each row, `(..., 1)`, below those of its predicted labels and above those of its other labels.

    Half-way between the two nearest, so equal to them if they are equal; 1 beyond the last if all are predicted, or
    none.

    Args:
        logits: log-odds of the labels, `(..., label)`.
        predicted: the likeliest labels of each row, boolean.
    """
    lowest = logits.masked_fill(~predicted, torch.inf).amin(-1, keepdim=True)
    highest = logits.masked_fill(predicted, -torch.inf).amax(-1, keepdim=True)
    return (torch.where(lowest.isinf(), highest + 2, lowest) + torch.where(highest.isinf(), lowest - 2, highest)) / 2
