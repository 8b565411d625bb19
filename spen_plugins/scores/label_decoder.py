"""From probabilities of labels to label sets: by a threshold, or by expected F1; fitted to a validation part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spen_plugins.scores.expected_f1 import best_sets
from spen_plugins.scores.labels import GRID, example_f1

TEMPERATURES = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
"""Of which one is picked."""


@dataclass(frozen=True)
class LabelDecoder:
    """Decides on label sets.

    Attributes:
        threshold: a label is predicted if its probability is above it.
        temperature: None, or that of independent labels under which the set of highest expected F1 is predicted; then
            there is no threshold.
    """

    threshold: float = 0.5
    temperature: float | None = None

    def __call__(self, p: Tensor) -> Tensor:
        """The predicted labels, boolean, from probabilities `(example, label)`."""
        return p > self.threshold if self.temperature is None else best_sets(p, self.temperature)

    def __str__(self) -> str:
        if self.temperature is None:
            return f"{self.threshold:g}"
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

    def decoders(self) -> list[LabelDecoder]:
        """All decoders, the nearest to a threshold of 0.5 or a temperature of 1 first."""
        thresholds = sorted(GRID, key=lambda t: abs(t - 0.5)) if self.threshold == "validation" else [self.threshold]
        ts = [self.temperature]
        if self.temperature == "validation":
            ts = sorted(TEMPERATURES, key=lambda t: abs(t - 1))
        decoders = [LabelDecoder(float(t)) for t in thresholds] if self.decode != "expected_f1" else []
        return decoders + [LabelDecoder(temperature=float(t)) for t in ts] if self.decode != "threshold" else decoders

    def __call__(self, p: Tensor, gold: Tensor) -> LabelDecoder:
        """Returns the decoder with the best example F1; of equal ones, the first.

        Args:
            p, gold: probabilities and boolean labels of the validation part, `(example, label)`.
        """
        return _best(self.decoders(), p, gold)

    def __str__(self) -> str:
        """The way in which the decoder was chosen."""
        by_threshold = f"from {GRID[0]} to {GRID[-1]}" if self.threshold == "validation" else ""
        by_f1 = (
            f"from temperatures {TEMPERATURES[0]:g} to {TEMPERATURES[-1]:g}" if self.temperature == "validation" else ""
        )
        if self.decode == "validation":
            one, other = by_threshold or f"{self.threshold:g}", by_f1 or f"temperature {self.temperature:g}"
            return f"picked on validation: a threshold {one}, or expected F1, {other}"
        chosen = by_threshold if self.decode == "threshold" else by_f1
        return f"picked on validation {chosen}" if chosen else "fixed"


def _best(decoders: Sequence[LabelDecoder], p: Tensor, gold: Tensor) -> LabelDecoder:
    if len(decoders) == 1:
        return decoders[0]
    return max(decoders, key=lambda decoder: round(example_f1(decoder(p), gold).mean().item(), 9))


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
