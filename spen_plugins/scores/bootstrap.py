"""Means with standard errors, and the paired bootstrap over test examples, alone or together with seeds.

Efron and Tibshirani 1993, chapters 13 and 16; for scores of language systems Koehn 2004 and Berg-Kirkpatrick et al.
2012; for seeds and examples together Davison and Hinkley 1997, section 3.8; for few seeds Hesterberg 2015. A score is
the ratio of two sums over examples, numerator and denominator, so one product of the resampling counts and a table of
examples yields the scores of every run in every resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
SEED = 20_220_101
"""Seed of the resampling: the same examples are drawn at every call."""
CELLS = 2**20
"""Most counts in memory, resamples times examples: 8 MB."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes:
        mean: mean of the values.
        error: standard error of the mean; None for a single value.
        count: number of values.
    """

    mean: float
    error: float | None
    count: int

    def format(self, unit: str = "") -> str:
        """`41.13 ± 0.25` for fractions 0.4113 and 0.0025, or with a unit for 41.13 and 0.25; no error for one seed."""
        return self.text(scale(unit), 2)

    def text(self, scale: float = 1, digits: int = 4) -> str:
        """Mean ± standard error, times `scale`."""
        error = "" if self.error is None else f" ± {scale * self.error:.{digits}f}"
        return f"{scale * self.mean:.{digits}f}{error}"


@dataclass(frozen=True)
class Interval:
    """Confidence interval and p-value of a difference, by resampling.

    Attributes:
        low, high: 2.5th and 97.5th percentile of the resampled differences.
        p: two-sided; below 0.05 if the interval excludes zero. See `interval` and `compute_joint_interval`.
    """

    low: float
    high: float
    p: float


def scale(unit: str) -> int:
    """The factor of scores in tables: 100, per cent of a fraction, or 1 if they have a unit (`Metric.unit`)."""
    return 1 if unit else 100


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error (sample deviation over the root of the count) of at least one value."""
    array = np.asarray(values, dtype=float)
    error = float(array.std(ddof=1) / len(array) ** 0.5) if len(array) > 1 else None
    return Estimate(float(array.mean()), error, len(array))


def resampled_scores(
    numerator: np.ndarray, denominator: np.ndarray, resamples: int = RESAMPLES, seed: int = SEED
) -> np.ndarray:
    """Scores of all runs under resampling of the examples, the same ones for every run.

    Args:
        numerator, denominator: `(run, example)`; a run's score is their sums' ratio, 0 if the denominator is 0.
        resamples: number of resamples; each draws as many examples as there are, with replacement.
        seed: seed of the draws.

    Returns:
        `(resample, run)`.
    """
    rng = np.random.default_rng(seed)
    runs, examples = numerator.shape
    scores = np.empty((resamples, runs))
    step = max(1, CELLS // examples)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        indices = rng.integers(examples, size=(rows, examples)) + examples * np.arange(rows)[:, None]
        counts = np.bincount(indices.ravel(), minlength=rows * examples).reshape(rows, examples).astype(float)
        numerators, denominators = counts @ numerator.T, counts @ denominator.T
        scores[start : start + rows] = np.divide(
            numerators, denominators, out=np.zeros_like(numerators), where=denominators > 0
        )
    return scores


def resample_seeds(differences: np.ndarray, seed: int = SEED) -> np.ndarray:
    """Differences of means under resampling of the seeds besides the examples, `(resample,)`.

    The mean over seeds drawn with replacement deviates too little from the mean over all, by √((S − 1) / S) for S
    seeds, and few seeds don't show how much they vary. So each deviation is enlarged, by that and by the quotient of
    the 97.5 % quantiles of Student's t with S − 1 degrees of freedom and of the normal distribution: by 1.58 for five
    seeds, 2.69 for three. Then the interval covers about 95 %, or more, whether seeds or examples vary most.

    Args:
        differences: each seed's difference under resampling of the examples, `(resample, seed)`; at least two seeds.
        seed: seed of the draws.
    """
    from scipy.stats import norm, t

    resamples, seeds = differences.shape
    indices = np.random.default_rng([seed, 1]).integers(seeds, size=(resamples, seeds))
    mean = differences.mean(1)
    factor = (seeds / (seeds - 1)) ** 0.5 * t.ppf(0.975, seeds - 1) / norm.ppf(0.975)
    return mean + factor * (np.take_along_axis(differences, indices, 1).mean(1) - mean)


def interval(differences: np.ndarray) -> Interval:
    """Percentile interval and p-value of resampled differences, `(resample,)`.

    p is twice the share of resamples on the rarer side of zero, with one added to both counts, because no finite number
    of resamples shows that a share is zero (Davison and Hinkley 1997, section 4.2).
    """
    low, high = np.percentile(differences, (2.5, 97.5))
    rarer_count = min((differences <= 0).sum(), (differences >= 0).sum())
    return Interval(float(low), float(high), float(min(1.0, 2 * (rarer_count + 1) / (len(differences) + 1))))


def compute_joint_interval(differences: np.ndarray, seed: int = SEED) -> Interval:
    """Percentile interval and p-value of a mean difference over seeds and examples together.

    Resampling few seeds gives few means, none of them far out, so the resamples beyond zero can't be counted as in
    `interval`. Instead p is that of Student's t with S − 1 degrees of freedom for S seeds, in which the distance from
    the mean to the bound towards zero counts as the 97.5 % quantile. So p < 0.05 exactly if the interval excludes zero.
    If only seeds vary, p is about that of a paired t-test. If examples vary too, small p are too large.

    Args:
        differences, seed: as in `resample_seeds`.
    """
    from scipy.stats import t

    low, high = map(float, np.percentile(resample_seeds(differences, seed), (2.5, 97.5)))
    mean, freedom = float(differences.mean()), differences.shape[1] - 1
    width = mean - low if mean > 0 else high - mean
    quantile = t.ppf(0.975, freedom) * abs(mean) / width if width > 0 else np.inf if mean else 0.0
    return Interval(low, high, float(2 * t.sf(quantile, freedom)))
