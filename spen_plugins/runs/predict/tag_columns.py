"""Column files with a column of predicted tags: words, a run's predicted tags, the file's own tags.

Input of `columns_from=FOLDER` of `names`. The run's task is `tagging`, without columns.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from spen_plugins.data.catalogue import locate
from spen_plugins.data.sentences import write_tags
from spen_plugins.data.sentences.columns import read_columns
from spen_plugins.files import save_text
from spen_plugins.runs.predict import predictor


def tag_columns(run: Path, file: str | Path, out: Path, words: int = 0, tags: int = -1) -> None:
    """Write `out`; its folder is created if missing."""
    sentences = read_columns(locate(str(file)), words, tags)
    predictions = predictor.load(run).predict([{"words": list(sentence.words)} for sentence in sentences])
    tagged = [replace(s, columns={"predicted": p["tags"]}) for s, p in zip(sentences, predictions, strict=True)]
    save_text(write_tags.columns(tagged, 0, 2, {"predicted": 1}), out)
