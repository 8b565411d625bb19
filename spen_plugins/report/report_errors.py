"""Gold and prediction side by side, and confusions: pure functions on labels and tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spen_plugins.report.report_outputs import Output, Outputs
from spen_plugins.scores.spans import chunks
from spen_plugins.spaces import LabelSet, OutputSpace, TagSequence

ROLES = 14  # in a confusion matrix; rarer ones are merged
NOTHING, OTHERS = "nothing", "others"
PAIRS = 15
LARGE = 2000  # labels for which pairs are counted, those with the most errors


class Piece(NamedTuple):
    """A label, or a span of words; `kind` is plain, right, missed (only in gold) or extra (only predicted)."""

    text: str
    role: str
    kind: str


class LabelErrors(NamedTuple):
    """Counts of one label's errors."""

    label: str
    gold: int
    predicted: int
    false_positives: int
    false_negatives: int
    f1: float


class Pair(NamedTuple):
    """Confusion of two labels: `count` examples of the `missed` without gold label `gold` have `predicted` instead."""

    predicted: str
    gold: str
    count: int
    missed: int


@dataclass(frozen=True)
class Confusion:
    """Confusion matrix, gold by predicted; the last row has spurious spans, the last column missed ones."""

    names: Sequence[str]
    counts: Sequence[Sequence[int]]
    unit: str

    def share(self, row: int, column: int) -> float:
        """Fraction of the row's gold."""
        return self.counts[row][column] / max(1, sum(self.counts[row]))


def mark_pieces(output: Output, gold: bool, space: OutputSpace | None) -> list[Piece]:
    """Gold or the prediction, piece by piece, marked where the two differ."""
    names, other_names = (output.gold, output.predicted) if gold else (output.predicted, output.gold)
    error_kind = "missed" if gold else "extra"
    if not isinstance(space, TagSequence):
        other_set = set(other_names)
        return [Piece(label, "", "right" if label in other_set else error_kind) for label in names]
    has_spans = _are_spans(space.tags)
    return _mark_spans(
        output.display.inputs, _find_roles(names, has_spans), _find_roles(other_names, has_spans), error_kind
    )


def _mark_spans(
    words: Sequence[str],
    roles: Mapping[tuple[int, int], str],
    other_roles: Mapping[tuple[int, int], str],
    error_kind: str,
) -> list[Piece]:
    pieces, next_word = [], 0
    for (first, last), role in roles.items():
        if first > next_word:
            pieces.append(Piece(" ".join(words[next_word:first]), "", "plain"))
        kind = "right" if other_roles.get((first, last)) == role else error_kind
        pieces.append(Piece(" ".join(words[first : last + 1]), role, kind))
        next_word = last + 1
    return [*pieces, Piece(" ".join(words[next_word:]), "", "plain")] if next_word < len(words) else pieces


def count_label_errors(outputs: Outputs) -> tuple[list[LabelErrors], list[Pair]]:
    """Errors of each label, those with the most first; and the pairs most often confused."""
    assert isinstance(outputs.space, LabelSet)
    names = outputs.space.labels
    indices = {name: i for i, name in enumerate(names)}
    gold, predicted = (np.zeros((len(outputs.examples), len(names)), dtype=bool) for _ in range(2))
    for i, output in enumerate(outputs.examples):
        gold[i, [indices[name] for name in output.gold]] = True
        predicted[i, [indices[name] for name in output.predicted]] = True
    extra, missed = predicted & ~gold, gold & ~predicted
    counts = np.stack([gold.sum(0), predicted.sum(0), extra.sum(0), missed.sum(0)], 1)
    order = np.argsort(-(counts[:, 2] + counts[:, 3]), kind="stable")
    rows = [LabelErrors(names[i], *counts[i].tolist(), _compute_f1(*counts[i].tolist())) for i in order.tolist()]
    return rows, _find_pairs(names, extra, missed, order[:LARGE])


def _compute_f1(gold: int, predicted: int, false_positives: int, _: int) -> float:
    return 2 * (predicted - false_positives) / (gold + predicted) if gold + predicted else 0.0


def _find_pairs(names: Sequence[str], extra: np.ndarray, missed: np.ndarray, labels: np.ndarray) -> list[Pair]:
    """The most frequent pairs (predicted i, gold k) in one example, where i is wrong and k is missing."""
    counts = extra[:, labels].T.astype(np.float32) @ missed[:, labels].astype(np.float32)
    top_pairs = np.argsort(-counts, axis=None, kind="stable")[:PAIRS]
    total = missed.sum(0)
    pairs = []
    for i, k in zip(*np.unravel_index(top_pairs, counts.shape), strict=True):
        if counts[i, k] > 0:
            pairs.append(Pair(names[labels[i]], names[labels[k]], int(counts[i, k]), int(total[labels[k]])))
    return pairs


def count_tag_errors(outputs: Outputs) -> Confusion:
    """Confusions of the roles of spans at the same words, with missed and spurious spans; for tags without spans, those
    of each word's tag."""
    assert isinstance(outputs.space, TagSequence)
    has_spans = _are_spans(outputs.space.tags)
    counts: Counter[tuple[str, str]] = Counter()
    for output in outputs.examples:
        gold, predicted = (_find_roles(tags, has_spans) for tags in (output.gold, output.predicted))
        if has_spans:
            gold, predicted = _drop_verbs(gold), _drop_verbs(predicted)
        for place in gold.keys() | predicted.keys():
            counts[gold.get(place, ""), predicted.get(place, "")] += 1
    sizes: Counter[str] = Counter()
    for (gold, predicted), count in counts.items():
        sizes.update({gold: count, predicted: count})
    sizes.pop("", None)
    common_roles = [role for role, _ in sizes.most_common(ROLES)]
    names = [*sorted(common_roles), *([OTHERS] if len(sizes) > ROLES else []), *([""] if has_spans else [])]
    place = {name: i for i, name in enumerate(names)}
    table = np.zeros((len(names), len(names)), dtype=int)
    for (gold, predicted), count in counts.items():
        table[tuple(place.get(role, place.get(OTHERS, -1)) for role in (gold, predicted))] += count
    unit = "spans at the same words" if has_spans else "words"
    return Confusion([name or NOTHING for name in names], table.tolist(), unit)


def _find_roles(tags: Sequence[str], has_spans: bool) -> dict[tuple[int, int], str]:
    """Role by first and last token, from left to right; for tags without spans, each word's tag."""
    if not has_spans:
        return {(i, i): tag for i, tag in enumerate(tags)}
    return {(span.start, span.end - 1): span.type for span in sorted(chunks(tags), key=lambda span: span.start)}


def _drop_verbs(roles: Mapping[tuple[int, int], str]) -> dict[tuple[int, int], str]:
    return {place: role for place, role in roles.items() if role.removeprefix("C-") != "V"}


def _are_spans(tags: Sequence[str]) -> bool:
    """True if a space's tags are BIO or BIOES."""
    return all(tag == "O" or tag[:2] in ("B-", "I-", "E-", "S-") for tag in tags)
