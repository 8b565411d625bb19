"""Entity scores by hand and against seqeval, and both ways of counting against each other."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from seqeval.metrics import classification_report
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, IOBES

from spen_plugins.data.schemes import Span, write_tags
from spen_plugins.scores.spans import SpanCounts, chunks, strict_spans


def score_entities(predicted, gold, scheme="bio", count="strict"):
    counts = SpanCounts()
    read_spans = (lambda tags: strict_spans(tags, scheme)) if count == "strict" else (lambda tags: map(chunks, tags))
    for predicted_spans, gold_spans in zip(read_spans(predicted), read_spans(gold), strict=True):
        counts.add(predicted_spans, gold_spans)
    return {**dict(zip(("precision", "recall", "f1"), counts.overall(), strict=True)), "types": counts.table()}


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", []),
        ("B-X I-X O B-Y", [("X", 0, 2), ("Y", 3, 4)]),
        ("I-X I-X", [("X", 0, 2)]),  # an I at the start opens a chunk
        ("O I-X", [("X", 1, 2)]),
        ("B-X B-X", [("X", 0, 1), ("X", 1, 2)]),
        ("B-X I-Y", [("X", 0, 1), ("Y", 1, 2)]),  # another type ends one and opens one
        ("I-X I-Y I-Y", [("X", 0, 1), ("Y", 1, 3)]),
        ("I-X B-X I-X", [("X", 0, 1), ("X", 1, 3)]),
        ("S-X S-X B-X E-X", [("X", 0, 1), ("X", 1, 2), ("X", 2, 4)]),
        ("E-X E-X I-X", [("X", 0, 1), ("X", 1, 2), ("X", 2, 3)]),
        ("B-A-B I-A-B", [("A-B", 0, 2)]),
    ],
)
def test_chunks_by_hand(tags, expected):
    assert chunks(tags.split()) == {Span(*span) for span in expected}


@pytest.mark.parametrize(
    ("tags", "scheme", "expected"),
    [
        ("I-X I-X O B-X I-X", "bio", [("X", 3, 5)]),  # a span requires its beginning
        ("B-X I-Y I-Y", "bio", [("X", 0, 1)]),
        ("B-X I-X O", "bioes", []),  # and its end
        ("B-X I-X E-X S-X E-X", "bioes", [("X", 0, 3), ("X", 3, 4)]),
        ("B-X B-X E-X", "bioes", [("X", 1, 3)]),
        ("B-X E-Y", "bioes", []),
    ],
)
def test_strict_spans_by_hand(tags, scheme, expected):
    assert strict_spans([tags.split()], scheme) == [{Span(*span) for span in expected}]


def test_scores_by_hand():
    gold = [["B-X", "I-X", "O", "B-Y", "O"], ["B-Y", "O", "B-X"]]
    predicted = [["I-X", "I-X", "O", "B-Y", "O"], ["B-Y", "I-Y", "B-Y"]]
    # conlleval reads four spans: X 0-2 and Y 3-4 of the first are right, Y 0-2 and Y 2-3 of the second wrong.
    scores = score_entities(predicted, gold, count="conlleval")
    assert (scores["precision"], scores["recall"], scores["f1"]) == (2 / 4, 2 / 4, 0.5)
    assert scores["types"] == {
        "X": {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "support": 2, "predicted": 1},
        "Y": {"precision": 1 / 3, "recall": 0.5, "f1": pytest.approx(0.4), "support": 2, "predicted": 3},
    }
    # Under strict counting the first X is no span.
    scores = score_entities(predicted, gold)
    assert (scores["precision"], scores["recall"], scores["f1"]) == (1 / 3, 1 / 4, pytest.approx(2 / 7))
    assert scores["types"]["X"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 2, "predicted": 0}


def draw_tags(letters: str, seed: int, sentences: int = 300) -> list[list[str]]:
    source = np.random.default_rng(seed)
    tags = ["O", "O", *(f"{letter}-{kind}" for letter in letters for kind in ("X", "Y"))]
    return [source.choice(tags, source.integers(1, 9)).tolist() for _ in range(sentences)]


def score_with_seqeval(predicted, gold, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = classification_report(gold, predicted, output_dict=True, zero_division=0, **options)
    return {
        name: {
            "precision": row["precision"],
            "recall": row["recall"],
            "f1": pytest.approx(row["f1-score"]),
            "support": row["support"],
        }
        for name, row in table.items()
        if not name.startswith(("macro", "weighted"))
    }


def make_table(scores):
    support = sum(row["support"] for row in scores["types"].values())
    overall = {name: scores[name] for name in ("precision", "recall", "f1")}
    types = {name: {k: v for k, v in row.items() if k != "predicted"} for name, row in scores["types"].items()}
    return {**types, "micro avg": {**overall, "support": support}}


@pytest.mark.parametrize(("scheme", "letters"), [("bio", "BI"), ("bioes", "BIES")])
def test_strict_scores_of_broken_tags_equal_those_of_seqeval(scheme, letters):
    gold, predicted = draw_tags(letters, 0), draw_tags(letters, 1)
    predicted = [(p * 9)[: len(g)] for p, g in zip(predicted, gold, strict=True)]
    expected = score_with_seqeval(predicted, gold, mode="strict", scheme={"bio": IOB2, "bioes": IOBES}[scheme])
    assert make_table(score_entities(predicted, gold, scheme)) == expected
    assert expected["micro avg"]["recall"] > 0


@pytest.mark.parametrize("letters", ["BI", "BIES"])
def test_chunks_equal_those_of_get_entities(letters):
    for tags in draw_tags(letters, 5):
        assert sorted(chunks(tags)) == sorted((kind, first, last + 1) for kind, first, last in get_entities(list(tags)))


@pytest.mark.parametrize("letters", ["BI", "BIES"])
def test_conlleval_counts_of_broken_tags_equal_those_of_seqevals_default_mode(letters):
    gold, predicted = draw_tags(letters, 2), draw_tags(letters, 3)
    predicted = [(p * 9)[: len(g)] for p, g in zip(predicted, gold, strict=True)]
    assert make_table(score_entities(predicted, gold, count="conlleval")) == score_with_seqeval(predicted, gold)


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_both_counts_agree_on_valid_tags(scheme):
    valid = [write_tags(sorted(chunks(tags), key=lambda s: s.start), len(tags), scheme) for tags in draw_tags("BI", 4)]
    assert strict_spans(valid, scheme) == [chunks(tags) for tags in valid]
    assert score_entities(valid, valid, scheme)["f1"] == 1.0


def test_nothing_to_find_scores_zero():
    assert score_entities([["O"]], [["O"]]) == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "types": {}}
