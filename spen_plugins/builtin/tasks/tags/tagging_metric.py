"""Scores of task `tagging`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.errors import DataError
from spen_plugins.scores.entities import EntityCounts, chunks, strict_spans, table
from spen_plugins.sentences.batches import SentenceBatch, TaggedExample
from spen_plugins.spaces import Proposal, allowed_transitions
from spen_plugins.task import Metric

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
    "accuracy": "the share of tokens whose tag is right",
    "invalid": "share of sentences whose most probable tag at each token breaks the scheme, before decoding",
    "unseen_types": "gold spans whose type is not in the training part count as missed",
}
"""Definitions of the scores, for a run's protocol."""


class TagMetric(Metric):
    """`accuracy` and `tags`, a table of scores per tag.

    Args:
        tags: the tags' names.
        decode: the task's decoding, so that reported outputs are scored.
    """

    def __init__(self, tags: Sequence[str], decode: Callable[[Proposal], Tensor]) -> None:
        self._decode = decode
        self._tags = np.array(tags, dtype=object)
        self._right: Counter[str] = Counter()
        self._predicted: Counter[str] = Counter()
        self._gold: Counter[str] = Counter()
        self._ratios: list[Tensor] = []

    def update(self, proposal: Proposal, batch: Batch) -> None:
        assert isinstance(batch, SentenceBatch)
        rows = batch.labelled.nonzero().squeeze(1).cpu().numpy()
        ratios = torch.zeros(len(batch.rows), 2, dtype=torch.double)
        self._ratios.append(ratios)
        if not len(rows):
            return
        best = self._decode(proposal)[:, 0].argmax(-1).cpu().numpy()[rows]
        inside = batch.x.mask.cpu().numpy()[rows]
        examples = [batch.examples[i] for i in rows]
        gold = np.full_like(best, -1)
        gold[inside] = np.concatenate([example.tags for example in examples])
        right = (best == gold) & inside
        self._right.update(self._tags[best[right]])
        self._predicted.update(self._tags[best[inside]])
        for example in examples:
            self._gold.update(example.names)
        lengths = inside.sum(1)
        ratios[rows] = torch.from_numpy(self._pairs(proposal, examples, rows, best, right.sum(1), lengths)).double()

    def _pairs(
        self,
        proposal: Proposal,
        examples: Sequence[TaggedExample],
        rows: np.ndarray,
        best: np.ndarray,
        right: np.ndarray,
        lengths: np.ndarray,
    ) -> np.ndarray:
        """Numerator and denominator of the selection score for each labelled sentence, `(sentence, 2)`."""
        return np.stack([right, lengths], 1)

    def ratios(self) -> tuple[Tensor, Tensor]:
        """Right tokens and all tokens of each sentence: accuracy is the ratio of their sums."""
        numerator, denominator = torch.cat(self._ratios).unbind(1)
        return numerator, denominator

    def compute(self) -> dict[str, Any]:
        if not self._gold:
            raise DataError("scores", None, "no sentence with gold tags", "at least one to score")
        accuracy = self._right.total() / self._gold.total()
        return {"accuracy": accuracy, "tags": table(self._right, self._predicted, self._gold)}


class SpanMetric(TagMetric):
    """`precision`, `recall`, `f1`, `conlleval_f1`, token `accuracy`, `invalid`, and `types`, a table of scores per
    type."""

    def __init__(
        self, tags: Sequence[str], decode: Callable[[Proposal], Tensor], encoding: Literal["bio", "bioes"]
    ) -> None:
        super().__init__(tags, decode)
        self._encoding = encoding
        self._allowed = [part.numpy() for part in allowed_transitions(list(tags), encoding)]
        self._strict, self._conlleval = EntityCounts(), EntityCounts()
        self._sentences = self._invalid = 0

    def _pairs(
        self,
        proposal: Proposal,
        examples: Sequence[TaggedExample],
        rows: np.ndarray,
        best: np.ndarray,
        right: np.ndarray,
        lengths: np.ndarray,
    ) -> np.ndarray:
        likely = proposal.mean[:, 0].argmax(-1).cpu().numpy()[rows]
        self._sentences += len(rows)
        self._invalid += int(self._breaks(likely, lengths).sum())
        said = [tags[:n] for tags, n in zip(self._tags[best].tolist(), lengths, strict=True)]
        pairs = []
        for tags, found, example in zip(said, strict_spans(said, self._encoding), examples, strict=True):
            self._conlleval.add(chunks(tags), example.spans)
            exact, predicted, gold = self._strict.add(found, example.spans)
            pairs.append((2 * exact, predicted + gold))
        return np.array(pairs)

    def _breaks(self, tags: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """`(sentence,)` boolean: true if tag indices `(sentence, token)` violate the scheme."""
        following, start, end = self._allowed
        sentence = np.arange(len(tags))
        within = np.arange(1, tags.shape[1]) < lengths[:, None]
        links = following[tags[:, :-1], tags[:, 1:]] | ~within
        return ~(links.all(1) & start[tags[:, 0]] & end[tags[sentence, lengths - 1]])

    def ratios(self) -> tuple[Tensor, Tensor]:
        """Twice the right spans, and predicted plus gold ones, of each sentence: F1 is the ratio of their sums."""
        return super().ratios()

    def compute(self) -> dict[str, Any]:
        accuracy = super().compute()["accuracy"]
        scores = self._strict.scores()
        types = scores.pop("types")
        return {
            **scores,
            "conlleval_f1": self._conlleval.scores()["f1"],
            "accuracy": accuracy,
            "invalid": self._invalid / self._sentences,
            "types": types,
        }
