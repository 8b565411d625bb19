"""Scores of task `parsing`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import spen_plugins as sp
from spen_infnet.parsing.trees import BracketF1, Span, build
from spen_plugins.sentences import SentenceBatch

DEFINITIONS = {
    "metric": "bracket_f1: labelled brackets of all sentences, as evalb counts them; neither the root nor punctuation "
    "(, . : `` '') is scored, and ADVP and PRT differ",
    "precision, recall": "the share of predicted, and of gold, brackets that are right; constituents: of each label",
    "exact_match": "the share of sentences whose brackets are all right, with none too many",
    "repaired": "the share of sentences whose predicted tags are no tree's",
}
"""Definitions of the scores, for a run's protocol."""

FindSpans = Callable[[sp.Proposal, Sequence[int]], list[tuple[list[Span], bool]]]
"""A proposal and the sentences' lengths -> the spans of each one's tree; and true if its output was repaired."""


class TreeMetric(sp.Metric):
    """`bracket_f1`, `precision`, `recall`, `exact_match`, `repaired`, and `constituents`, a table by label."""

    def __init__(self, find_spans: FindSpans) -> None:
        self._find_spans = find_spans
        self._brackets = BracketF1()
        self._sentences = self._repaired = 0
        self._ratios: list[Tensor] = []

    def update(self, proposal: sp.Proposal, batch: sp.Batch) -> None:
        assert isinstance(batch, SentenceBatch)
        ratios = torch.zeros(len(batch.examples), 2, dtype=torch.double)
        self._ratios.append(ratios)
        found = self._find_spans(proposal, [len(example.entry.ids) for example in batch.examples])
        for row, (example, (spans, repaired)) in enumerate(zip(batch.examples, found, strict=True)):
            if example.sentence is not None:
                words, tags, tree = example.sentence.words, example.sentence.tags, example.sentence.tree
                ratios[row] = torch.tensor(self._brackets.add(build(spans, len(words)), tree, tags))
                self._sentences += 1
                self._repaired += repaired

    def compute(self) -> dict[str, Any]:
        if not self._sentences:
            raise sp.DataError("scores", None, "no sentence with a tree", "at least one to score")
        repaired = self._repaired / self._sentences
        return {**self._brackets.compute(), "repaired": repaired, "constituents": self._brackets.counts.table()}

    def ratios(self) -> tuple[Tensor, Tensor]:
        numerator, denominator = torch.cat(self._ratios).unbind(1)
        return numerator, denominator
