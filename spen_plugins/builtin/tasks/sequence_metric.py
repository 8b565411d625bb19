"""Base of the metrics of tagged sentences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.errors import DataError
from spen_plugins.sentences.batches import SentenceBatch
from spen_plugins.spaces import Proposal, allowed_transitions
from spen_plugins.spaces.paths import is_possible
from spen_plugins.task import Metric


class Labelled(NamedTuple):
    """The examples of a batch that have gold, with the net's and the decoded tags.

    Attributes:
        examples: the examples.
        rows: their rows in the batch.
        proposal: the net's, for the whole batch.
        best, gold: index of the decoded and of the gold tag at each token, `(example, token)`; gold is -1 if it is not
            in the training part.
        inside: true on tokens, false on padding.
        lengths: number of tokens, `(example,)`.
    """

    examples: Sequence[Any]
    rows: np.ndarray
    proposal: Proposal
    best: np.ndarray
    gold: np.ndarray
    inside: np.ndarray
    lengths: np.ndarray

    @property
    def likely(self) -> np.ndarray:
        """Index of the most probable tag at each token, before decoding, `(example, token)`."""
        return _find_best_tags(self.proposal.mean, self.rows)


class SequenceMetric(Metric):
    """Token accuracy; subclasses count further scores in `add`.

    Args:
        tags: the tags' names.
        decode: the task's decoding, so that reported outputs are scored.
    """

    example_name = "sentence"
    """Name of an example, for errors."""

    def __init__(self, tags: Sequence[str], decode: Callable[[Proposal], Tensor]) -> None:
        self._tags = np.array(tags, dtype=object)
        self._decode = decode
        self._right_count = self._token_count = self._example_count = 0
        self._ratios: list[Tensor] = []

    def update(self, proposal: Proposal, batch: Batch) -> None:
        assert isinstance(batch, SentenceBatch)
        rows = batch.labelled.nonzero().squeeze(1).cpu().numpy()
        self._ratios.append(torch.zeros(len(batch.rows), 2, dtype=torch.double))
        if batch.gold is None or not len(rows):
            return
        best = _find_best_tags(self._decode(proposal), rows)
        is_token = batch.x.mask.cpu().numpy()[rows]
        examples = [batch.examples[i] for i in rows]
        gold = np.full_like(best, -1)
        gold[is_token] = np.concatenate([example.tags for example in examples])
        self._example_count += len(rows)
        self._token_count += int(is_token.sum())
        self._right_count += int(((best == gold) & is_token).sum())
        pairs = self.add(Labelled(examples, rows, proposal, best, gold, is_token, is_token.sum(1)))
        self._ratios[-1][rows] = torch.from_numpy(np.asarray(pairs)).double()

    @abstractmethod
    def add(self, batch: Labelled) -> np.ndarray | Sequence[tuple[int, int]]:
        """Counts the labelled examples of a batch.

        Returns:
            Numerator and denominator of the selection score for each of them, `(example, 2)`.
        """

    def find_broken(self, tags: np.ndarray, inside: np.ndarray, scheme: str) -> np.ndarray:
        """True where tag indices `(example, token)` break a scheme, `(example,)`."""
        links = (torch.where(allowed, 0.0, -torch.inf) for allowed in allowed_transitions(self._tags.tolist(), scheme))
        return ~is_possible(torch.from_numpy(tags), torch.from_numpy(inside), *links).numpy()

    def ratios(self) -> tuple[Tensor, Tensor]:
        """As `Metric.ratios`, from the results of `add`."""
        numerator, denominator = torch.cat(self._ratios).unbind(1)
        return numerator, denominator

    def accuracy(self) -> float:
        """The share of tokens whose tag is right.

        Raises:
            DataError: no example has gold.
        """
        if not self._token_count:
            raise DataError("scores", None, f"no {self.example_name} with gold tags", "at least one to score")
        return self._right_count / self._token_count


def _find_best_tags(y: Tensor, rows: np.ndarray) -> np.ndarray:
    return y[:, 0].argmax(-1).cpu().numpy()[rows]
