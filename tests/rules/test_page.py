"""Runs docs/rules.md as a reader types it, from a file of rules to a component in spaCy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import blocks, call, commands, files
from tests.users.test_commands import stand_ins


def test_the_page_leads_from_rules_to_spacy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files("docs/rules.md").items():
        Path(name).write_text(text, encoding="utf-8")
    stand_ins(tmp_path)
    table, training, *names = (line for line in commands("docs/rules.md") if "data=btc" not in line)
    assert "asks_about_it" in call(table)
    call(training, "trainer.epochs=1", "--device", "cpu")
    assert "titled" in call(names[0])
    call(names[1], "trainer.epochs=1", "--device", "cpu")
    [component] = [block for block in blocks("docs/rules.md", "python") if "add_pipe" in block]
    exec(component, {})
    assert "'billing':" in capsys.readouterr().out


def test_other_rules_on_the_page_are_rules(tmp_path: Path) -> None:
    from spen_rules.files import load_rules

    (tmp_path / "mine.py").write_text(files("docs/rules.md")["name_rules.py"], encoding="utf-8")
    rules = load_rules(tmp_path / "mine.py").rules
    words = ("Mr.", "Lee", "met", "#fans", "in", "New", "York", "on", "3", "May", "2024")
    assert [(rule.names, list(rule.find(words))) for rule in rules] == [
        (("PER",), [(1, 2)]),
        (("O",), [(3, 4)]),
        (("LOC",), [(5, 7)]),
        (("DATE",), [(8, 11)]),
    ]
