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
    monkeypatch.setattr(tool, "compared", lambda name, group, rows: table(*rows))
    return tool


def table(*rows: str) -> str:
    return NEW.format("\n".join(f"| {row} | 2.0 |" for row in rows))


def done(tool, *runs: str) -> None:
    for run in runs:
        folder = tool.ROOT / run
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text("{}")


def test_a_table_takes_the_place_of_the_old_one_and_nothing_else(tool, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    done(tool, "one/a/0", "one/a/1", "one/b/0", "two/a/0", "two/a/1")
    for name in ("one", "two"):
        tool.write(name, GROUP, tmp_path)
    start, end = PAGE.index("|  | f1"), PAGE.index("\n\n- read")
    assert page.read_text() == f"{PAGE[:start]}{table('a', 'b')}\n{COMMANDS}{PAGE[end:]}"  # two lacks a run
    done(tool, "two/b/0")
    tool.write("two", GROUP, tmp_path)
    assert f"### two\n\n{table('a', 'b')}\n{COMMANDS}\n\nafter\n" in page.read_text()


KEPT = {
    "a": ("| a | 2.0 |  |  |\n| b | 0.5 |  | 1 |", "b"),
    "b": ("| a | 1.0 |  | 2 |\n| b | 2.0 |  |  |", "a"),  # what a's difference was from has changed
}


@pytest.mark.parametrize("left", KEPT)
def test_rows_whose_runs_are_gone_stay(tool, tmp_path: Path, left: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    done(tool, f"one/{left}/0", f"one/{left}/1")
    tool.write("one", GROUP, tmp_path)
    rows, gone = KEPT[left]
    note = f"- no runs are left of {gone}: their figures stay, without differences from what was run again"
    shown = f"|  | f1 | f1 − b | seeds |\n|---|---:|---:|---:|\n{rows}\n\nNew.\n\n{note}\n\n{COMMANDS}\n"
    assert shown in page.read_text()


def test_differences_from_what_is_as_it_was_stay(tool) -> None:
    old = "|  | f1 | f1 − b |\n|---|\n| a | 1.0 | 0.5 |\n| b | 0.5 |  |\n| out | 7 |  |\n"
    new = "|  | f1 |\n|---|---:|\n| b | 0.5 |\n\nNew.\n\n- a note\n"
    found = tool.merged(old, new, ["a", "b"])
    assert (
        "| a | 1.0 | 0.5 |\n| b | 0.5 |  |\n\nNew.\n\n- a note\n- no runs are left of a:" in found
        and "| out" not in found
    )


def test_a_table_of_another_form_stays(tool, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(other := PAGE.replace("|  | f1", "| score | f1"))
    done(tool, "one/a/0", "one/a/1", "one/b/0")
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


def test_a_run_that_failed_is_named_at_the_end_and_the_others_are_done(tool, tmp_path: Path, monkeypatch) -> None:
    """The file of runs has the processor and torch; lines that other versions wrote stay."""
    monkeypatch.setattr(tool, "compared", lambda name, group, rows: "")
    (tmp_path / "spec.yaml").write_text(SPEC)
    old = "group,row,seed,score,validation,test,epochs,seconds\none,gone,0,example_f1,1.00,2.00,3,4\n"
    (tmp_path / "runs.csv").write_text(old)
    monkeypatch.setattr(sys, "argv", ["results.py", str(tmp_path / "spec.yaml"), "--csv", str(tmp_path / "runs.csv")])
    with pytest.raises(SystemExit) as end:
        tool.main()
    assert "1 runs failed" in end.value.code and "trainer.epochs=-1" in end.value.code
    assert "cross_entropy" not in end.value.code
    with (tmp_path / "runs.csv").open(newline="") as file:
        before, line = csv.DictReader(file)
    assert before == dict.fromkeys(line, "") | {
        "group": "one", "row": "gone", "seed": "0", "score": "example_f1", "validation": "1.00", "test": "2.00",
        "epochs": "3", "seconds": "4",
    }  # fmt: skip
    kept = json.loads((tool.ROOT / "one/whole/0/environment.json").read_text())
    assert (line["row"], line["processor"], line["torch"]) == ("whole", kept["processor"], kept["packages"]["torch"])
    assert line["processor"]
