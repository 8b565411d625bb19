"""Examples of task `srl` and their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from spen_plugins.builtin.tasks.sequence_metric import SequenceMetric
from spen_plugins.data.sentences.srl import KINDS, kind_of
from spen_plugins.scores.spans import Argument, SpanCounts, SpanTable, find_arguments
from spen_plugins.sentences.batches import Entry
from spen_plugins.spaces import Proposal

DEFINITIONS = {
    "metric": "span_f1: arguments right in role and every piece, as the CoNLL-2005 evaluation counts them; V left out, "
    "C-X joined to the X before it, R-X a role of its own; decoded under BIO",
    "exact_match": "share of predicates whose arguments are all right in this way, with none too many",
    "ucr": "share of predicates whose decoded tags begin a core role (A0-A5, ARG0-ARG5; no C-, R-) more than once",
    "invalid_bio": "share of predicates whose most probable tag at each token breaks BIO, before decoding",
    "verbs_f1": "span F1 of predicates that the file tags as verbs; nouns_f1 and adjectives_f1 likewise",
    "unseen_roles": "gold arguments whose role is not in the training part count as missed",
}
"""Definitions of the scores, for a run's protocol."""


@dataclass(eq=False)
class Example:
    """One predicate of a sentence; `names` are its gold BIO tags if known, `tags` their indices, -1 if unseen; `pos` is
    its part of speech, and `sense` its roleset, if the file has them."""

    entry: Entry
    predicate: int
    names: tuple[str, ...] | None
    tags: np.ndarray | None
    pos: str | None = None
    sense: str | None = None

    @cached_property
    def arguments(self) -> list[Argument]:
        """Gold arguments, including roles unseen in training."""
        return find_arguments(self.names or ())


class SrlMetric(SequenceMetric):
    """`span_precision`, `span_recall`, `span_f1`, the F1 of verbs, nouns and adjectives, `exact_match`, `ucr`,
    `ucr_gold`, `invalid_bio`, token `accuracy`, `roles`."""

    example_name = "predicate"

    def __init__(self, tags: Sequence[str], decode: Callable[[Proposal], Tensor]) -> None:
        super().__init__(tags, decode, "bio")
        self._table = SpanTable(tags)
        self._spans = SpanCounts()
        self._kinds: dict[str, SpanCounts] = {}
        self._sums: Counter[str] = Counter()

    def add(
        self, examples: Sequence[Any], best: np.ndarray, gold: np.ndarray, inside: np.ndarray
    ) -> list[tuple[int, int]]:
        """Twice the right arguments, and predicted plus gold ones, per predicate; span F1 is their sums' ratio."""
        lengths, pairs = inside.sum(1), []
        for predicted, example in zip(self._table.arguments(best, lengths), examples, strict=True):
            right_count = self._spans.add(predicted, example.arguments)
            kind = kind_of(example.pos)
            if kind is not None:
                self._kinds.setdefault(kind, SpanCounts()).add(predicted, example.arguments)
            pairs.append((2 * right_count, len(predicted) + len(example.arguments)))
        self._sums.update(
            repeats=int(self._table.repeats_core(best, lengths).sum()),
            repeats_gold=int(self._table.repeats_core(np.maximum(gold, 0), lengths).sum()),
        )
        return pairs

    def compute(self) -> dict[str, Any]:
        accuracy, n = self.accuracy(), self._example_count
        scores = self._spans.scores()
        roles = scores.pop("roles")
        kinds = {f"{kind}_f1": self._kinds[kind].overall()[2] for kind in KINDS if kind in self._kinds}
        return {
            **scores,
            **kinds,
            "exact_match": self._spans.exact_match(),
            "ucr": self._sums["repeats"] / n,
            "ucr_gold": self._sums["repeats_gold"] / n,
            "invalid_bio": self._broken_count / n,
            "accuracy": accuracy,
            "roles": roles,
        }
