"""The tool that trains on the split of published tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spen_plugins.data.parts.split import read_split
from tools.results import published_split
from tools.results.published_split import TOTAL, TRAINED, Table, divide


def test_a_quarter_of_the_first_rows_validates(tmp_path: Path) -> None:
    parts = read_split(divide(tmp_path / "split.json"), TOTAL)
    assert [len(rows) for rows in parts.values()] == [3660, 1220, 2515]
    assert sorted([*parts["train"], *parts["validation"]]) == [*range(TRAINED)] == [*range(parts["test"][0])]
    assert divide(tmp_path / "again.json").read_bytes() == (tmp_path / "split.json").read_bytes()
    assert read_split(divide(tmp_path / "other.json", 1), TOTAL)["validation"] != parts["validation"]


def test_runs_are_trained_once_and_decoded_again(tmp_path: Path, monkeypatch) -> None:
    def arguments(self: Table, row: str, seed: int) -> dict[str, str]:
        settings = {"features.hidden": "[4]", "trainer.epochs": "1", "seed": str(seed)}
        return {"data": "sample", "method": row, **settings, **published_split.DECODERS["threshold"]}

    monkeypatch.setattr(Table, "_name_arguments", arguments)
    table, rows = Table("ours", tmp_path, [0, 1, 2]), ("cross_entropy", "mean_3")
    output = table.write(rows)
    assert [line.split("|")[1].strip() for line in output.splitlines()[2:]] == list(rows)
    modified = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.json")}
    assert len(modified) == 8 and table.write(rows) == output
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.json")} == modified
    metrics = json.loads((table.run("cross_entropy", 1, "expected_f1") / "metrics.json").read_text())
    assert "expected F1" in metrics["protocol"]["threshold"]
    groups = [line["group"] for line in table.lines(rows)]
    assert groups == ["bibtex, ours, threshold"] * 4 + ["bibtex, ours, expected_f1"] * 4


def test_no_mean_is_repeated(tmp_path: Path) -> None:
    assert Table("ours", tmp_path, [0, 1, 2]).find_seeds("mean_3") == [0]
    assert Table("ours", tmp_path, [5, 6, 7, 8, 9]).find_seeds("mean_3") == [5]
    assert Table("ours", tmp_path, [*range(6)]).find_seeds("mean_3") == [0, 3]
    assert Table("ours", tmp_path, [0, 1, 2]).find_seeds("nce") == [0, 1, 2]


def test_a_mean_requires_three_seeds(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["published_split", "runs", "--seeds", "0", "1"])
    with pytest.raises(SystemExit):
        published_split.main()
    assert "mean_3 requires 3 seeds; found 2" in capsys.readouterr().err
