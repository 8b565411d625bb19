"""Add a column of predicted tags to a column file: words, the tags a run predicts, the file's own tags.

    python tools/tag_columns.py runs/pos data:ner/btc/btc.train btc-with-pos/train.conll

What `columns_from=btc-with-pos` of `configs/ner_infnet.jsonnet` reads. The run's task is `tagging`, without columns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import spen_plugins as sp
from spen_plugins.datasets import locate
from spen_plugins.errors import SpenError
from spen_plugins.files import writing
from spen_plugins.readers.columns import TaggedSentence, read_columns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run folder of a tagger")
    parser.add_argument("file", help="column file, or its data: path")
    parser.add_argument("out", type=Path, help="the file to write")
    parser.add_argument("--words", type=int, default=0, help="the words' column, from 0")
    parser.add_argument("--tags", type=int, default=-1, help="the tags' column, negative from the end")
    given = parser.parse_args()
    try:
        add_column(given.run, locate(given.file), given.out, given.words, given.tags)
    except SpenError as error:
        raise SystemExit(f"error: {error}") from None


def add_column(run: Path, file: Path, out: Path, words: int = 0, tags: int = -1) -> None:
    """Write `out`; the file's tags must be there."""
    sentences = read_columns(file, words, tags)
    predictions = sp.load(run).predict([{"words": list(sentence.words)} for sentence in sentences])
    out.parent.mkdir(parents=True, exist_ok=True)
    with writing(out) as part:
        part.write_text("".join(lines(sentences, [prediction["tags"] for prediction in predictions])), "utf-8")


def lines(sentences: Sequence[TaggedSentence], predicted: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of word, predicted tag and own tag, apart by tabs; an empty one after each sentence."""
    for sentence, tags in zip(sentences, predicted, strict=True):
        yield from ("\t".join(cells) + "\n" for cells in zip(sentence.words, tags, sentence.tags, strict=True))
        yield "\n"


if __name__ == "__main__":
    main()
