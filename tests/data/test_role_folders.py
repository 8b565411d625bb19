"""Folders and patterns of role files: reading in order, checks, splits, recognition and prediction."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import spen_plugins as sp
from spen_plugins.data.catalogue import find_files, is_pattern
from spen_plugins.data.disk.shards import checksum, is_sharded, shards
from spen_plugins.data.parts.split import split_file
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.runs.folder.sources import warn_if_seen
from tests.loaded import loaded, trained

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo")


def sentence(name: str, verb: str = "sings") -> str:
    rows = [(name, "-", "-", "(ARG0*)"), (verb, verb.removesuffix("s"), "01", "(V*)"), ("songs", "-", "-", "(ARG1*)")]
    return "".join(f"d/x 0 {i} {w} NN * {lemma} {s} - - * {b} -\n" for i, (w, lemma, s, b) in enumerate(rows)) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder laid out like OntoNotes: files in folders, one of them without predicates, and copies without words."""
    files = {
        "b/02.v4_gold_conll": sentence("Ben") + sentence("Cleo", "hums"),
        "a/z/10.gold_conll": sentence("Ada"),
        "c/03.gold_conll": "d/x 0 0 Yes UH * - - - - * -\n\n",
        "a/z/10.gold_skel": sentence("[WORD]"),
        "b/02.parse": "(TOP)",
        "b/.02.gold_conll": "no file of the corpus",
    }
    for name, text in files.items():
        (tmp_path / "corpus" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpus" / name).write_text(text)
    return tmp_path / "corpus"


def test_files_below_a_folder_are_read_by_path(folder: Path) -> None:
    for gold in (True, False):
        corpus = read_roles(folder, gold=gold)
        assert [s.words[0] for s in corpus.sentences] == ["Ada", "Ben", "Cleo", "Yes"]
        ignored = "(2 others ignored: *.gold_skel, *.parse)"
        assert corpus.description == f"read as CoNLL-2012 (gold_conll), 3 files {ignored}: 4 sentences, 3 predicates"


@pytest.mark.parametrize("pattern", ["**/*gold_conll", "*/*/10.*_conll", "b/02*l"])
def test_patterns(folder: Path, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted(file for file in folder.glob(pattern) if not file.name.startswith("."))
    (folder / "b/.02.gold_conll").unlink()
    assert read_roles(folder / pattern).sentences == [s for f in files for s in read_roles(f, gold=False).sentences]
    monkeypatch.chdir(folder)
    assert checksum(Path(pattern)) == checksum(folder / pattern)
    with pytest.raises(sp.DataError, match="no matching file"):
        read_roles(folder / "**/*.none")


def test_a_folder_may_have_a_pattern_as_its_name(tmp_path: Path) -> None:
    (tmp_path / "x[1]").mkdir()
    (tmp_path / "x[1]" / "a.txt").write_text("a")
    pattern = tmp_path / "x[1]" / "*.txt"
    assert find_files(pattern) == [("a.txt", tmp_path / "x[1]" / "a.txt")] and shards(pattern)
    assert not is_pattern(tmp_path / "x[1]" / "none.txt") and not is_sharded(tmp_path / "x[1]" / "none.txt")


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("srl", {}),
        ("e2e.arcs", {}),
        ("propbank.senses", {}),
        ("tagging", {"format": "predicates", "scheme": "bio"}),
    ],
    ids=["srl", "arcs", "senses", "predicates"],
)
def test_role_tasks_take_folders_and_patterns(folder: Path, task: str, settings: dict[str, str]) -> None:
    single_file = folder.parent / "one.gold_conll"
    single_file.write_text(sentence("Ada") + sentence("Ben") + sentence("Cleo", "hums"))
    (folder / "c/03.gold_conll").unlink()
    single = loaded(task, train=str(single_file), validation=str(single_file), **settings)
    for name in (str(folder), f"{folder}/**/[0-9]*gold_conll"):
        many = loaded(task, train=name, validation=str(single_file), **settings)
        assert [e.entry.words for e in many.part("train")] == [e.entry.words for e in single.part("train")]
        assert many.facts() == single.facts() and many.checksums()[name] == checksum(Path(name))
        assert "2 files" in many.notes()[0]
        assert len(many.read(name)) == len(single.read(str(single_file)))
        repeated = loaded(task, train=name, validation=name, **settings)
        assert any("the train part also has 3 of the 3 validation inputs" in note for note in repeated.notes())


@pytest.mark.parametrize(
    ("task", "settings", "expected"),
    [
        (
            "srl",
            {},
            r"found a folder of 2 files \(\*.gold_skel, \*.parse\); expected a folder with CoNLL-2012 files below",
        ),
        ("propbank.senses", {}, "expected a folder with CoNLL-2012 files"),
        ("tagging", {"format": "predicates", "scheme": "bio"}, "expected a folder with CoNLL-2012 files"),
        ("tagging", {}, "found a folder without such files; expected Parquet or Arrow files"),
        ("text", {}, "found a folder without such files; expected Parquet or Arrow files"),
    ],
    ids=["srl", "senses", "predicates", "tagging", "text"],
)
def test_a_folder_without_such_files(folder: Path, task: str, settings: dict[str, str], expected: str) -> None:
    for file in folder.rglob("*gold_conll"):
        file.unlink()
    with pytest.raises(sp.DataError, match=expected):
        loaded(task, train=str(folder), validation=str(folder), **settings)


def test_errors_name_the_file(folder: Path) -> None:
    (folder / "c/03.gold_conll").write_text(sentence("Dan").replace("(ARG1*)", "(ARG1*"))
    with pytest.raises(sp.DataError, match=r"c/03.gold_conll:3: found \(ARG1\* .* not closed"):
        read_roles(folder)
    shutil.rmtree(folder / "a")
    shutil.rmtree(folder / "b")
    (folder / "c/03.gold_conll").write_text("d/x 0 0 Yes UH * - - - - * -\n\n")
    with pytest.raises(sp.DataError, match="corpus: found no predicate in 1 file"):
        read_roles(folder)
    (folder / "c/03.gold_conll").unlink()
    with pytest.raises(sp.DataError, match="found an empty folder"):
        read_roles(folder)


def test_checksums_depend_on_files_and_their_paths(folder: Path) -> None:
    original = checksum(folder)
    copy = shutil.copytree(folder, folder.parent / "copy")
    (copy / "b/02.parse").unlink()
    assert checksum(copy) == original
    (copy / "c/03.gold_conll").rename(copy / "b/03.gold_conll")
    assert checksum(copy) != original


def test_a_folder_is_split_by_its_sentences(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        (folder / f"{name}.gold_conll").write_text(sentence(name) + sentence(name, "hums"))
    monkeypatch.chdir(folder)
    messages: list[str] = []
    split_path = split_file(".", say=messages.append)
    assert (
        split_path == folder.with_suffix(".split.json")
        and "13 files" in messages[-1]
        and "stratified by 3 roles" in messages[-1]
    )
    parts = json.loads(split_path.read_text())
    assert sorted(row for rows in parts.values() for row in rows) == list(range(24))
    task = loaded("srl", file=str(folder), split=str(split_path))
    words = [s.words for s in read_roles(folder).sentences]
    assert {e.entry.words for e in task.part("test")} <= {words[row] for row in parts["test"]}


def test_a_run_knows_the_folder_that_it_was_trained_on(folder: Path) -> None:
    files = {"data": str(folder), "validation": str(folder)}
    small = {"trainer.epochs": "1", "trainer.epoch_updates": "1", "method": "cross_entropy", "features.hidden": "8"}
    loaded_run = sp.load(trained("srl_seal", folder.parent / "run", **files, **small))
    copy = shutil.copytree(folder, folder.parent / "copy")
    assert "is the run's task.train" in warn_if_seen(loaded_run, copy)[0]
    assert len(list(loaded_run.predict_file(copy))) == 3
    assert loaded_run.evaluate_file(copy)["scores"]["span_f1"] >= 0
    (copy / "new.gold_conll").write_text(sentence("Ida"))
    assert not warn_if_seen(loaded_run, copy)
