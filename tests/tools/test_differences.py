"""Differences of methods over paired seeds and examples."""

from __future__ import annotations

import numpy as np
import pytest

from spen_plugins.scores import bootstrap
from spen_plugins.scores.bootstrap import interval
from tools.results.differences import differences


def test_differences_of_methods_are_paired_by_seed_and_example():
    rng = np.random.default_rng(0)
    first = rng.integers(2, size=(3, 50)).astype(float)
    second = np.minimum(first + (rng.random((3, 50)) < 0.2), 1)
    results = differences(np.stack([second, first]), np.ones((2, 3, 50)), baseline=1)
    assert results[1] == (0.0, interval(np.zeros(bootstrap.RESAMPLES)))
    mean, bounds = results[0]
    assert mean == pytest.approx((second - first).mean(), abs=0.01) and bounds.low < mean < bounds.high
    single_mean, single_bounds = differences(np.stack([second, first])[:, :1], np.ones((2, 1, 50)), baseline=1)[0]
    assert (
        single_mean == pytest.approx((second - first)[0].mean(), abs=0.01)
        and single_bounds.low < single_mean < single_bounds.high
    )
