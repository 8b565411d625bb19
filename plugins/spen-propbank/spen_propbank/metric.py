"""Examples of task `propbank.senses` and their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins import Batch, DataError, Metric, Proposal
from spen_plugins.sentences import Entry, SentenceBatch, kind_of
from spen_propbank.candidates import Candidate

DEFINITIONS = {
    "accuracy": "share of predicates with the right sense",
    "most_frequent": "the same of the lemma's most frequent sense in the training part; of a lemma that is not there, "
    "its first in the lexicon",
    "verbs": "accuracy of predicates that the file tags as verbs; nouns and adjectives likewise",
    "unseen": "accuracy of predicates whose lemma is not in the training part",
    "reach": "share of predicates whose sense is among the candidates",
}
"""Definitions of the scores, for a run's protocol."""


@dataclass(eq=False)
class Example:
    """One predicate of a sentence with its candidates; `sense` is gold, `place` its index there, -1 if it is absent."""

    entry: Entry
    """The words that are read."""
    entry_index: int
    """Index of the predicate among these."""
    words: tuple[str, ...]
    """All words."""
    predicate: int
    candidates: tuple[Candidate, ...]
    is_seen: bool
    """True if the lemma is in the training part."""
    sense: str | None = None
    pos: str | None = None
    numbers: np.ndarray | None = None
    """Indices of the attributes, `(candidate, attribute)`; None until they are needed."""

    @property
    def place(self) -> int:
        return next((i for i, candidate in enumerate(self.candidates) if candidate.sense == self.sense), -1)


class SensesMetric(Metric):
    """`accuracy` and `most_frequent`, both also by the predicates' part of speech; `unseen` lemmas; `reach`."""

    def __init__(self, decode: Callable[[Proposal], Tensor]) -> None:
        self._decode = decode
        self._counts: Counter[str] = Counter()
        self._ratios: list[Tensor] = []

    def update(self, proposal: Proposal, batch: Batch) -> None:
        assert isinstance(batch, SentenceBatch)
        ratios = torch.zeros(len(batch.rows), 2, dtype=torch.double)
        self._ratios.append(ratios)
        if batch.gold is None:
            return
        places = self._decode(proposal)[:, 0, 0].argmax(-1).tolist()
        for row in batch.labelled.nonzero().squeeze(1).tolist():
            example = batch.examples[row]
            gold = example.place
            for name in filter(None, ("all", kind_of(example.pos), None if example.is_seen else "unseen")):
                self._counts[f"{name} n"] += 1
                self._counts[f"{name} right"] += places[row] == gold
                self._counts[f"{name} first"] += gold == 0
            self._counts["reached"] += gold >= 0
            ratios[row] = torch.tensor([float(places[row] == gold), 1.0])

    def ratios(self) -> tuple[Tensor, Tensor]:
        """1 for each predicate with the right sense, and 1 for each predicate: accuracy is the ratio of their sums."""
        numerator, denominator = torch.cat(self._ratios).unbind(1)
        return numerator, denominator

    def compute(self) -> dict[str, Any]:
        n = self._counts["all n"]
        if not n:
            raise DataError("scores", None, "no predicate with a sense", "at least one to score")
        scores = {
            "accuracy": self._counts["all right"] / n,
            "most_frequent": self._counts["all first"] / n,
            "reach": self._counts["reached"] / n,
        }
        for name in ("verbs", "nouns", "adjectives", "unseen"):
            if count := self._counts[f"{name} n"]:
                scores[name] = self._counts[f"{name} right"] / count
                scores[f"{name}_most_frequent"] = self._counts[f"{name} first"] / count
        return scores
