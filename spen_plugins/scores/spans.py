"""Span scores of the CoNLL-2005 evaluation, without its script.

A labelled span is right if role, start and end are. A span C-X continues the last X before it (or the last C-X used as
one): both are one discontinuous argument, right only if every piece is. A C-X with nothing to continue counts as an X.
R-X are ordinary roles. V, and so C-V, is ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

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
        number = {role: i for i, role in enumerate(roles)}
        self.roles = roles
        self._role = np.array([number.get(tag[2:], -1) if tag[:2] in prefixes else -1 for tag in tags])
        self._begins = np.array([tag[:2] in ("B-", "S-") for tag in tags])
        self._closes = np.array([tag[:2] in ("E-", "S-") for tag in tags])
        inner = {tag[2:]: i for i, tag in enumerate(tags) if tag.startswith("I-")}
        closed = {tag[2:] for tag in tags if tag[:2] in ("E-", "S-")}
        self.goes_on = np.array([-1 if role in closed else inner.get(role, -1) for role in roles], dtype=int)
        """`(role,)` the tag that continues a span; -1 if its last tag ends it, or there is none."""
        self._core = np.array([number[role] for role in roles if CORE.fullmatch(role)], dtype=int)

    def spans(self, tags: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Spans of the sequences `tags` `(sequence, token)`, with `lengths` `(sequence,)`.

        Returns `(span, 4)`: sequence, role index, first and last token, ordered by sequence and token.
        """
        role, starts = self._starts(tags, lengths)
        after = np.zeros_like(starts)
        after[:, :-1] = ~starts[:, 1:] & (role[:, 1:] >= 0)  # the next token continues this one's span
        ends = (role >= 0) & ~after
        sequence, first = np.nonzero(starts)
        last = np.nonzero(ends)[1]
        return np.stack([sequence, role[sequence, first], first, last], 1)

    def arguments(self, tags: np.ndarray, lengths: np.ndarray) -> list[list[Argument]]:
        """Arguments of each sequence, without V, continuations joined."""
        found: list[list[tuple[str, int, int]]] = [[] for _ in range(len(tags))]
        for sequence, role, first, last in self.spans(tags, lengths).tolist():
            found[sequence].append((self.roles[role], first, last))
        return [join(spans) for spans in found]

    def repeats_core(self, tags: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """`(sequence,)` boolean: true if a core role begins more than once.

        The definition of structured tuning (Li et al. 2020): only tags B-A0 to B-A5 count, C- and R- do not.
        """
        sequence, role = self.spans(tags, lengths)[:, :2].T
        counts = np.zeros((len(tags), len(self.roles)), dtype=int)
        np.add.at(counts, (sequence, role), 1)
        return (counts[:, self._core] > 1).any(1)

    def breaks_bio(self, tags: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """`(sequence,)` boolean: true if an I-X follows neither B-X nor I-X."""
        _, starts = self._starts(tags, lengths)
        return (starts & ~self._begins[tags]).any(1)

    def _starts(self, tags: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Role of each token (-1 outside), and where spans start: both `(sequence, token)`."""
        inside = np.arange(tags.shape[1]) < lengths[:, None]
        role = np.where(inside, self._role[tags], -1)
        before = np.full_like(role, -1)
        before[:, 1:] = np.where(self._closes[tags[:, :-1]], -1, role[:, :-1])
        return role, (role >= 0) & (self._begins[tags] | (role != before))


def join(spans: Iterable[tuple[str, int, int]]) -> list[Argument]:
    """Labelled spans of one predicate, from left to right -> its arguments, without V and with C-X joined to X."""
    arguments: list[Argument] = []
    last: dict[str, int] = {}
    for role, first, end in spans:
        base = role.removeprefix("C-")
        if base != role and base in last:
            place = last[base]
            arguments[place] = Argument(base, (*arguments[place].pieces, (first, end)))
        else:
            last[base] = len(arguments)
            arguments.append(Argument(base, ((first, end),)))
    return [argument for argument in arguments if argument.role != "V"]


def spans_of(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Spans `(role, first token, last token)` of one sequence of tag names, V included, nothing joined.

    The same as seqeval's `get_entities` of BIO tags, whose import loads scikit-learn, which takes seconds.
    """
    spans: list[tuple[str, int, int]] = []
    role = ""
    for i, tag in enumerate(tags):
        if tag.startswith("B-") or (tag.startswith("I-") and tag[2:] != role):
            spans.append((tag[2:], i, i))
        elif tag.startswith("I-"):
            spans[-1] = (tag[2:], spans[-1][1], i)
        role = tag[2:]
    return spans


def arguments_of(tags: Sequence[str]) -> list[Argument]:
    """Arguments of one sequence of tag names."""
    return join(spans_of(tags))


class SpanCounts:
    """Right, predicted and gold arguments by role."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.predicted: Counter[str] = Counter()
        self.gold: Counter[str] = Counter()

    def add(self, predicted: Sequence[Argument], gold: Sequence[Argument]) -> int:
        """Add one predicate; returns the number of its right arguments."""
        self.predicted.update(a.role for a in predicted)
        self.gold.update(a.role for a in gold)
        right = set(predicted) & set(gold)
        self.right.update(a.role for a in right)
        return len(right)

    def scores(self) -> dict[str, Any]:
        """`span_precision`, `span_recall`, `span_f1` over all roles, and the same per role in `roles`, with counts."""
        right, predicted, gold = (sum(c.values()) for c in (self.right, self.predicted, self.gold))
        precision, recall, f1 = precision_recall_f1(right, predicted, gold)
        roles = {}
        for role in sorted(self.predicted.keys() | self.gold.keys()):
            p, r, f = precision_recall_f1(self.right[role], self.predicted[role], self.gold[role])
            roles[role] = {
                "precision": p,
                "recall": r,
                "f1": f,
                "gold": self.gold[role],
                "predicted": self.predicted[role],
            }
        return {"span_precision": precision, "span_recall": recall, "span_f1": f1, "roles": roles}


def precision_recall_f1(right: int, predicted: int, gold: int) -> tuple[float, float, float]:
    """Precision, recall and F1; 0 if nothing was predicted or nothing is gold."""
    precision = right / predicted if predicted else 0.0
    recall = right / gold if gold else 0.0
    return precision, recall, 2 * right / (predicted + gold) if predicted + gold else 0.0
