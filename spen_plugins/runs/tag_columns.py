"""Column files with a column of predicted tags: words, the tags a run predicts, the file's own tags.

What `columns_from=FOLDER` of `configs/ner_infnet.jsonnet` reads. The run's task is `tagging`, without columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spen_plugins.datasets import locate
from spen_plugins.files import save_text
from spen_plugins.readers.columns import TaggedSentence, read_columns
from spen_plugins.runs import predictor


def tag_columns(run: Path, file: str | Path, out: Path, words: int = 0, tags: int = -1) -> None:
    """Write `out`, in a new folder if need be.

    Args:
        run: run folder of a tagger.
        file: column file with tags, or its `data:` path.
        out: the file to write.
        words, tags: their columns in `file`, from 0; negative ones from the end.

    Raises:
        ConfigError: no run folder.
        DataError: the file has no tags, or can't be read.
        RunError: `out` can't be written.
    """
    sentences = read_columns(locate(str(file)), words, tags)
    predictions = predictor.load(run).predict([{"words": list(sentence.words)} for sentence in sentences])
    save_text("".join(lines(sentences, [prediction["tags"] for prediction in predictions])), out)


def lines(sentences: Sequence[TaggedSentence], predicted: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of word, predicted tag and own tag, apart by tabs; an empty one after each sentence."""
    for sentence, tags in zip(sentences, predicted, strict=True):
        yield from ("\t".join(cells) + "\n" for cells in zip(sentence.words, tags, sentence.tags, strict=True))
        yield "\n"
