"""docs/spacy.md, run from top to bottom in an empty folder: its commands, its Python, what it says is printed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from spacy.language import Language

from tests.loaded import ROOT

pytestmark = pytest.mark.usefixtures("whole_samples")

PAGE = ROOT / "docs/spacy.md"
SHORT = {
    "names": ["trainer.epochs=6"],
    "tags": ["method=cross_entropy", "trainer.epochs=1"],
    "roles": ["method=cross_entropy", "trainer.epochs=3"],
    "senses": ["trainer.epochs=1"],
    "predicates": ["trainer.epochs=3"],
    "texts": ["method=cross_entropy", "trainer.epochs=1"],
}
"""Arguments that make the page's trainings shorter, by config."""
SHAPES = (
    (re.compile(r"'[^']*'"), "word"),
    (re.compile(r"\b[01]\.\d+"), "probability"),
    (re.compile(r"(\([^()]*\))(?:, \1)*"), r"\1 …"),
)
"""Patterns of what may be printed otherwise than on the page: words, probabilities, tuples one after another."""
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
    if words[0] == "python":
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
        status, said = done.returncode, done.stdout + done.stderr
    else:
        status, said = script(words)
    assert status == 0, f"{shlex.join(words)}\n{said}"


def script(words: list[str]) -> tuple[int, str]:
    """Exit status and output of a command, by what its script calls: a process of its own would import all again."""
    [entry] = entry_points(group="console_scripts", name=words[0])
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        patched.setattr(sys, "argv", words)
        patched.setenv("COLUMNS", "120")
        try:
            return entry.load()() or 0, said.getvalue()
        except SystemExit as exit:
            return exit.code or 0, said.getvalue()


def shape(text: str) -> str:
    for pattern, name in SHAPES:
        text = pattern.sub(name, text)
    return text


def test_a_shape_is_of_any_words_and_of_at_least_one() -> None:
    said = "gave [('ARG0', 'Anna', 0.98), ('ARG2', 'Bob', 1.0)]\n"
    assert shape(said) == shape("gave [('ARG1', 'it', 0.5)]\n") == "gave [(word, word, probability) …]\n"
    assert len({shape(said), shape("gave []\n"), shape("sent" + said[4:]), shape("gave [('ARG0', 'Anna')]\n")}) == 4


@pytest.mark.slow
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
            assert shape(printed) == shape(block)
        else:
            assert printed == block
            compared += 1
    assert compared >= 8
    assert (tmp_path / "frame.svg").read_text().startswith("<svg") and (tmp_path / "scores.json").exists()
    assert (tmp_path / "packages/en_ner_mine-0.0.0").is_dir() and (tmp_path / "packages/en_mine-1.0.0").is_dir()


def test_the_table_has_every_setting() -> None:
    import spen_spacy.factories  # noqa: F401

    table = PAGE.read_text(encoding="utf-8").split("## Settings", 1)[1].split("\n## ", 1)[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| (.*?) \|", table, re.MULTILINE))
    defaults = {
        key: value
        for factory in ("spen_ner", "spen_pos", "spen_parser", "spen_srl", "spen_multilabel", "spen_task")
        for key, value in Language.get_factory_meta(factory).default_config.items()
    }
    assert set(rows) == set(defaults)
    for key, value in defaults.items():
        if value is not None:
            assert rows[key].strip("`").strip('"') == str(value)
