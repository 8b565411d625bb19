"""Synthetic corpora of tagged sentences, written by small grammars: parts of speech, names, predicates.

Words alone do not decide their tags. Many words are both noun and verb; "Washington", "Florence" or "Marsh" may be a
person, a place or part of an organisation's name; and some words are invented.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal

from spen_plugins.data.sentences.columns import TaggedSentence, predicate_sentences, read_columns
from spen_plugins.samples import FOLDER, cut, srl

SIZES = {"train": 600, "validation": 150, "test": 150}
COLUMNS: dict[str, dict[str, int]] = {"pos": {}, "ner": {"pos": 1, "chunk": 2}}


def sample_corpus(kind: Literal["pos", "ner", "predicates"]) -> dict[str, list[TaggedSentence]]:
    """Sentences of `train`, `validation` and `test`; all sentences are distinct, within and across parts.

    Args:
        kind: "pos": 14 parts of speech, as Universal Dependencies names them; "ner": PER, LOC and ORG in BIO, with the
            columns `pos` (the Penn Treebank's) and `chunk` (BIO). "predicates": the sentences of task `srl`'s corpus.
    """
    if kind == "predicates":
        return {part: predicate_sentences(sentences) for part, sentences in srl.sample_corpus().items()}
    return cut(_sentences(kind), SIZES)


@cache
def _sentences(kind: Literal["pos", "ner"]) -> list[TaggedSentence]:
    sentences = read_columns(FOLDER / f"{kind}.conll", columns=COLUMNS[kind])
    return [replace(sentence, line=None) for sentence in sentences]
