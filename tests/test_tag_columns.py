"""tools/tag_columns.py: words and tags stay as they are, predicted tags stand between them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

from spen_plugins.errors import DataError
from spen_plugins.readers.columns import read_columns

PATH = Path(__file__).resolve().parent.parent / "tools" / "tag_columns.py"


@pytest.fixture
def tool(monkeypatch):
    """The tool, with a run that tags each word by its length."""
    spec = importlib.util.spec_from_file_location("tag_columns", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run = SimpleNamespace(predict=lambda items: [{"tags": [str(len(w)) for w in item["words"]]} for item in items])
    monkeypatch.setattr(module.sp, "load", lambda folder: run)
    return module


def test_a_column_of_predictions_between_words_and_tags(tool, tmp_path) -> None:
    given, out = tmp_path / "given.conll", tmp_path / "new" / "out.conll"
    # An empty word is a word, as in the Broad Twitter Corpus; a second column is left out.
    given.write_text("In\tx\tO\nNew\tx\tB-LOC\nYork\tx\tI-LOC\n\n\tx\tO\n#\tx\tO\n")
    tool.add_column(Path("runs/pos"), given, out)
    assert out.read_text() == "In\t2\tO\nNew\t3\tB-LOC\nYork\t4\tI-LOC\n\n\t0\tO\n#\t1\tO\n\n"
    again = read_columns(out, columns={"pos": 1})
    assert [(s.words, s.tags) for s in again] == [(s.words, s.tags) for s in read_columns(given)]
    assert [s.columns["pos"] for s in again] == [("2", "3", "4"), ("0", "1")]
    assert [path.name for path in out.parent.iterdir()] == ["out.conll"]


def test_a_file_without_tags_is_refused(tool, tmp_path) -> None:
    given, out = tmp_path / "given.conll", tmp_path / "out.conll"
    given.write_text("In\nNew\n")
    with pytest.raises(DataError, match="tags"):
        tool.add_column(Path("runs/pos"), given, out)
    assert not out.exists()
