"""Spans of tags, and their scores.

Tags that violate their scheme are read in two ways; for valid tags both give the same spans:

- strict, as in `seqeval`'s strict mode: only complete spans that begin with B-X (or S-X);
- as in the CoNLL shared tasks' script `conlleval`: every tag but O belongs to a chunk, and an I-X (or E-X) that
  continues no chunk opens one.

Arguments are those of the CoNLL-2005 evaluation, without its script: right if role, start and end are. A span C-X
continues the last X before it (or the last C-X used as an X): both are one discontinuous argument, right only if every
piece is. A C-X with nothing to continue counts as an X. R-X are ordinary roles. V, and so C-V, is ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from spen_plugins.data.schemes import Span


def strict_spans(sentences: Sequence[Sequence[str]], scheme: Literal["bio", "bioes"]) -> list[set[Span]]:
    """The spans of each sentence's tags by seqeval's strict mode, as IOB2 or IOBES."""
    from seqeval.scheme import IOB2, IOBES, Entities

    result = Entities([list(tags) for tags in sentences], {"bio": IOB2, "bioes": IOBES}[scheme])
    return [{Span(e.tag, e.start, e.end) for e in entities} for entities in result.entities]


def chunks(tags: Sequence[str]) -> set[Span]:
    """The spans of one sentence's tags as in `conlleval` (E and S as in seqeval's default mode).

    The same spans as seqeval's `get_entities`, whose import loads scikit-learn, which takes seconds.
    """
    spans = set()
    start, previous_prefix, previous_type = 0, "O", ""
    for i, tag in enumerate((*tags, "O")):
        prefix, _, tag_type = tag.partition("-")
        if previous_prefix != "O" and (
            prefix in ("O", "B", "S") or previous_prefix in ("E", "S") or tag_type != previous_type
        ):
            spans.add(Span(previous_type, start, i))
            previous_prefix = "O"
        if prefix != "O" and previous_prefix == "O":
            start = i
        previous_prefix, previous_type = prefix, tag_type
    return spans


CORE = re.compile(r"(?:A|ARG)[0-5]")
"""Roles that a predicate should have once (the unique-role constraint's A0 to A5)."""


class Argument(NamedTuple):
    """A role and its pieces `(first token, last token)`, one unless it is discontinuous."""

    role: str
    pieces: tuple[tuple[int, int], ...]


class SpanTable:
    """Tag indices -> spans, vectorised over sequences.

    A span starts at each B-X, and at an I-X that follows neither B-X nor I-X (invalid BIO, read as its B-X). Under
    BIOES the same holds for S-X and E-X, and no span continues after them.

    Args:
        tags: the tags' names, BIO or BIOES.
    """

    def __init__(self, tags: Sequence[str]) -> None:
        prefixes = ("B-", "I-", "E-", "S-")
        roles = sorted({tag[2:] for tag in tags if tag[:2] in prefixes})
        indices = {role: i for i, role in enumerate(roles)}
        self.roles = roles
        self._role = np.array([indices.get(tag[2:], -1) if tag[:2] in prefixes else -1 for tag in tags])
        self._begins = np.array([tag[:2] in ("B-", "S-") for tag in tags])
        self._closes = np.array([tag[:2] in ("E-", "S-") for tag in tags])
        inner_tags = {tag[2:]: i for i, tag in enumerate(tags) if tag.startswith("I-")}
        closed_roles = {tag[2:] for tag in tags if tag[:2] in ("E-", "S-")}
        self.goes_on = np.array([-1 if role in closed_roles else inner_tags.get(role, -1) for role in roles], dtype=int)
        """`(role,)` the tag that continues a span; -1 if its last tag ends it, or there is none."""
        self._core = np.array([indices[role] for role in roles if CORE.fullmatch(role)], dtype=int)

    def spans(self, tags: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Spans of the sequences `tags` `(sequence, token)`, with `lengths` `(sequence,)`.

        Returns `(span, 4)`: sequence, role index, first and last token, ordered by sequence and token.
        """
        role, starts = self._find_starts(tags, lengths)
        is_continued = np.zeros_like(starts)
        is_continued[:, :-1] = ~starts[:, 1:] & (role[:, 1:] >= 0)  # the next token continues this one's span
        ends = (role >= 0) & ~is_continued
        sequence, first = np.nonzero(starts)
        last = np.nonzero(ends)[1]
        return np.stack([sequence, role[sequence, first], first, last], 1)

    def arguments(self, tags: np.ndarray, lengths: np.ndarray) -> list[list[Argument]]:
        """Arguments of each sequence, without V, with continuations joined."""
        spans: list[list[tuple[str, int, int]]] = [[] for _ in range(len(tags))]
        for sequence, role, first, last in self.spans(tags, lengths).tolist():
            spans[sequence].append((self.roles[role], first, last))
        return [join(pieces) for pieces in spans]

    def repeats_core(self, tags: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """`(sequence,)` boolean: true if a core role begins more than once.

        The definition of structured tuning (Li et al. 2020): only tags B-A0 to B-A5 count, C- and R- do not.
        """
        sequence, role = self.spans(tags, lengths)[:, :2].T
        counts = np.zeros((len(tags), len(self.roles)), dtype=int)
        np.add.at(counts, (sequence, role), 1)
        return (counts[:, self._core] > 1).any(1)

    def _find_starts(self, tags: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Role of each token (-1 outside), and where spans start: both `(sequence, token)`."""
        is_inside = np.arange(tags.shape[1]) < lengths[:, None]
        role = np.where(is_inside, self._role[tags], -1)
        previous_roles = np.full_like(role, -1)
        previous_roles[:, 1:] = np.where(self._closes[tags[:, :-1]], -1, role[:, :-1])
        return role, (role >= 0) & (self._begins[tags] | (role != previous_roles))


def join(spans: Iterable[tuple[str, int, int]]) -> list[Argument]:
    """Labelled spans of one predicate, from left to right -> its arguments, without V and with C-X joined to X."""
    arguments: list[Argument] = []
    last: dict[str, int] = {}
    for role, first, end in spans:
        base = role.removeprefix("C-")
        if base != role and base in last:
            index = last[base]
            arguments[index] = Argument(base, (*arguments[index].pieces, (first, end)))
        else:
            last[base] = len(arguments)
            arguments.append(Argument(base, ((first, end),)))
    return [argument for argument in arguments if argument.role != "V"]


def find_spans(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Spans `(role, first token, last token)` of one sequence of BIO tags, including V, without joining."""
    spans = sorted(chunks(tags), key=lambda span: span.start)
    return [(span.type, span.start, span.end - 1) for span in spans]


def find_arguments(tags: Sequence[str]) -> list[Argument]:
    """Arguments of one sequence of tag names."""
    return join(find_spans(tags))


class SpanCounts:
    """Counts of right, predicted and gold spans by role or type, a span's first element; and of examples whose spans
    are all right."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.predicted: Counter[str] = Counter()
        self.gold: Counter[str] = Counter()
        self._examples = self._right_examples = 0

    def add(self, predicted: Collection[tuple[str, Any]], gold: Collection[tuple[str, Any]]) -> int:
        """Add one predicate or sentence; returns the number of its right spans."""
        right = set(predicted) & set(gold)
        self._examples += 1
        self._right_examples += len(right) == len(predicted) == len(gold)
        for counts, spans in ((self.right, right), (self.predicted, predicted), (self.gold, gold)):
            counts.update(span[0] for span in spans)
        return len(right)

    def overall(self) -> tuple[float, float, float]:
        """Precision, recall and F1 of all spans."""
        return precision_recall_f1(self.right.total(), self.predicted.total(), self.gold.total())

    def exact_match(self) -> float:
        """The share of predicates or sentences whose spans are all right, without extra ones."""
        return self._right_examples / self._examples

    def table(self, gold: str = "support") -> dict[str, dict[str, float | int]]:
        """`precision`, `recall`, `f1`, number in gold and number `predicted` of each role or type.

        Args:
            gold: name of the number in gold.
        """
        rows: dict[str, dict[str, float | int]] = {}
        for name in sorted(self.predicted.keys() | self.gold.keys()):
            scores = precision_recall_f1(self.right[name], self.predicted[name], self.gold[name])
            rows[name] = dict(zip(("precision", "recall", "f1"), scores, strict=True))
            rows[name] |= {gold: self.gold[name], "predicted": self.predicted[name]}
        return rows

    def scores(self) -> dict[str, Any]:
        """`span_precision`, `span_recall`, `span_f1` over all roles, and the same per role in `roles`, with counts."""
        precision, recall, f1 = self.overall()
        return {"span_precision": precision, "span_recall": recall, "span_f1": f1, "roles": self.table("gold")}


def precision_recall_f1(right: int, predicted: int, gold: int) -> tuple[float, float, float]:
    """Precision, recall and F1; 0 if nothing was predicted or nothing is gold."""
    precision = right / predicted if predicted else 0.0
    recall = right / gold if gold else 0.0
    return precision, recall, 2 * right / (predicted + gold) if predicted + gold else 0.0
