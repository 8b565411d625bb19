"""Tables of docs/results from docs/results/runs.csv."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loaded import ROOT
from tools.results.pages import MARK, fill, read_runs

LINES = """group,row,seed,score,validation,test,epochs,seconds,processor,torch
"a, b",crf,0,f1,50.00,60.00,3,1,,
"a, b",crf,1,f1,52.00,61.00,3,1,,
"a, b","crf, at 0.5",0,f1,,40.00,3,1,,
"""
TABLE = """<!-- runs.csv; a, b; MARK -->

| | validation | test | − other |
|---|---:|---:|---:|
| CRF | **1.0** ± 0.5 (2) | 0.00 ± 0.00 | +9.0 [8.0, 9.9] |
| other | 1.0 | 2.0 | |

7.0 below the table
"""


@pytest.fixture
def runs(tmp_path: Path) -> object:
    (tmp_path / "runs.csv").write_text(LINES, encoding="utf-8")
    return read_runs(tmp_path / "runs.csv")


def test_cells_are_means_over_seeds_and_the_rest_is_kept(runs) -> None:
    page = fill(TABLE.replace("MARK", "crf |; f1 validation | f1 test"), runs)
    expected = TABLE.replace("MARK", "crf |; f1 validation | f1 test")
    expected = expected.replace("**1.0** ± 0.5", "**51.0** ± 1.0").replace("0.00 ± 0.00", "60.50 ± 0.50")
    assert page == expected and fill(page, runs) == page


@pytest.mark.parametrize(
    ("mark", "cell"),
    [("crf @ 1 |; f1 validation | f1 test", "| 61.00 |"), ("crf |; | f1 test, at 0.5", "| 40.00 |")],
)
def test_a_row_may_select_seeds_and_a_column_other_rows(runs, mark: str, cell: str) -> None:
    assert cell in fill(TABLE.replace("MARK", mark).replace("0.00 ± 0.00", "0.00"), runs)


def test_figures_that_two_digits_do_not_decide_are_kept(runs) -> None:
    """60.50 and 0.50 may be rounded from 60.495 and 0.504."""
    table = TABLE.replace("MARK", "crf |; | f1 test")
    for cell, expected in (("60.5 ± 0.5", "60.5 ± 0.5"), ("60.4 ± 0.5", "60.5 ± 0.5"), ("60 ± 1", "60 ± 1")):
        assert expected in fill(table.replace("0.00 ± 0.00", cell), runs)


@pytest.mark.parametrize("mark", ["crf; f1 test", "crf |; f1 | | | | f1 test", "other |; f1 test", "crf |; ucr test"])
def test_a_mark_that_does_not_fit_is_named(runs, mark: str) -> None:
    with pytest.raises(SystemExit, match="a, b"):
        fill(TABLE.replace("MARK", mark), runs)


def test_the_pages_agree_with_the_runs() -> None:
    runs, marks = read_runs(ROOT / "docs/results/runs.csv"), 0
    for path in sorted((ROOT / "docs/results").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert fill(text, runs) == text, f"{path.name}: make results"
        assert text.count("<!-- runs.csv;") == len(MARK.findall(text)), f"{path.name}: a mark without a table"
        marks += len(MARK.findall(text))
    assert marks >= 28
