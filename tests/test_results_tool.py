"""`tools/results.py`: tables in the pages of results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loaded import module_of

PAGE = """# Page

## one

What it is.

| old |
|---|

```
spen-run old
```

- read

### two

after
"""


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tool = module_of(Path(__file__).parent.parent / "tools" / "results.py")
    monkeypatch.setattr(tool, "ROOT", tmp_path / "runs")
    monkeypatch.setattr(tool, "block", lambda name, group: f"| new of {name} |\n|---|\n\n```\nspen-run new\n```")
    return tool


def done(tool, *runs: str) -> None:
    for run in runs:
        folder = tool.ROOT / run
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text("{}")


GROUP = {"seeds": [0, 1], "rows": {"a": {}, "b": {"seeds": [0]}}}


def test_a_table_takes_the_place_of_the_old_one_and_nothing_else(tool, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    done(tool, "one/a/0", "one/a/1", "one/b/0", "two/a/0", "two/a/1")
    for name in ("one", "two"):
        tool.write(name, GROUP, tmp_path)
    assert page.read_text() == PAGE.replace("old", "new of one", 1).replace("run old", "run new")  # two lacks a run
    done(tool, "two/b/0")
    tool.write("two", GROUP, tmp_path)
    assert "### two\n\n| new of two |\n|---|\n\n```\nspen-run new\n```\n\nafter\n" in page.read_text()
