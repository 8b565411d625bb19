"""Standardising real features with the training part's statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scaling:
    """(value - mean) / deviation of the real features; missing values become 0, the training mean.

    Args:
        real: mask of the real features, boolean `(size,)`; the others are unchanged.
        mean: mean of the training part's known values, `(reals,)`; 0 if none is known.
        std: their standard deviation (divided by n), `(reals,)`; 1 if it is 0.
    """

    real: np.ndarray
    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def fit(cls, training: np.ndarray, real: np.ndarray) -> Scaling:
        """Fit to `(rows, size)`, with NaN for missing values."""
        values = training[:, real].astype(np.float64)
        known = ~np.isnan(values)
        count = np.maximum(known.sum(0), 1)
        mean = np.where(known, values, 0).sum(0) / count
        std = np.sqrt((np.where(known, values - mean, 0) ** 2).sum(0) / count)
        # rounding can give a constant column a tiny deviation
        constant = std <= 1e-7 * np.abs(mean)
        return cls(real, mean, np.where(constant, 1.0, std))

    def apply(self, matrix: np.ndarray) -> None:
        """Scale `(rows, size)` in place."""
        scaled = (matrix[:, self.real] - self.mean) / self.std
        matrix[:, self.real] = np.where(np.isnan(scaled), 0.0, scaled)

    def facts(self) -> dict[str, Any]:
        return {"mean": self.mean.tolist(), "std": self.std.tolist()}

    @classmethod
    def restore(cls, facts: Mapping[str, Any], real: np.ndarray) -> Scaling:
        return cls(real, np.array(facts["mean"]), np.array(facts["std"]))
