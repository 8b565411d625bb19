"""Base of the metrics of tagged sentences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.errors import DataError
from spen_plugins.sentences.batches import SentenceBatch
from spen_plugins.spaces import Proposal, allowed_transitions
from spen_plugins.spaces.paths import is_possible
from spen_plugins.task import Metric


class SequenceMetric(Metric):
    """Token accuracy; subclasses count further scores in `add`.

    Args:
        tags: the tags' names.
        decode: the task's decoding, so that reported outputs are scored.
        scheme: the scheme that the most probable tag at each token may break, before decoding; None: there is none.
    """

    example_name = "sentence"
    """Name of an example, for errors."""

    def __init__(self, tags: Sequence[str], decode: Callable[[Proposal], Tensor], scheme: str | None = None) -> None:
        self._tags = np.array(tags, dtype=object)
        self._decode, self._scheme, self._broken_count = decode, scheme, 0
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
        if self._scheme is not None:
            likely = _find_best_tags(proposal.mean, rows)
            self._broken_count += int(self.find_broken(likely, is_token).sum())
        pairs = self.add(examples, best, gold, is_token)
        self._ratios[-1][rows] = torch.from_numpy(np.asarray(pairs)).double()

    @abstractmethod
    def add(
        self, examples: Sequence[Any], best: np.ndarray, gold: np.ndarray, inside: np.ndarray
    ) -> np.ndarray | Sequence[tuple[int, int]]:
        """Counts examples with gold; `best`, `gold`: indices of the decoded and of the gold tag at each token,
        `(example, token)`, -1 for gold that is not in the training part; `inside` is true on tokens.

        Returns:
            Numerator and denominator of the selection score for each of them, `(example, 2)`.
        """

    def find_broken(self, tags: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """True where tag indices `(example, token)` break the scheme, `(example,)`."""
        allowed = allowed_transitions(self._tags.tolist(), self._scheme)
        links = (torch.where(links, 0.0, -torch.inf) for links in allowed)
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
