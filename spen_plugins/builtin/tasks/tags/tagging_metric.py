"""Scores of task `tagging`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from torch import Tensor

from spen_plugins.builtin.tasks.sequence_metric import SequenceMetric
from spen_plugins.scores.spans import SpanCounts, chunks, strict_spans
from spen_plugins.spaces import Proposal

TAG_DEFINITIONS = {
    "metric": "accuracy: the share of tokens whose tag is right",
    "tags": "precision, recall and F1 of each tag over tokens",
    "unseen_tags": "gold tags that are not in the training part count as wrong",
}
SPAN_DEFINITIONS = {
    "metric": "f1: spans right in type, start and end, by seqeval in strict mode",
    "precision, recall": "the share of predicted, and of gold, spans that are right in this way; types: of each type",
    "conlleval_f1": "the same as the script conlleval counts: an I-X (or E-X) without a beginning opens a span; "
    "where tags keep to their scheme it is f1",
    "exact_match": "the share of sentences whose spans are all right, with none too many",
    "accuracy": "the share of tokens whose tag is right",
    "invalid": "share of sentences whose most probable tag at each token breaks the scheme, before decoding",
    "unseen_types": "gold spans whose type is not in the training part count as missed",
}
"""Definitions of the scores, for a run's protocol."""


class TagMetric(SequenceMetric):
    """`accuracy` and `tags`, a table of scores per tag."""

    def __init__(self, tags: Sequence[str], decode: Callable[[Proposal], Tensor]) -> None:
        super().__init__(tags, decode)
        self._counts = SpanCounts()

    def add(self, examples: Sequence[Any], best: np.ndarray, gold: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Right tokens and all tokens of each sentence: accuracy is the ratio of their sums."""
        is_right = (best == gold) & inside
        self._counts.right.update(self._tags[best[is_right]])
        self._counts.predicted.update(self._tags[best[inside]])
        for example in examples:
            self._counts.gold.update(example.names)
        return np.stack([is_right.sum(1), inside.sum(1)], 1)

    def compute(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy(), "tags": self._counts.table()}


class SpanMetric(SequenceMetric):
    """`precision`, `recall`, `f1`, `conlleval_f1`, `exact_match`, token `accuracy`, `invalid`, and `types`, a table of
    scores per type."""

    def __init__(
        self, tags: Sequence[str], decode: Callable[[Proposal], Tensor], encoding: Literal["bio", "bioes"]
    ) -> None:
        super().__init__(tags, decode, encoding)
        self._strict, self._conlleval = SpanCounts(), SpanCounts()

    def add(
        self, examples: Sequence[Any], best: np.ndarray, gold: np.ndarray, inside: np.ndarray
    ) -> list[tuple[int, int]]:
        """Twice the right spans, and predicted plus gold ones, per sentence: F1 is the ratio of their sums."""
        sentences = [tags[:n] for tags, n in zip(self._tags[best].tolist(), inside.sum(1), strict=True)]
        pairs = []
        span_lists = strict_spans(sentences, self._scheme)
        for tags, spans, example in zip(sentences, span_lists, examples, strict=True):
            self._conlleval.add(chunks(tags), example.spans)
            pairs.append((2 * self._strict.add(spans, example.spans), len(spans) + len(example.spans)))
        return pairs

    def compute(self) -> dict[str, Any]:
        accuracy = self.accuracy()
        precision, recall, f1 = self._strict.overall()
        return {
            "precision": precision,
            "recall": recall,
            "f1": f1,
            "conlleval_f1": self._conlleval.overall()[2],
            "exact_match": self._strict.exact_match(),
            "accuracy": accuracy,
            "invalid": self._broken_count / self._example_count,
            "types": self._strict.table(),
        }
