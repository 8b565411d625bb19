"""`tools/results/results.py`: tables in the pages of results."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from tests.loaded import ROOT, module_of

TOOLS = ROOT / "tools/results"
PAGE = """# Page

## one

What it is.

|  | f1 | f1 − b | seeds |
|---|---:|---:|---:|
| a | 1.0 | 0.5 | 2 |
| b | 0.5 |  | 1 |

Old.

```
spen-run old
```

- read

### two

after
"""


NEW = """|  | f1 |
|---|---:|
{}

New.
"""
GROUP = {"seeds": [0, 1], "config": "c", "rows": {"a": {}, "b": {"seeds": [0]}}}
COMMANDS = """```
spen-run c seed=0   # a, seeds [0, 1]
spen-run c seed=0   # b, seeds [0]
```"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tool = module_of(TOOLS / "results.py")
    monkeypatch.setattr(tool, "ROOT", tmp_path / "runs")
    monkeypatch.setattr(tool, "compared", lambda name, group, rows: make_table(*rows))
    return tool


def make_table(*rows: str) -> str:
    return NEW.format("\n".join(f"| {row} | 2.0 |" for row in rows))


def write_metrics(tool, *runs: str) -> None:
    for run in runs:
        folder = tool.ROOT / run
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text("{}")


def test_a_table_replaces_only_the_old_one(tool, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    write_metrics(tool, "one/a/0", "one/a/1", "one/b/0", "two/a/0", "two/a/1")
    for name in ("one", "two"):
        tool.write(name, GROUP, tmp_path)
    start, end = PAGE.index("|  | f1"), PAGE.index("\n\n- read")
    assert page.read_text() == f"{PAGE[:start]}{make_table('a', 'b')}\n{COMMANDS}{PAGE[end:]}"  # group two lacks a run
    write_metrics(tool, "two/b/0")
    tool.write("two", GROUP, tmp_path)
    assert f"### two\n\n{make_table('a', 'b')}\n{COMMANDS}\n\nafter\n" in page.read_text()


EXPECTED_ROWS = {
    "a": ("| a | 2.0 |  |  |\n| b | 0.5 |  | 1 |", "b"),
    "b": ("| a | 1.0 |  | 2 |\n| b | 2.0 |  |  |", "a"),  # the row that a's difference refers to has changed
}


@pytest.mark.parametrize("remaining", EXPECTED_ROWS)
def test_rows_whose_runs_are_gone_are_kept(tool, tmp_path: Path, remaining: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    write_metrics(tool, f"one/{remaining}/0", f"one/{remaining}/1")
    tool.write("one", GROUP, tmp_path)
    rows, missing = EXPECTED_ROWS[remaining]
    note = f"- no runs are left of {missing}: their figures stay, without differences from what was run again"
    expected = f"|  | f1 | f1 − b | seeds |\n|---|---:|---:|---:|\n{rows}\n\nNew.\n\n{note}\n\n{COMMANDS}\n"
    assert expected in page.read_text()


def test_differences_from_unchanged_rows_are_kept(tool) -> None:
    old = "|  | f1 | f1 − b |\n|---|\n| a | 1.0 | 0.5 |\n| b | 0.5 |  |\n| out | 7 |  |\n"
    new = "|  | f1 |\n|---|---:|\n| b | 0.5 |\n\nNew.\n\n- a note\n"
    merged = tool.merged(old, new, ["a", "b"])
    assert (
        "| a | 1.0 | 0.5 |\n| b | 0.5 |  |\n\nNew.\n\n- a note\n- no runs are left of a:" in merged
        and "| out" not in merged
    )


def test_a_table_of_another_form_is_kept(tool, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(other := PAGE.replace("|  | f1", "| score | f1"))
    write_metrics(tool, "one/a/0", "one/a/1", "one/b/0")
    tool.write("one", GROUP, tmp_path)
    assert page.read_text() == other


SPEC = """one:
  config: labels
  arguments: {trainer.epochs: 1, "features.hidden": [4]}
  scores: [example_f1]
  seeds: [0]
  rows:
    broken: {arguments: {trainer.epochs: -1}}
    whole: {arguments: {method: cross_entropy}}
"""


def test_a_run_that_failed_is_named_at_the_end_and_the_others_complete(tool, tmp_path: Path, monkeypatch) -> None:
    """The file of runs has the processor and the version of torch; lines from other versions are kept."""
    monkeypatch.setattr(tool, "compared", lambda name, group, rows: "")
    (tmp_path / "spec.yaml").write_text(SPEC)
    old = "group,row,seed,score,validation,test,epochs,seconds\none,gone,0,example_f1,1.00,2.00,3,4\n"
    (tmp_path / "runs.csv").write_text(old)
    monkeypatch.setattr(sys, "argv", ["results.py", str(tmp_path / "spec.yaml"), "--csv", str(tmp_path / "runs.csv")])
    with pytest.raises(SystemExit) as error:
        tool.main()
    assert "1 runs failed" in error.value.code and "trainer.epochs=-1" in error.value.code
    assert "cross_entropy" not in error.value.code
    with (tmp_path / "runs.csv").open(newline="") as file:
        old_line, line = csv.DictReader(file)
    assert old_line == dict.fromkeys(line, "") | {
        "group": "one", "row": "gone", "seed": "0", "score": "example_f1", "validation": "1.00", "test": "2.00",
        "epochs": "3", "seconds": "4",
    }  # fmt: skip
    environment = json.loads((tool.ROOT / "one/whole/0/environment.json").read_text())
    assert (line["row"], line["processor"], line["torch"]) == (
        "whole",
        environment["processor"],
        environment["packages"]["torch"],
    )
    assert line["processor"]
