"""`spen data tag-columns`: all columns are kept, predicted tags come right after the words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spen_plugins.data.sentences.columns import read_columns
from tests.loaded import spen


@pytest.fixture
def config() -> SimpleNamespace:
    """The config of the run's task."""
    return SimpleNamespace(words=None, tags="upos")


@pytest.fixture
def tag_columns(config: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command, with a run that tags each word with its length."""

    def predict(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"tags": [str(len(word)) for word in item["words"]]} for item in items]

    run = SimpleNamespace(predict=predict, task=SimpleNamespace(config=config))
    monkeypatch.setattr("spen_plugins.runs.predict.predictor.load", lambda folder: run)
    return partial(spen, "data", "tag-columns", "runs/pos")


def test_a_column_of_predictions_between_words_and_tags(tag_columns, tmp_path: Path) -> None:
    source, out = tmp_path / "given.conll", tmp_path / "new" / "out.conll"
    # An empty word is a word, as in the Broad Twitter Corpus.
    source.write_text("In\tO\nNew\tB-LOC\nYork\tI-LOC\n\n\tO\n#\tO\n")
    tag_columns(source, out)
    assert out.read_text() == "In\t2\tO\nNew\t3\tB-LOC\nYork\t4\tI-LOC\n\n\t0\tO\n#\t1\tO\n\n"
    sentences = read_columns(out, columns={"pos": 1})
    assert [(s.words, s.tags) for s in sentences] == [(s.words, s.tags) for s in read_columns(source)]
    assert [s.columns["pos"] for s in sentences] == [("2", "3", "4"), ("0", "1")]
    assert [path.name for path in out.parent.iterdir()] == ["out.conll"]


def test_columns_are_numbered_from_the_front_and_from_the_end(tag_columns, tmp_path: Path) -> None:
    source, out = tmp_path / "given.conll", tmp_path / "out.conll"
    source.write_text("1\tO\tIn\tx\n2\tB-LOC\tRome\tx\n")
    for words, tags in ((2, -3), (-2, 1)):
        tag_columns(source, out, "--words", words, "--tags", tags)
        assert out.read_text() == "1\tO\tIn\t2\tx\n2\tB-LOC\tRome\t4\tx\n\n"


def test_columns_are_those_of_the_runs_files(tag_columns, config: SimpleNamespace, tmp_path: Path) -> None:
    source, out = tmp_path / "given.conll", tmp_path / "out.conll"
    config.words, config.tags = 2, 1
    source.write_text("1 O In _\n2 B-LOC Rome _\n")
    tag_columns(source, out)
    assert out.read_text() == "1\tO\tIn\t2\t_\n2\tB-LOC\tRome\t4\t_\n\n"
    source.write_text("In O\nRome B-LOC\n")
    assert "no column 2 for words; expected --words from -2 to 1" in tag_columns(source, out, status=2).stderr
    tag_columns(source, out, "--words", 0)
    assert out.read_text() == "In\t2\tO\nRome\t4\tB-LOC\n\n"


def test_conllu_is_no_file_of_columns(tag_columns, tmp_path: Path) -> None:
    """Its rows of multiword tokens are not words."""
    source, out = tmp_path / "given.conllu", tmp_path / "out.conll"
    source.write_text("# text = Go\n1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    message = tag_columns(source, out, status=2).stderr
    assert "found CoNLL-U; expected a file of columns" in message and "--format conllu" in message


def test_a_file_without_tags_is_rejected(tag_columns, tmp_path: Path) -> None:
    source, out = tmp_path / "given.conll", tmp_path / "out.conll"
    source.write_text("In\nNew\n")
    assert "tags" in tag_columns(source, out, status=2).stderr
    assert not out.exists()


def test_a_runs_own_file_is_kept(tag_columns, tmp_path: Path) -> None:
    (source := tmp_path / "given.conll").write_text("In\tO\n")
    (out := tmp_path / "config.json").write_text("{}")
    assert "expected another name" in " ".join(tag_columns(source, out, status=2).stderr.replace("│", " ").split())
    assert out.read_text() == "{}"
