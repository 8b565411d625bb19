"""Scores of annotated Docs against a corpus: spaCy's Scorer, and our own counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seqeval.metrics import f1_score
from seqeval.scheme import IOB2
from spacy.scorer import Scorer, get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example

from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.srl import Sentence
from spen_plugins.scores.spans import Argument, SpanCounts, find_arguments, join, precision_recall_f1
from tools.bench.spacy_docs import Kind, gold

Frames = Mapping[int, Sequence[Argument]]
"""The arguments of each predicate, by the predicate's token."""


def score(kind: Kind, docs: Sequence[Doc], sentences: Sequence[TaggedSentence | Sentence]) -> dict[str, float]:
    """Scores as fractions, by name.

    `accuracy` (tag) and `f1` (ner) by spaCy's Scorer, `f1_strict` (ner) by seqeval; for srl those of `frame_scores`.
    """
    if kind == "srl":
        return frame_scores([said_frames(doc._.srl) for doc in docs], map(gold_frames, sentences))
    examples = [Example(doc, gold(kind, s, doc.vocab)) for doc, s in zip(docs, sentences, strict=True)]
    if kind == "tag":
        return {"accuracy": Scorer.score_token_attr(examples, "tag")["tag_acc"]}
    strict = f1_score([list(s.tags) for s in sentences], [bio(doc) for doc in docs], mode="strict", scheme=IOB2)
    return {"f1": get_ner_prf(examples)["ents_f"], "f1_strict": float(strict)}


def bio(doc: Doc) -> list[str]:
    """The BIO tags of a Doc's entities."""
    return [f"{token.ent_iob_}-{token.ent_type_}" if token.ent_iob_ in ("B", "I") else "O" for token in doc]


def said_frames(frames: Iterable[Any]) -> dict[int, list[Argument]]:
    """The frames in `doc._.srl`: objects with a `predicate` token and `arguments` (role, Span, probability)."""
    return {frame.predicate.i: _join_arguments(frame.arguments) for frame in frames}


def _join_arguments(arguments: Iterable[tuple[str, Span, float]]) -> list[Argument]:
    pieces = sorted((span.start, span.end - 1, role) for role, span, _ in arguments)
    return join([(role, first, last) for first, last, role in pieces])


def gold_frames(sentence: Sentence) -> dict[int, list[Argument]]:
    """The frames of a sentence in the corpus."""
    return {p.predicate: find_arguments(p.tags or ()) for p in sentence.propositions}


def frame_scores(said: Iterable[Frames], true: Iterable[Frames]) -> dict[str, float]:
    """`f1` over the arguments of all predicates and `predicates_f1`.

    Arguments of a missed predicate are missed; those of a spurious one are wrong.
    """
    counts = SpanCounts()
    correct = predicted = total = 0
    for prediction, reference in zip(said, true, strict=True):
        correct, predicted, total = (
            correct + len(prediction.keys() & reference.keys()),
            predicted + len(prediction),
            total + len(reference),
        )
        for predicate in sorted(prediction.keys() | reference.keys()):
            counts.add(prediction.get(predicate, ()), reference.get(predicate, ()))
    f1 = counts.scores()["span_f1"]
    return {"f1": f1, "predicates_f1": precision_recall_f1(correct, predicted, total)[2]}
