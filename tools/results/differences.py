"""Differences of methods that were trained with the same seeds."""

from __future__ import annotations

import numpy as np

from spen_plugins.scores.bootstrap import Interval, interval, resampled_scores, with_seeds


def differences(numerator: np.ndarray, denominator: np.ndarray, baseline: int) -> list[tuple[float, Interval]]:
    """Mean differences of methods to one of them, with intervals over seeds and examples together.

    Args:
        numerator, denominator: `(method, seed, example)`, as of `resampled_scores`; seeds are paired.
        baseline: the method that the others are compared to, and itself.
    """
    methods, seeds, examples = numerator.shape
    flat = (part.reshape(methods * seeds, examples) for part in (numerator, denominator))
    drawn = resampled_scores(*flat).reshape(-1, methods, seeds)
    gaps = [drawn[:, method] - drawn[:, baseline] for method in range(methods)]
    return [(float(gap.mean()), interval(with_seeds(gap) if seeds > 1 else gap[:, 0])) for gap in gaps]
