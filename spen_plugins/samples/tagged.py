"""Synthetic corpora of tagged sentences, made from small grammars: parts of speech, names, predicates.

Deterministic: the same sentences at every call and on every machine.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Literal

from spen_plugins.readers.columns import TaggedSentence, predicate_sentences
from spen_plugins.samples import srl
from spen_plugins.samples.tagged_names import NameWriter
from spen_plugins.samples.tagged_pos import PosWriter

SIZES = {"train": 600, "validation": 150, "test": 150}
LONGEST = 26


@cache
def sample_corpus(kind: Literal["pos", "ner", "predicates"], seed: int = 2022) -> dict[str, list[TaggedSentence]]:
    """Sentences of `train`, `validation` and `test`; none occurs twice, in one part or in two.

    Args:
        kind: "pos": 14 parts of speech, as Universal Dependencies names them; "ner": PER, LOC and ORG in BIO, with the
            columns `pos` (the Penn Treebank's) and `chunk` (BIO). "predicates": the sentences of task `srl`'s corpus.
        seed: of the sentences, but for predicates.
    """
    if kind == "predicates":
        return {part: predicate_sentences(some) for part, some in srl.sample_corpus().items()}
    source = random.Random(seed)
    writer = PosWriter(source) if kind == "pos" else NameWriter(source)
    seen: set[tuple[str, ...]] = set()
    parts: dict[str, list[TaggedSentence]] = {}
    for part, size in SIZES.items():
        parts[part] = []
        while len(parts[part]) < size:
            sentence = writer.sentence()
            if len(sentence.words) <= LONGEST and sentence.words not in seen:
                seen.add(sentence.words)
                parts[part].append(sentence)
    return parts
