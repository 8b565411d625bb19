"""Output space of trees as labelled spans, and the distributions over it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

import spen_plugins as sp
from spen_infnet.parsing.chart import are_trees, best_trees, log_partition, marginals, sample_trees
from spen_plugins.nn import inner_product


class SpanTrees(sp.OutputSpace):
    """A label or none for each possible span of a sentence; `y` is `(batch, sample, place, value)`, each place on the
    simplex.

    The value 0 means no constituent, and 1 + i the label i. Places are numbered as in `chart`, and masks are `(batch,
    place)`. Modes are trees: sets of labelled spans that do not cross.

    Args:
        labels: the constituents' labels.
    """

    simplex = True

    def __init__(self, labels: list[str]) -> None:
        self.labels = list(labels)
        self._values = sp.TagSequence(["", *labels])
        """The same geometry without trees."""

    @property
    def shape(self) -> tuple[int | None, ...]:
        return self._values.shape

    def relax(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        return self._values.relax(logits, mask)

    def logits(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return self._values.logits(y, mask)

    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return self._values.project(y, mask)

    def round(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return self._values.round(y, mask)

    def one_hot(self, values: Tensor, mask: Tensor | None) -> Tensor:
        """Values `(batch, sample, place)` -> `(batch, sample, place, value)` in float32, zero on padding."""
        return self._values.one_hot(values, mask)

    def tally(self, gold: Tensor) -> tuple[Tensor, Tensor]:
        return self._values.tally(gold)

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """Soft F1 of labelled spans, `(batch, sample)`: 2 Σ min(y, gold) / Σ (y + gold) over labels; 1 where both are
        empty."""
        y, gold = y[..., 1:], gold[..., 1:]
        overlap, total = torch.minimum(y, gold).sum((-2, -1)), (y + gold).sum((-2, -1))
        return torch.where(total > 0, 2 * overlap / total.clamp(min=1e-12), 1.0)

    def best(self, gains: Tensor, mask: Tensor | None) -> Tensor:
        """The trees with the highest sum of their spans' gains, `(batch, 1, place, value)`, by CKY, without gradient.

        Args:
            gains: gains of labelled spans, `(batch, place, label)`; no constituent has gain 0.
        """
        return self.one_hot(best_trees(gains, _count_words(gains, mask)).unsqueeze(1), mask).to(gains.dtype)

    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> IndependentSpans:
        if mask is not None and logits.shape[2] != mask.shape[1]:
            raise sp.ConfigError(
                f"task.form=spans: found scores of {logits.shape[2]} words; expected scores of {mask.shape[1]} spans. "
                "Use inference_net.type=infnet.tree_crf"
            )
        return IndependentSpans(self, logits, mask, **kept)


class IndependentSpans(sp.IndependentTags):
    """Independent values of places: samples need not be trees, the mode is the likeliest tree."""

    space: SpanTrees

    k_best = sp.Proposal.k_best
    span_posteriors = sp.Proposal.span_posteriors

    @cached_property
    def mode(self) -> Tensor:
        return self.space.best(_score_labels(self.logits), self.mask)


@dataclass(frozen=True)
class TreeCrfProposal(sp.DependentTags):
    """q(y | x) ∝ exp Σ of the scores of y's labelled spans, over trees (a conditional random field on a chart).

    A label's score is its logit minus the logit of no constituent. `log_prob` is −∞ for spans that cross; for a relaxed
    y it is the expected score minus ln Z.
    """

    space: SpanTrees

    @cached_property
    def _lengths(self) -> Tensor:
        return _count_words(self.logits[:, 0], self.mask)

    @property
    def _scores(self) -> Tensor:
        return _score_labels(self.logits)

    @cached_property
    def log_z(self) -> Tensor:
        """ln Z, `(batch,)`."""
        with self.restore_grad_mode(), torch.autocast(self.logits.device.type, enabled=False):
            return log_partition(self._scores, self._lengths)

    @cached_property
    def mean(self) -> Tensor:
        """Marginals of labelled spans, differentiable, `(batch, 1, place, value)`."""
        with self.restore_grad_mode(), torch.autocast(self.logits.device.type, enabled=False):
            p = marginals(self._scores, self._lengths)
            no_constituent = (1 - p.sum(-1, keepdim=True)).clamp(min=0)
            if self.mask is not None:
                no_constituent = no_constituent * self.mask.unsqueeze(-1)
            return torch.cat([no_constituent, p], -1).unsqueeze(1)

    @cached_property
    def mode(self) -> Tensor:
        return self.space.best(self._scores, self.mask)

    def sample(self, n: int) -> Tensor:
        """Exact draws, `(batch, n, place, value)`, from the whole sentence down."""
        return self.space.one_hot(sample_trees(self._scores, self._lengths, n), self.mask).to(self.logits.dtype)

    def log_prob(self, y: Tensor) -> Tensor:
        value = inner_product(self._scores, y[..., 1:])
        with torch.no_grad():
            highest, label = y.max(-1)
            has_crossing = (highest == highest.round()).all(-1) & ~are_trees((label > 0) & (highest > 0))
        return value.masked_fill(has_crossing, -torch.inf) - self.log_z.unsqueeze(1)


def _score_labels(logits: Tensor) -> Tensor:
    """Scores of labels, `(batch, place, label)`, relative to no constituent."""
    return logits[:, 0, :, 1:] - logits[:, 0, :, :1]


def _count_words(places: Tensor, mask: Tensor | None) -> Tensor:
    """Words of each sentence, `(batch,)`, from values `(batch, place, …)` and the mask of places."""
    count = torch.full((len(places),), places.shape[1], device=places.device) if mask is None else mask.sum(1)
    # Square roots of integers this small are exact enough: (8 p + 1) is a square where p is a number of places.
    return ((torch.sqrt(8 * count.double() + 1) - 1) / 2 + 1e-9).floor().long()
