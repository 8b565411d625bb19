"""The simulation of large jobs against hand-worked cases, and the comparison of annotated rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.loaded import ROOT, module_of

TOOLS = ROOT / "tools/bench"
NEVER = 1e30


@pytest.fixture(scope="module")
def scale():
    return module_of(TOOLS / "simulate_scale.py")


def make_rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_equal_shards_end_in_rounds(scale) -> None:
    result = scale.simulate(np.full(10, 3.0), np.ones(4), NEVER, 0, make_rng())
    assert result == pytest.approx((9, 9 / 7.5 - 1, 0, 1 - 30 / 36))


def test_a_slow_worker_keeps_the_others_waiting(scale) -> None:
    """Five shards: the fast worker does four while the slow one does its first."""
    result = scale.simulate(np.full(5, 1.0), np.array([1.0, 4.0]), NEVER, 0, make_rng())
    assert result == pytest.approx((4, 0, 0, 0))


def test_work_of_dead_workers_is_repeated(scale) -> None:
    """One worker: its time is that of the shards plus the lost time."""
    result = scale.simulate(np.full(50, 1.0), np.ones(1), 5.0, 2.0, make_rng())
    assert result.lost > 0 and result.seconds == pytest.approx(50 + result.lost * result.seconds)
    times = [
        scale.simulate(np.full(1, 1.0), np.ones(1), 2.0, 0.0, np.random.default_rng(i)).seconds for i in range(4000)
    ]
    assert np.mean(times) == pytest.approx(2 * (np.exp(1 / 2) - 1), rel=0.05)  # a task of 1 with restarts at rate 1/2


def test_larger_shards_are_sums_of_measured_ones(scale) -> None:
    times = np.array([1.0, 3.0])
    one, four = (scale.drawn(times, 100, words, 4000, make_rng()) for words in (100, 400))
    assert set(one) == {1.0, 3.0} and four.mean() == pytest.approx(8, rel=0.02)
    assert four.std() == pytest.approx(2, rel=0.05)
    assert set(scale.drawn(times, 100, 50, 100, make_rng())) == {0.5, 1.5}


def test_rows_are_compared_by_words_and_by_numbers(tmp_path: Path) -> None:
    bench = module_of(TOOLS / "bench_annotate.py")
    rows = [{"text": "a", "ents": [{"label": "X", "score": 0.5}]}, {"text": "b", "ents": []}]
    changed_rows = [{"text": "a", "ents": [{"label": "X", "score": 0.625}]}, {"text": "b", "ents": []}]
    other_rows = [{"text": "a", "ents": [{"label": "Y", "score": 0.5}]}, {"text": "b", "ents": []}]
    for name, table in (("one", rows), ("same", rows), ("changed", changed_rows), ("other", other_rows)):
        (tmp_path / name).mkdir()
        parquet.write_table(pa.Table.from_pylist(table), tmp_path / name / "shard-000000.parquet")
    differences = {name: bench.difference(tmp_path / "one", tmp_path / name) for name in ("same", "changed", "other")}
    assert differences["same"] == {"same_rows": True, "largest_difference": 0, "shards": 1, "other_bytes": 0}
    assert differences["changed"] == {"same_rows": True, "largest_difference": 0.125, "shards": 1, "other_bytes": 1}
    assert not differences["other"]["same_rows"]
    (tmp_path / "other/shard-000000.parquet").unlink()
    assert not bench.difference(tmp_path / "one", tmp_path / "other")["same_rows"]
