"""Differences of methods that were trained with the same seeds."""

from __future__ import annotations

import numpy as np

from spen_plugins.scores.bootstrap import Interval, compute_joint_interval, interval, resampled_scores


def differences(numerator: np.ndarray, denominator: np.ndarray, baseline: int) -> list[tuple[float, Interval]]:
    """Mean differences of methods to one of them, with intervals over seeds and examples together.

    Args:
        numerator, denominator: `(method, seed, example)`, as for `resampled_scores`; seeds are paired.
        baseline: the index of the method that all are compared to.
    """
    methods, seeds, examples = numerator.shape
    flat = (part.reshape(methods * seeds, examples) for part in (numerator, denominator))
    resamples = resampled_scores(*flat).reshape(-1, methods, seeds)
    gaps = [resamples[:, method] - resamples[:, baseline] for method in range(methods)]
    return [(float(gap.mean()), compute_joint_interval(gap) if seeds > 1 else interval(gap[:, 0])) for gap in gaps]
