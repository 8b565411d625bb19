"""Energy and inference net `exact.segments`: a semi-Markov model of labelled spans (Sarawagi & Cohen 2004)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_exact.segment_marginals import WordMarginals, pair_marginals, tag_marginals
from spen_exact.segment_outputs import read_segments, score_relaxed, score_segments
from spen_exact.segment_paths import best_once, k_best, sample
from spen_exact.segment_places import Kinds
from spen_exact.segment_scores import SegmentScorer, SegmentScores
from spen_exact.segment_sums import Backward, Forward, backward_sums, forward_sums, place_posteriors


class SegmentsConfig(sp.Config):
    """Settings of the scores."""

    longest: int = Field(30, ge=2)
    """Maximal number of words of a span that has its own score; the score of a longer span is a sum over its words, its
    first and its last one."""
    size: int = Field(32, ge=1)
    """Size of the vector of each possible span, of its first and last word, the mean of its words and their number."""


def make_scorer(component: sp.Component, kinds: Kinds) -> SegmentScorer:
    """The scorer on a component's features."""
    config, features = component.config, component.features
    assert features is not None
    return SegmentScorer(kinds, features.output_dim, config.longest, config.size)


class Segments(sp.Energy):
    """E(x, y) = −Σ of the scores of y's spans, of the words outside, and of the links between them.

    ln Z is over the tags that obey the space's scheme. For a relaxed y, E is the expected energy of independent tags,
    which is linear in each token's tag. In tags that break the scheme, words that continue no span count only in the
    links.
    """

    uses_features = True
    Config = SegmentsConfig

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.kinds = Kinds(task.space, "energy 'exact.segments'")
        self.scores = make_scorer(self, self.kinds)

    def encode(self, x: sp.X) -> SegmentScores:
        return _score(self, x)

    def forward(self, features: SegmentScores, y: Tensor) -> Tensor:
        return -score(self.kinds, features, y)[0]

    def log_z(self, features: SegmentScores) -> Tensor:
        return forward_sums(features).log_z

    def marginals(self, features: SegmentScores) -> Tensor:
        words = WordMarginals.from_sums(features, forward_sums(features), backward_sums(features))
        return (tag_marginals(self.kinds, words) * features.mask.unsqueeze(-1)).unsqueeze(1)

    def modes(self, features: SegmentScores, shift: Tensor) -> Tensor:
        """Viterbi over segments, among the tags that obey the space's scheme."""
        with torch.no_grad():
            scores = features.detach().shifted(self.kinds, shift.detach())
            starts, kinds, _ = k_best(scores, 1)
            mask = scores.mask.unsqueeze(1)
            tags = (self.kinds.write(starts, kinds, mask) * mask).view(shift.shape[:3])
            return self.space.one_hot(tags, features.mask).to(shift)


class SegmentsNet(sp.InferenceNet):
    """ln q(y | x) = the score of y's segments − ln Z over the tags that obey the space's scheme."""

    uses_features = True
    Config = SegmentsConfig

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.kinds = Kinds(task.space, "inference_net 'exact.segments'")
        self.scores = make_scorer(self, self.kinds)

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> SegmentsProposal:
        scores = _score(self, x)
        return SegmentsProposal(
            self.space, _sum_word_scores(self.kinds, scores), x.mask, segments=scores, kinds=self.kinds
        )


def _score(component: Segments | SegmentsNet, x: sp.X) -> SegmentScores:
    vectors = component.features(x)
    return component.scores(
        vectors, vectors.new_ones(vectors.shape[:2], dtype=torch.bool) if x.mask is None else x.mask
    )


def score(kinds: Kinds, scores: SegmentScores, y: Tensor) -> tuple[Tensor, Tensor]:
    """The scores of tags, and true for those that are discrete and obey the scheme, `(batch, sample)` each."""
    with torch.autocast(y.device.type, enabled=False):
        with torch.no_grad():
            starts, kind, is_valid = read_segments(kinds, y, scores.mask)
        if is_valid.all() and not y.requires_grad:
            return score_segments(scores, starts, kind), is_valid
        return score_relaxed(kinds, scores, y), is_valid


def _sum_word_scores(kinds: Kinds, scores: SegmentScores) -> Tensor:
    """The part of the scores that is a sum over words, for each word and tag, `(batch, 1, token, tag)`."""
    word_scores = scores.start + scores.end
    return word_scores[..., kinds.kind.to(word_scores.device)].unsqueeze(1)


@dataclass(frozen=True)
class SegmentsProposal(sp.DependentTags):
    """q(y | x) of a semi-Markov model; `logits` are each word's part of the scores, which is a sum over words.

    Only tags that obey the space's scheme have a probability; `log_prob` of others is −∞. For a relaxed y it is the
    expected score under independent tags minus ln Z. Only the mode has unique types at most once.
    """

    segments: SegmentScores | None = None
    kinds: Kinds | None = None

    @cached_property
    def _forward(self) -> Forward:
        with self.restore_grad_mode():
            return forward_sums(self.segments)

    @cached_property
    def _backward(self) -> Backward:
        with self.restore_grad_mode():
            return backward_sums(self.segments)

    @cached_property
    def _words(self) -> WordMarginals:
        with self.restore_grad_mode():
            return WordMarginals.from_sums(self.segments, self._forward, self._backward)

    @property
    def log_z(self) -> Tensor:
        """ln Z, `(batch,)`."""
        return self._forward.log_z

    @cached_property
    def mean(self) -> Tensor:
        """Marginals of tags, differentiable, `(batch, 1, token, tag)`."""
        with self.restore_grad_mode():
            marginals = tag_marginals(self.kinds, self._words)
            return (marginals * self.segments.mask.unsqueeze(-1)).unsqueeze(1)

    @property
    def pairs(self) -> Tensor:
        """Probabilities of each token's tag and the next one's, `(batch, token - 1, tag, tag)`; zero on padding."""
        with self.restore_grad_mode():
            pairs = pair_marginals(self.kinds, self.segments, self._forward, self._backward, self._words)
            return pairs * self.segments.mask[:, 1:, None, None]

    def log_prob(self, y: Tensor) -> Tensor:
        value, is_valid = score(self.kinds, self.segments, y)
        if not is_valid.all():
            is_broken = (y.amax(-1) >= self.segments.mask.unsqueeze(1).to(y)).all(-1) & ~is_valid
            value = value.masked_fill(is_broken, -torch.inf)
        return value - self.log_z.unsqueeze(1)

    def sample(self, n: int) -> Tensor:
        """Exact draws: forward filtering, then each segment given its successor, from the last to the first."""
        with torch.no_grad():
            return self._write(*sample(self.segments.detach(), self._forward, n))

    @cached_property
    def mode(self) -> Tensor:
        """Viterbi over segments, with the space's unique types at most once."""
        with torch.no_grad():
            starts, kinds = best_once(self.segments.detach(), self.kinds.unique)
            return self._write(starts.unsqueeze(1), kinds.unsqueeze(1))

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """List Viterbi; unique types may be repeated."""
        with torch.no_grad():
            starts, kinds, total = k_best(self.segments.detach(), k)
            return self._write(starts, kinds), total - self.log_z.detach().unsqueeze(1)

    def _write(self, starts: Tensor, kinds: Tensor) -> Tensor:
        mask = self.segments.mask.unsqueeze(1).expand(starts.shape)
        return self.space.one_hot(self.kinds.write(starts, kinds, mask) * mask, self.mask).to(self.logits.dtype)

    def span_posteriors(self, floor: float) -> sp.Spans:
        with torch.no_grad():
            scores = self.segments.detach().map(Tensor.double)
            forward, backward = forward_sums(scores), backward_sums(scores)
            p = place_posteriors(scores, forward, backward)[..., 1:]
            row, place, kind = (p > floor).nonzero(as_tuple=True)
            places = scores.places
            spans = [sp.Spans(row, places.start[place], places.end[place], kind, p[row, place, kind])]
            if scores.start.shape[1] > places.longest:
                spans.append(_find_long_spans(scores, forward, backward, floor))
            return sp.Spans.join(spans)

    def tempered(self, temperature: float) -> SegmentsProposal:
        return replace(super().tempered(temperature), segments=self.segments.map(lambda scores: scores / temperature))

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> SegmentsProposal:
        return replace(super().map_rows(change), segments=self.segments.map_rows(change))

    def detach(self) -> SegmentsProposal:
        return replace(super().detach(), segments=self.segments.detach())


def _find_long_spans(scores: SegmentScores, forward: Forward, backward: Backward, floor: float) -> sp.Spans:
    """The spans of more words than the longest place."""
    beginnings = (forward.entry + scores.start + scores.long - forward.log_z[:, None, None])[..., 1:]
    endings = (scores.end + backward.exit)[..., 1:]
    ending_sums = endings.flip(1).logcumsumexp(1).flip(1)
    longest = scores.places.longest
    row, start, kind = (beginnings[:, :-longest] + ending_sums[:, longest:] > torch.log(torch.tensor(floor))).nonzero(
        as_tuple=True
    )
    p = torch.exp(beginnings[row, start, kind].unsqueeze(1) + endings[row, :, kind])
    end = torch.arange(1, endings.shape[1] + 1, device=p.device)
    span, last = ((p > floor) & (end > start.unsqueeze(1) + longest)).nonzero(as_tuple=True)
    return sp.Spans(row[span], start[span], end[last], kind[span], p[span, last])
