"""docs/rules.md, from a file of rules to a component in spaCy, as a reader types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loaded import ROOT
from tests.pages import blocks, call, commands, files


def test_the_page_leads_from_rules_to_spacy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for name, text in files("docs/rules.md").items():
        Path(name).write_text(text, encoding="utf-8")
    table, trained = (line for line in commands("docs/rules.md") if "data=btc" not in line)
    assert "asks_about_it" in call(table)
    call(trained, "trainer.epochs=1", "--device", "cpu")
    [component] = [block for block in blocks("docs/rules.md", "python") if "add_pipe" in block]
    exec(component, {})
    assert "'billing':" in capsys.readouterr().out


def test_other_rules_on_the_page_are_rules(tmp_path: Path) -> None:
    from spen_rules.files import load_rules

    [spans] = [block for block in blocks("docs/rules.md", "python") if "titled" in block]
    (tmp_path / "cities.txt").write_text("Paris\nNew York\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text("from spen_rules import lexicon, pattern, rule\n" + spans, encoding="utf-8")
    rules = load_rules(tmp_path / "mine.py").rules
    words = ("Mr.", "Lee", "met", "#fans", "in", "New", "York", "on", "3", "May", "2024")
    assert [(rule.names, list(rule.find(words))) for rule in rules] == [
        (("PER",), [(1, 2)]),
        (("O",), [(3, 4)]),
        (("LOC",), [(5, 7)]),
        (("DATE",), [(8, 11)]),
    ]
