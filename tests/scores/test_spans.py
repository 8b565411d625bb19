"""Span scores against cases worked by hand after CoNLL-2005's rules."""

from __future__ import annotations

import numpy as np
import pytest
from seqeval.metrics import classification_report
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2

from spen_plugins.builtin.tasks.roles.srl_metric import SrlMetric
from spen_plugins.scores.spans import Argument, SpanCounts, SpanTable, find_arguments, find_spans


def count_spans(*pairs: tuple[str, str]) -> SpanCounts:
    counts = SpanCounts()
    for predicted, gold in pairs:
        counts.add(find_arguments(predicted.split()), find_arguments(gold.split()))
    return counts


def sum_counts(counts: SpanCounts) -> tuple[int, int, int]:
    return sum(counts.right.values()), sum(counts.predicted.values()), sum(counts.gold.values())


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        # Both right; V is no argument.
        ("B-A0 B-V B-A1 I-A1", "B-A0 B-V B-A1 I-A1", (2, 2, 2)),
        # Wrong end: missed and over-predicted.
        ("B-A0 B-V B-A1 O", "B-A0 B-V B-A1 I-A1", (1, 2, 2)),
        # Wrong role at the right place.
        ("B-A2 B-V B-A1 I-A1", "B-A0 B-V B-A1 I-A1", (1, 2, 2)),
        # A discontinuous argument is one, right if both pieces are.
        ("B-A1 B-V B-C-A1 I-C-A1", "B-A1 B-V B-C-A1 I-C-A1", (1, 1, 1)),
        # One of its pieces alone is wrong, even if that piece is right.
        ("B-A1 B-V O O", "B-A1 B-V B-C-A1 I-C-A1", (0, 1, 1)),
        # The second piece too short.
        ("B-A1 B-V B-C-A1 O", "B-A1 B-V B-C-A1 I-C-A1", (0, 1, 1)),
        # A single span from first to last token isn't the discontinuous argument.
        ("B-A1 I-A1 I-A1 I-A1", "B-A1 B-V B-C-A1 I-C-A1", (0, 1, 1)),
        # A continuation with nothing before it counts as the role itself.
        ("O B-V B-C-A1 I-C-A1", "O B-V B-A1 I-A1", (1, 1, 1)),
        # So does a first one, and a second one continues it.
        ("B-C-A1 B-V B-C-A1 O", "B-A1 B-V B-C-A1 O", (1, 1, 1)),
        # A continuation joins the last argument of its role.
        ("B-A1 B-A1 B-V B-C-A1", "B-A1 O B-V B-C-A1", (0, 2, 1)),
        # R- is a separate role.
        ("B-A0 B-R-A0 B-V O", "B-A0 B-R-A0 B-V O", (2, 2, 2)),
        ("B-A0 B-A0 B-V O", "B-A0 B-R-A0 B-V O", (1, 2, 2)),
        # C-V belongs to the predicate.
        ("O B-V O B-A1", "O B-V B-C-V B-A1", (1, 1, 1)),
        # A repeated role counts twice.
        ("B-A0 B-V B-A0 O", "B-A0 B-V O O", (1, 2, 1)),
        ("O O O O", "B-A0 B-V O O", (0, 0, 1)),
    ],
)
def test_counts_by_hand(predicted, gold, expected):
    assert sum_counts(count_spans((predicted, gold))) == expected


def test_overall_scores_and_scores_by_role():
    counts = count_spans(
        ("B-A0 B-V B-A1 I-A1", "B-A0 B-V B-A1 I-A1"),
        ("B-A0 B-V B-A1 O", "B-A0 B-V B-A1 I-A1"),
        ("O B-V B-AM-TMP O", "B-A0 B-V O O"),
    )
    scores = counts.scores()
    assert scores["span_precision"] == pytest.approx(3 / 5)
    assert scores["span_recall"] == pytest.approx(3 / 5)
    assert scores["span_f1"] == pytest.approx(3 / 5)
    assert scores["roles"]["A0"] == {"precision": 1.0, "recall": 2 / 3, "f1": 0.8, "gold": 3, "predicted": 2}
    assert scores["roles"]["AM-TMP"]["f1"] == 0.0
    assert list(scores["roles"]) == ["A0", "A1", "AM-TMP"]


def test_nothing_at_all_scores_zero():
    assert SpanCounts().scores() == {"span_precision": 0.0, "span_recall": 0.0, "span_f1": 0.0, "roles": {}}


TAGS = ["O", "B-A0", "I-A0", "B-A1", "I-A1", "B-C-A1", "I-C-A1", "B-R-A0", "B-V", "I-V", "B-AM-TMP", "I-AM-TMP"]


def test_tables_agree_with_single_sequences():
    source = np.random.default_rng(0)
    tags, lengths = source.integers(0, len(TAGS), (300, 9)), source.integers(1, 10, 300)
    table = SpanTable(TAGS)
    for row, length, arguments in zip(tags, lengths, table.arguments(tags, lengths), strict=True):
        assert arguments == find_arguments([TAGS[i] for i in row[:length]])


def test_invalid_bio_begins_a_span():
    assert find_spans(["I-A0", "I-A1", "I-A1", "O", "I-A1"]) == [("A0", 0, 0), ("A1", 1, 2), ("A1", 4, 4)]


def index_tags(*rows: str) -> tuple[np.ndarray, np.ndarray]:
    sequences = [row.split() for row in rows]
    tags = np.zeros((len(rows), max(map(len, sequences))), dtype=int)
    for row, names in zip(tags, sequences, strict=True):
        row[: len(names)] = [TAGS.index(name) for name in names]
    return tags, np.array([len(names) for names in sequences])


def test_repeated_core_roles():
    rows = {
        "B-A0 B-V B-A0": True,
        "B-A0 B-A0 B-V": True,
        "B-A0 I-A0 B-V": False,
        "B-A1 B-V B-C-A1": False,
        "B-A0 B-R-A0 B-V": False,
        "B-AM-TMP B-V B-AM-TMP": False,
        "B-A0 B-V B-A1": False,
    }
    assert SpanTable(TAGS).repeats_core(*index_tags(*rows)).tolist() == list(rows.values())


def test_broken_bio_is_found():
    rows = {"B-A0 I-A0 B-V": False, "I-A0 B-V": True, "B-A0 I-A1": True, "O I-A1 O": True, "B-A0 B-A0 O": False}
    tags, lengths = index_tags(*rows)
    inside = np.arange(tags.shape[1]) < lengths[:, None]
    assert SrlMetric(TAGS, lambda proposal: proposal.mode).find_broken(tags, inside).tolist() == [*rows.values()]


def test_padding_is_ignored():
    tags, _ = index_tags("B-A0 B-V B-A0", "O O O")
    table = SpanTable(TAGS)
    assert table.arguments(tags, np.array([2, 3])) == [[Argument("A0", ((0, 0),))], []]
    assert not table.repeats_core(tags, np.array([2, 3])).any()


def test_spans_equal_those_of_seqeval_even_for_broken_bio():
    source = np.random.default_rng(0)
    for _ in range(200):
        tags = source.choice(["O", "B-A0", "I-A0", "B-C-A0", "I-C-A0", "I-V"], size=8).tolist()
        assert find_spans(tags) == get_entities(tags)


def test_scores_without_continuations_equal_those_of_seqeval():
    """CoNLL-2005 counts C-X and V differently; there is no invalid BIO, as seqeval's strict scheme drops it."""
    source = np.random.default_rng(0)
    roles = ["A0", "A1", "R-A0", "AM-TMP"]

    def draw_sequence(tokens: int) -> list[str]:
        tags = ["O"] * tokens
        start = 0
        while (start := start + source.integers(0, 3)) < tokens:
            role, end = roles[source.integers(len(roles))], min(start + source.integers(1, 4), tokens)
            tags[start:end] = [f"B-{role}", *[f"I-{role}"] * (end - start - 1)]
            start = end
        return tags

    gold = [draw_sequence(source.integers(1, 12)) for _ in range(200)]
    # Predictions equal gold from some token on: shared suffixes begin at a span, so that BIO stays valid.
    predicted = []
    for tags in gold:
        other_tags = draw_sequence(len(tags))
        cuts = [i for i, tag in enumerate(tags) if tag[0] != "I"]
        cut = cuts[source.integers(len(cuts))]
        predicted.append(other_tags[:cut] + tags[cut:])
    span_scores = count_spans(*((" ".join(p), " ".join(g)) for p, g in zip(predicted, gold, strict=True))).scores()
    report = classification_report(gold, predicted, mode="strict", scheme=IOB2, output_dict=True, zero_division=0)
    overall = {name: span_scores[f"span_{name}"] for name in ("precision", "recall", "f1")}
    assert 0.2 < overall["f1"] < 0.9
    for name, values in {"micro avg": overall, **span_scores["roles"]}.items():
        expected = report[name]
        assert (values["precision"], values["recall"], values["f1"]) == pytest.approx(
            (expected["precision"], expected["recall"], expected["f1-score"])
        )
    assert {role: row["gold"] for role, row in span_scores["roles"].items()} == {
        role: report[role]["support"] for role in roles
    }
