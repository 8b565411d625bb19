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
        mean, std = (np.array(facts[name], dtype=np.float64) for name in ("mean", "std"))
        if not mean.shape == std.shape == (int(np.sum(real)),):
            raise ValueError(f"found {mean.shape} means and {std.shape} deviations of {int(np.sum(real))} features")
        return cls(real, mean, std)


@dataclass(frozen=True)
class Size:
    """value / size, for sparse features: values are then about as large as the ones of binary features.

    Args:
        size: root mean square of the training part's values that are not 0; 1 if there is none.
    """

    size: float

    @classmethod
    def fit(cls, values: np.ndarray) -> Size:
        """Fit to `(total,)`."""
        return cls(float(np.sqrt(np.mean(values.astype(np.float64) ** 2))) if len(values) else 1.0)

    def apply(self, values: np.ndarray) -> None:
        """Scale `(total,)` in place."""
        values /= self.size

    def facts(self) -> dict[str, Any]:
        return {"size": self.size}

    @classmethod
    def restore(cls, facts: Mapping[str, Any], real: np.ndarray) -> Size:
        return cls(float(facts["size"]))
