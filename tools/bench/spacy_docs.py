"""Corpora as spaCy's Docs: shared by `train_spacy.py` and `bench_spacy.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spen_plugins.data.schemes import BrokenTags, spans
from spen_plugins.data.sentences.columns import TaggedSentence, read_columns
from spen_plugins.data.sentences.conllu import read_conllu
from spen_plugins.data.sentences.srl import Sentence, read_srl
from spen_plugins.errors import DataError

Kind = Literal["ner", "tag", "srl"]
BLANK = "_"
"""Replaces an empty or white-space word (the Broad Twitter Corpus has some), which can't start an entity."""


def read(kind: Kind, path: Path, tags: str = "xpos") -> Sequence[TaggedSentence | Sentence]:
    """Sentences of a file: names in columns (BIO), tags in columns or CoNLL-U, frames in SRL columns.

    Args:
        kind: the kind of annotation to read.
        path: the file.
        tags: the field of CoNLL-U that holds the tags.
    """
    if kind == "srl":
        return read_srl(path)
    return read_conllu(path, tags=tags) if path.suffix == ".conllu" else read_columns(path)


def words_of(sentence: TaggedSentence | Sentence) -> list[str]:
    """The corpus' own words, `BLANK` for those of white space."""
    return [word if word.strip() else BLANK for word in sentence.words]


def plain(sentence: TaggedSentence | Sentence, vocab: Vocab) -> Doc:
    """A Doc of the corpus' own words, annotated only as one sentence."""
    words = words_of(sentence)
    return Doc(vocab, words=words, sent_starts=[i == 0 for i in range(len(words))])


def gold(kind: Kind, sentence: TaggedSentence, vocab: Vocab, path: Path | None = None) -> Doc:
    """A Doc with `ents` (ner) or each token's `tag_` (tag) from the corpus.

    Raises:
        DataError: the tags are not valid BIO; with the line in `path`.
    """
    doc = plain(sentence, vocab)
    if kind == "tag":
        for token, tag in zip(doc, sentence.tags or (), strict=True):
            token.tag_ = tag
        return doc
    try:
        doc.ents = [Span(doc, start, end, label=label) for label, start, end in spans(sentence.tags or (), "bio")]
    except BrokenTags as broken:
        raise DataError(path or "corpus", sentence.line_of(broken.index), broken.found, broken.expected) from None
    return doc
