"""Runs docs/spacy.md from top to bottom in an empty folder: its commands, its Python and their output."""

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
"""Arguments that shorten the page's trainings, by config."""
SHAPES = (
    (re.compile(r"'[^']*'"), "word"),
    (re.compile(r"\b[01]\.\d+"), "probability"),
    (re.compile(r"(\([^()]*\))(?:, \1)*"), r"\1 …"),
)
"""Patterns of output that may differ from the page: words, probabilities, consecutive tuples."""
_BLOCK = re.compile(r"^(<!-- varies -->\n)?```(console|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def split_commands(block: str) -> list[list[str]]:
    """Returns the words of each line, except for lines that install something."""
    lines = [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]
    return [words for words in lines if words[0] != "pip"]


def execute(words: list[str]) -> None:
    if words[0] == "spen-run":
        words = [*words, *SHORT[Path(words[1]).stem], "--device", "cpu"]
    if words[:2] == ["spen", "package"] and "--build" not in words:
        words = [*words, "--build", "none"]  # a wheel needs tools that may be missing
    if words[0] == "python":
        process = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
        status, output = process.returncode, process.stdout + process.stderr
    else:
        status, output = run_script(words)
    assert status == 0, f"{shlex.join(words)}\n{output}"


def run_script(words: list[str]) -> tuple[int, str]:
    """Calls a command's function in this process, to save imports; returns its exit status and output."""
    [entry] = entry_points(group="console_scripts", name=words[0])
    stream = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        patch.setattr(sys, "argv", words)
        patch.setenv("COLUMNS", "120")
        try:
            return entry.load()() or 0, stream.getvalue()
        except SystemExit as exit:
            return exit.code or 0, stream.getvalue()


def mask(text: str) -> str:
    for pattern, name in SHAPES:
        text = pattern.sub(name, text)
    return text


def test_a_shape_stands_for_any_words_but_for_at_least_one() -> None:
    line = "gave [('ARG0', 'Anna', 0.98), ('ARG2', 'Bob', 1.0)]\n"
    assert mask(line) == mask("gave [('ARG1', 'it', 0.5)]\n") == "gave [(word, word, probability) …]\n"
    assert len({mask(line), mask("gave []\n"), mask("sent" + line[4:]), mask("gave [('ARG0', 'Anna')]\n")}) == 4


@pytest.mark.slow
def test_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    namespace: dict = {}
    printed, compared = "", 0
    for varies, language, block in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "console":
            for words in split_commands(block):
                execute(words)
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block, str(PAGE), "exec"), namespace)
            printed = out.getvalue()
        elif varies:
            assert mask(printed) == mask(block)
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
