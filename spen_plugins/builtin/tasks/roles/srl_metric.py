"""Examples of task `srl` and their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.data.sentences.predicate_kinds import KINDS, kind_of
from spen_plugins.errors import DataError
from spen_plugins.scores.spans import Argument, SpanCounts, SpanTable, arguments_of
from spen_plugins.sentences.batches import Entry, SentenceBatch
from spen_plugins.spaces import Proposal
from spen_plugins.task import Metric

DEFINITIONS = {
    "metric": "span_f1: arguments right in role and every piece, as the CoNLL-2005 evaluation counts them; V left out, "
    "C-X joined to the X before it, R-X a role of its own; decoded by Viterbi under BIO",
    "ucr": "share of predicates whose decoded tags begin a core role (A0-A5, ARG0-ARG5; no C-, R-) more than once",
    "invalid_bio": "share of predicates whose most probable tag at each token breaks BIO, before decoding",
    "verbs_f1": "span F1 of predicates that the file tags as verbs; nouns_f1 and adjectives_f1 likewise",
    "unseen_roles": "gold arguments whose role is not in the training part count as missed",
}
"""Definitions of the scores, for a run's protocol."""


@dataclass(eq=False)
class Example:
    """One predicate of a sentence; `names` are its gold BIO tags if known, `tags` their indices, -1 if unseen; `pos` is
    its part of speech if the file has it."""

    entry: Entry
    predicate: int
    names: tuple[str, ...] | None
    tags: np.ndarray | None
    pos: str | None = None

    @cached_property
    def arguments(self) -> list[Argument]:
        """Gold arguments, including roles unseen in training."""
        return arguments_of(self.names or ())


class SrlMetric(Metric):
    """`span_precision`, `span_recall`, `span_f1`, that of verbs, nouns and adjectives, `ucr`, `ucr_gold`,
    `invalid_bio`, token `accuracy`, `roles`.

    Args:
        tags: the tags' names.
        decode: the task's decoding, so that reported outputs are scored.
    """

    def __init__(self, tags: Sequence[str], decode: Callable[[Proposal], Tensor]) -> None:
        self._decode = decode
        self._table = SpanTable(tags)
        self._spans = SpanCounts()
        self._kinds = {kind: SpanCounts() for kind in KINDS}
        self._sums: Counter[str] = Counter()
        self._ratios: list[Tensor] = []

    def update(self, proposal: Proposal, batch: Batch) -> None:
        rows = batch.labelled.nonzero().squeeze(1).cpu().numpy()
        ratios = torch.zeros(len(batch.rows), 2, dtype=torch.double)
        self._ratios.append(ratios)
        if batch.gold is None or not len(rows):
            return
        assert batch.x.mask is not None
        best = self._decode(proposal)[:, 0].argmax(-1).cpu().numpy()[rows]
        likely = proposal.mean[:, 0].argmax(-1).cpu().numpy()[rows]
        gold = batch.gold[:, 0].argmax(-1).cpu().numpy()[rows]
        inside = batch.x.mask.cpu().numpy()[rows]
        lengths = inside.sum(1)
        answers = self._table.arguments(gold, lengths)
        kinds: list[str | None] = [None] * len(rows)
        if isinstance(batch, SentenceBatch) and batch.examples:
            examples = [batch.examples[i] for i in rows]
            answers = [example.arguments for example in examples]
            kinds = [kind_of(example.pos) for example in examples]
            gold[inside] = np.concatenate([example.tags for example in examples])
        pairs = []
        for predicted, answer, kind in zip(self._table.arguments(best, lengths), answers, kinds, strict=True):
            right = self._spans.add(predicted, answer)
            if kind is not None:
                self._kinds[kind].add(predicted, answer)
                self._sums[kind] += 1
            pairs.append((2 * right, len(predicted) + len(answer)))
        ratios[rows] = torch.tensor(pairs, dtype=torch.double)
        counts = {
            "predicates": len(rows),
            "tokens": int(lengths.sum()),
            "right": int(((best == gold) & inside).sum()),
            "repeats": int(self._table.repeats_core(best, lengths).sum()),
            "repeats_gold": int(self._table.repeats_core(np.maximum(gold, 0), lengths).sum()),
            "broken": int(self._table.breaks_bio(likely, lengths).sum()),
        }
        self._sums.update(counts)

    def ratios(self) -> tuple[Tensor, Tensor]:
        """Twice the right arguments, and predicted plus gold ones, by predicate: span F1 is the ratio of their sums."""
        numerator, denominator = torch.cat(self._ratios).unbind(1)
        return numerator, denominator

    def compute(self) -> dict[str, Any]:
        if not self._sums["predicates"]:
            raise DataError("scores", None, "no predicate with gold tags", "at least one to score")
        n, tokens = self._sums["predicates"], self._sums["tokens"]
        scores = self._spans.scores()
        roles = scores.pop("roles")
        kinds = {f"{kind}_f1": some.scores()["span_f1"] for kind, some in self._kinds.items() if self._sums[kind]}
        return {
            **scores,
            **kinds,
            "ucr": self._sums["repeats"] / n,
            "ucr_gold": self._sums["repeats_gold"] / n,
            "invalid_bio": self._sums["broken"] / n,
            "accuracy": self._sums["right"] / tokens,
            "roles": roles,
        }
