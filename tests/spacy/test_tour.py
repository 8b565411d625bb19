"""docs/spacy.md, run from top to bottom in an empty folder: its commands, its Python, what it says is printed."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/spacy.md"
SHORT = {
    "ner_infnet": ["epochs=6"],
    "pos_infnet": ["method=cross_entropy", "epochs=1"],
    "srl_seal": ["method=cross_entropy", "epochs=5"],
    "predicates": ["epochs=3"],
    "text_seal": ["method=cross_entropy", "epochs=1"],
}
"""Arguments that make the page's trainings shorter, by config."""
_BLOCK = re.compile(r"^(<!-- varies -->\n)?```(console|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[list[str]]:
    """The words of each line but for those that install something."""
    lines = [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]
    return [words for words in lines if words[0] != "pip"]


def execute(words: list[str]) -> None:
    if words[0] == "spen-run":
        words = [*words, *SHORT[Path(words[1]).stem], "--device", "cpu"]
    if words[:2] == ["spen", "package"] and "--build" not in words:
        words = [*words, "--build", "none"]  # a wheel needs tools that need not be here
    program = [sys.executable] if words[0] == "python" else [str(Path(sys.executable).parent / words[0])]
    done = subprocess.run([*program, *words[1:]], capture_output=True, text=True, env=os.environ | {"COLUMNS": "120"})
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"


def test_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    names: dict = {}
    printed, compared = "", 0
    for varies, language, block in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "console":
            for words in commands(block):
                execute(words)
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block, str(PAGE), "exec"), names)
            printed = out.getvalue()
        elif varies:
            assert printed.count("\n") >= 1
        else:
            assert printed == block
            compared += 1
    assert compared >= 8
    assert (tmp_path / "frame.svg").read_text().startswith("<svg") and (tmp_path / "scores.json").exists()
    assert (tmp_path / "packages/en_ner_mine-0.0.0").is_dir() and (tmp_path / "packages/en_mine-1.0.0").is_dir()


def test_the_table_has_every_setting() -> None:
    from spacy.language import Language

    import spen_spacy.factories  # noqa: F401

    table = PAGE.read_text(encoding="utf-8").split("## Settings", 1)[1].split("\n## ", 1)[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (.*?) \|", table, re.MULTILINE))
    defaults = {
        key: value
        for factory in ("spen_ner", "spen_pos", "spen_srl", "spen_multilabel")
        for key, value in Language.get_factory_meta(factory).default_config.items()
    }
    assert set(rows) == set(defaults)
    for key, value in defaults.items():
        if value is not None:
            assert rows[key].strip("`").strip('"') == str(value)
