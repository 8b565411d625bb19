"""Scores of task `parsing`: labelled brackets as `evalb` counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

import spen_plugins as sp
from spen_infnet.parsing.trees import Sentence, Span, Tree, build, find_nodes
from spen_plugins.sentences import SentenceBatch, SpanCounts

PUNCTUATION = frozenset((",", ".", ":", "``", "''"))
"""Parts of speech that are not scored, as in `evalb`'s usual settings."""
DEFINITIONS = {
    "metric": "bracket_f1: labelled brackets of all sentences, as evalb counts them; neither the root nor punctuation "
    "(, . : `` '') is scored, and ADVP and PRT differ",
    "precision, recall": "the share of predicted, and of gold, brackets that are right; constituents: of each label",
    "exact_match": "the share of sentences whose brackets are all right, with none too many",
    "repaired": "the share of sentences whose decoded tags encode no tree",
}
"""Definitions of the scores, for a run's protocol."""

FindSpans = Callable[[sp.Proposal, Sequence[int]], list[tuple[list[Span], bool]]]
"""A proposal and the sentences' lengths -> the spans of each tree, and true if its output was repaired."""


def find_brackets(tree: Tree, tags: Sequence[str]) -> list[tuple[str, tuple[int, int, int]]]:
    """The scored brackets, each once: the label, and the start, the end and the number of equal ones before.
    Constituents over words other than punctuation are scored, and positions count only such words."""
    word_counts = [0, *accumulate(tag not in PUNCTUATION for tag in tags)]
    repetitions: Counter[Span] = Counter()
    brackets = []
    for start, end, label in find_nodes(tree):
        span = word_counts[start], word_counts[end], label
        if span[0] < span[1]:
            brackets.append((label, (*span[:2], repetitions[span])))
            repetitions[span] += 1
    return brackets


class TreeMetric(sp.Metric):
    """`bracket_f1`, `precision`, `recall`, `exact_match`, `repaired`, and `constituents`, a table by label.

    Labelled brackets are counted as by `evalb` (Black et al. 1991; Collins 1997): neither the root nor punctuation is
    scored, each node of a unary chain counts, and equal brackets count as often as both trees have them. Unlike in
    Collins's settings, ADVP and PRT differ.
    """

    def __init__(self, find_spans: FindSpans) -> None:
        self._find_spans = find_spans
        self._brackets = SpanCounts()
        self._repaired: list[bool] = []
        self._ratios: list[Tensor] = []

    def update(self, proposal: sp.Proposal, batch: sp.Batch) -> None:
        assert isinstance(batch, SentenceBatch)
        ratios = torch.zeros(len(batch.examples), 2, dtype=torch.double)
        self._ratios.append(ratios)
        parses = self._find_spans(proposal, [len(example.entry.ids) for example in batch.examples])
        for row, (example, (spans, is_repaired)) in enumerate(zip(batch.examples, parses, strict=True)):
            if example.sentence is not None:
                tree = build(spans, len(example.sentence.words))
                ratios[row] = torch.tensor(self.add(tree, example.sentence, is_repaired))

    def add(self, predicted: Tree, gold: Sentence, is_repaired: bool = False) -> tuple[int, int]:
        """Counts a sentence; returns twice the number of right brackets, and the number of predicted plus gold ones: F1
        is the ratio of their sums."""
        predicted_brackets, gold_brackets = (find_brackets(tree, gold.tags) for tree in (predicted, gold.tree))
        self._repaired.append(is_repaired)
        return 2 * self._brackets.add(predicted_brackets, gold_brackets), len(predicted_brackets) + len(gold_brackets)

    def compute(self) -> dict[str, Any]:
        if not self._repaired:
            raise sp.DataError("scores", None, "no sentence with a tree", "at least one to score")
        precision, recall, f1 = self._brackets.overall()
        return {
            "bracket_f1": f1,
            "precision": precision,
            "recall": recall,
            "exact_match": self._brackets.exact_match(),
            "repaired": sum(self._repaired) / len(self._repaired),
            "constituents": self._brackets.table(),
        }

    def ratios(self) -> tuple[Tensor, Tensor]:
        numerator, denominator = torch.cat(self._ratios).unbind(1)
        return numerator, denominator
