"""Tag-sequence outputs: one simplex per token; discrete outputs may have to obey BIO or BIOES."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spen_plugins.spaces.base import OutputSpace, at_least_float32, inner_product, mask_padding, sum_variables
from spen_plugins.spaces.distribution import Dependent, Proposal
from spen_plugins.spaces.k_best import span_k_best
from spen_plugins.spaces.paths import Scores, begin_once, is_possible
from spen_plugins.spaces.schemes import allowed_transitions, span_links
from spen_plugins.spaces.spans import Spans, find_spans, span_tags


class TagSequence(OutputSpace):
    """One of L tags at each token; `y` is `(batch, sample, token, tag)`, each token on the simplex.

    Masks are `(batch, token)`.

    Args:
        tags: the tags' names, in the order of the last axis.
        scheme: "none", or the scheme of modes and k best outputs: "bio" (an I-x follows B-x or I-x) or "bioes"
            (in addition, B-x or I-x is followed by I-x or E-x, and E-x follows B-x or I-x).
        unique: types of spans that a mode has at most once; k best outputs may repeat them.

    Raises:
        ValueError: there are unique types and no scheme.
    """

    simplex = True

    def __init__(self, tags: list[str], scheme: str = "none", unique: Collection[str] = ()) -> None:
        if unique and scheme == "none":
            raise ValueError("found unique types without a scheme; expected a scheme of spans")
        self.tags = list(tags)
        self.scheme = scheme
        self.links = span_links(self.tags, scheme)
        self.spans = span_tags(self.tags, scheme)
        """The tags of each type of span; None without a scheme."""
        begins = [[tag in (f"B-{kind}", f"S-{kind}") for tag in self.tags] for kind in unique]
        self.unique = torch.tensor(begins, dtype=torch.bool) if unique else None
        """`(type, tag)` the tags that begin a span of each unique type; None if there is none."""
        self.unique_types = torch.tensor([kind in unique for kind in self.spans.types]) if unique else None
        """`(type,)` boolean, true for unique types, in the order of `spans.types`; None if there is none."""

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (None, len(self.tags))

    def relax(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding(torch.softmax(logits, -1), mask)

    def logits(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return mask_padding(torch.log(y.clamp(min=1e-4)), mask)

    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Euclidean projection of each token onto the simplex (Duchi et al. 2008)."""
        ordered = y.sort(-1, descending=True).values
        rank = torch.arange(1, y.shape[-1] + 1, device=y.device, dtype=y.dtype)
        excess = (ordered.cumsum(-1) - 1) / rank
        support = (ordered > excess).sum(-1, keepdim=True).clamp(min=1)
        return mask_padding((y - excess.gather(-1, support - 1)).clamp(min=0), mask)

    def round(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return self.one_hot(y.argmax(-1), mask).to(y.dtype)

    def one_hot(self, tags: Tensor, mask: Tensor | None) -> Tensor:
        """Tag indices `(batch, sample, token)` -> `(batch, sample, token, tag)` in float32, zero on padding."""
        y = torch.zeros(*tags.shape, len(self.tags), device=tags.device)
        ones = torch.ones_like(tags) if mask is None else mask.unsqueeze(1).expand(tags.shape)
        return y.scatter_(-1, tags.unsqueeze(-1), ones.unsqueeze(-1).to(y))

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """Soft accuracy: the mean over tokens of Σ min(y, gold)."""
        return sum_variables(torch.minimum(y, gold), mask) / self.size(y, mask)

    def tally(self, gold: Tensor) -> tuple[Tensor, Tensor]:
        counts = gold.sum((0, 1, 2))
        return counts, counts.sum()

    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> IndependentTags:
        return IndependentTags(self, logits, mask, **kept)


@dataclass(frozen=True)
class IndependentTags(Proposal):
    """Independent tags, each distributed as softmax(logits) (categorical).

    Samples and probabilities are over all tag sequences; `mode` and `k_best` obey the space's scheme, `mode` its unique
    types too.
    """

    space: TagSequence

    @cached_property
    def mode(self) -> Tensor:
        """The most probable tags that the space allows, by Viterbi if there is a scheme."""
        log_p = torch.log_softmax(self.logits.detach(), -1)
        if self.space.scheme == "none":
            tags = log_p.argmax(-1)
        else:
            b, s, t, _ = log_p.shape
            flat_mask = None if self.mask is None else self.mask.unsqueeze(1).expand(b, s, t).reshape(b * s, t)
            transitions = allowed_transitions(self.space.tags, self.space.scheme)
            links = (torch.where(allowed.to(log_p.device), 0.0, float("-inf")).to(log_p) for allowed in transitions)
            tags = self._find_best(Scores(log_p.flatten(0, 1), flat_mask, *links))
            tags = tags.reshape(b, s, t)
        return self.space.one_hot(tags, self.mask).to(self.logits.dtype)

    def _find_best(self, scores: Scores) -> Tensor:
        """The best paths `(row, token)` under the scheme: each token's likeliest tag, if the scheme allows them all."""
        tags = scores.emissions.argmax(-1)
        if not tags.shape[1]:
            return tags
        is_broken = ~is_possible(tags, *scores[1:])
        if is_broken.any():
            broken_scores = scores.rows(is_broken)
            tags[is_broken] = span_k_best(broken_scores.emissions, broken_scores.mask, self.space.links, 1)[0][:, 0]
        if scores.mask is not None:
            tags = tags * scores.mask
        if self.space.unique is None:
            return tags
        return begin_once(tags, scores, self.space.unique.to(tags.device))

    def span_posteriors(self, floor: float) -> Spans:
        """A posterior is the product of the tags' probabilities and the probability that no tag continues the span."""
        if self.space.spans is None:
            return super().span_posteriors(floor)
        p = torch.softmax(self.logits.detach()[:, 0].double(), -1)
        return find_spans(p, lambda row, token, _, tag: p[row, token, tag], self.space.spans, self.mask, floor)

    @property
    def pairs(self) -> Tensor:
        """Probabilities of each token's tag and the next one's, `(batch, token - 1, tag, tag)`."""
        p = self.mean[:, 0]
        return p[:, :-1, :, None] * p[:, 1:, None]

    def sample(self, n: int) -> Tensor:
        b, _, t, k = self.logits.shape
        p = torch.softmax(self.logits.detach(), -1).reshape(b * t, k)
        tags = torch.multinomial(p, n, replacement=True).reshape(b, t, n).transpose(1, 2)
        return self.space.one_hot(tags, self.mask).to(self.logits.dtype)

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        logits = self.logits
        b, _, t, k = logits.shape
        u = torch.rand(b, n, t, k, device=logits.device, dtype=logits.dtype).clamp(1e-7, 1 - 1e-7)
        return mask_padding(torch.softmax((logits - torch.log(-torch.log(u))) / temperature, -1), self.mask)

    def log_prob(self, y: Tensor) -> Tensor:
        log_p = mask_padding(torch.log_softmax(at_least_float32(self.logits), -1), self.mask)
        if log_p.shape[1] == 1:
            return inner_product(log_p[:, 0], y)
        return (y * log_p).flatten(2).sum(-1)

    def weighted_log_prob(self, y: Tensor, weights: Tensor) -> Tensor:
        return self.log_prob(y * weights.to(y.dtype))

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(at_least_float32(self.logits.detach()), -1)
        tags, log_q = span_k_best(log_p[:, 0], self.mask, self.space.links, k)
        return self.space.one_hot(tags, self.mask).to(self.logits.dtype), log_q


class DependentTags(Dependent):
    """Tags, or other variables on a simplex, that depend on each other."""

    @property
    def _closest_independent(self) -> Proposal:
        return self.space.independent(torch.log(self.mean.clamp(min=1e-12)), self.mask)
