"""Inference net `crf`: a linear-chain conditional random field on a feature network (Lafferty et al. 2001)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet
from spen_plugins.settings.config import Config
from spen_plugins.spaces import DependentTags, Spans, TagSequence, allowed_transitions, viterbi
from spen_plugins.spaces.base import draw_index
from spen_plugins.spaces.chain import Chain, backward_scores, exact_dtype, forward_scores
from spen_plugins.spaces.k_best import chain_k_best
from spen_plugins.spaces.paths import Scores, begin_once, is_possible
from spen_plugins.spaces.spans import find_spans
from spen_plugins.task import Task

SURE = math.log(0.55)
"""ln q above which no other output is likelier. One half would do without rounding errors, which are some hundredths
in sentences of hundreds of words."""

FORBIDDEN = 300.0
"""Nats by which the scores that a scheme forbids are below the lowest score of a chain."""


class Crf(InferenceNet):
    """ln q(y | x) = emissions + transitions − ln Z over all tag sequences."""

    uses_features = True

    class Config(Config):
        constrained: bool = True
        """If true, mode and k best obey the space's scheme (BIO, BIOES); the distribution is over all sequences."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not isinstance(task.space, TagSequence):
            raise ConfigError(
                "inference_net 'crf' requires tag sequences (tasks 'srl', 'tagging'); use 'independent' for labels"
            )
        assert features is not None
        k = len(task.space.tags)
        self.output = nn.Linear(features.output_dim, k)
        self.transitions = nn.Parameter(torch.empty(k, k).uniform_(-0.1, 0.1))
        self.start = nn.Parameter(torch.empty(k).uniform_(-0.1, 0.1))
        self.end = nn.Parameter(torch.empty(k).uniform_(-0.1, 0.1))

    def forward(self, x: X, energy: BoundEnergy | None = None) -> CrfProposal:
        features = self.features(x)
        logits = self.output(features).unsqueeze(1)
        chain = Chain(self.transitions, self.start, self.end)
        return CrfProposal(self.space, logits, x.mask, features, chain=chain, constrained=self.config.constrained)


@dataclass(frozen=True)
class CrfProposal(DependentTags):
    """q(y | x) of a linear chain; `logits` are its emissions `(batch, 1, token, tag)`.

    `log_prob` of a relaxed y is bilinear in it: the score Σ_t y_t·e_t + y_{t−1}ᵀ A y_t minus ln Z; exact on one-hot y.
    """

    space: TagSequence
    chain: Chain | None = None
    constrained: bool = True

    @property
    def _emissions(self) -> Tensor:
        return self.logits[:, 0]

    @cached_property
    def _mask(self) -> Tensor:
        """Mask `(batch, token)`, also for a batch without padding."""
        if self.mask is not None:
            return self.mask
        return self.logits.new_ones(self.logits.shape[0], self.logits.shape[2], dtype=torch.bool)

    @cached_property
    def _forward_scores(self) -> Tensor:
        """ln of the forward scores α `(batch, token, tag)`, constant after a sentence's end."""
        with self.restore_grad_mode():
            return forward_scores(self._emissions, self._mask, self.chain)

    @cached_property
    def log_z(self) -> Tensor:
        """ln Z, `(batch,)`."""
        with self.restore_grad_mode():
            return torch.logsumexp(self._forward_scores[:, -1] + self.chain.end, -1)

    @cached_property
    def _backward_scores(self) -> Tensor:
        """ln of the backward scores β `(batch, token, tag)`."""
        with self.restore_grad_mode():
            return backward_scores(self._emissions, self._mask, self.chain)

    @cached_property
    def mean(self) -> Tensor:
        """Marginals by forward and backward scores: differentiable, `(batch, 1, token, tag)`."""
        with self.restore_grad_mode():
            # Up to rounding ln Z is the same at every token; the softmax divides by each token's.
            marginals = torch.softmax(self._forward_scores + self._backward_scores, -1)
            return (marginals * self._mask.unsqueeze(-1)).unsqueeze(1)

    @property
    def pairs(self) -> Tensor:
        """Probabilities of each token's tag and the next one's, `(batch, token - 1, tag, tag)`; zero on padding."""
        with self.restore_grad_mode():
            next_scores = self._emissions[:, 1:] + self._backward_scores[:, 1:]
            scores = self._forward_scores[:, :-1, :, None] + self.chain.transitions + next_scores[:, :, None]
            return torch.softmax(scores.flatten(2), -1).view_as(scores) * self._mask[:, 1:, None, None]

    def span_posteriors(self, floor: float) -> Spans:
        """Posteriors over the sequences that the scheme allows, as for `mode`; over all if not `constrained`."""
        if self.space.spans is None:
            return super().span_posteriors(floor)
        emissions, mask, chain = self._emissions.detach().double(), self._mask, self._make_allowed_chain()
        with torch.no_grad():
            beta = backward_scores(emissions, mask, chain)
            p = torch.softmax(forward_scores(emissions, mask, chain) + beta, -1)

        def follow(row: Tensor, token: Tensor, previous: Tensor, tag: Tensor) -> Tensor:
            score = emissions[row, token, tag] + beta[row, token, tag]
            return torch.exp(chain.transitions[previous, tag] + score - beta[row, token - 1, previous])

        return find_spans(p, follow, self.space.spans, self.mask, floor)

    def _make_allowed_chain(self) -> Chain:
        """The chain in float64; if `constrained`, scores that the scheme forbids are `FORBIDDEN` below all others. With
        −∞ in their place the sums would be in log space, which takes many times longer."""
        scores = [values.double() for values in self.chain.detach()]
        if self.constrained:
            transitions = allowed_transitions(self.space.tags, self.space.scheme)
            lowest = min(float(values.min()) for values in scores) - FORBIDDEN
            scores = [
                s.masked_fill(~allowed.to(s.device), lowest) for s, allowed in zip(scores, transitions, strict=True)
            ]
        return Chain(*scores)

    def log_prob(self, y: Tensor) -> Tensor:
        # In full precision: ln q is a small difference of large sums.
        with torch.autocast(self.logits.device.type, enabled=False):
            mask = self._mask.to(y.dtype)
            y = y * mask[:, None, :, None]
            score = torch.bmm(y.flatten(2), self._emissions.flatten(1).unsqueeze(2)).squeeze(2)
            previous_y, next_y = y[:, :, :-1], y[:, :, 1:]
            score = score + ((previous_y @ self.chain.transitions) * next_y).flatten(2).sum(-1)
            is_last = mask - torch.cat([mask[:, 1:], torch.zeros_like(mask[:, :1])], 1)
            last_y = torch.einsum("bstk,bt->bsk", y, is_last)
            return score + y[:, :, 0] @ self.chain.start + last_y @ self.chain.end - self.log_z.unsqueeze(1)

    def sample(self, n: int) -> Tensor:
        """Exact draws: forward filtering, then sampling each tag given its successor, from the last to the first."""
        alpha, mask = self._forward_scores.detach(), self._mask
        with torch.no_grad():
            backwards = self.chain.transitions.t().contiguous()
            factor = torch.exp(backwards - backwards.amax(-1, keepdim=True))
            is_exact = exact_dtype(self.chain.transitions) == self.chain.transitions.dtype
            scores = torch.exp(alpha - alpha.amax(-1, keepdim=True))
            b, length, k = alpha.shape
            tag = draw_index(torch.softmax(alpha[:, -1] + self.chain.end, -1).unsqueeze(1).expand(b, n, k))
            tags = [tag]
            for t in range(length - 1, 0, -1):
                # p(tag at t−1 | tag at t) ∝ α_{t−1} exp A[·, tag]; after the end the tag is constant.
                weights = scores[:, t - 1].unsqueeze(1) * factor[tag]
                if not is_exact:  # what underflows may matter: normalise in log space
                    weights = torch.softmax(alpha[:, t - 1].unsqueeze(1) + backwards[tag], -1)
                previous_tag = draw_index(weights)
                tag = torch.where(mask[:, t].unsqueeze(1), previous_tag, tag)
                tags.append(tag)
            paths = torch.stack(tags[::-1], 2)
            return self.space.one_hot(paths, self.mask).to(self.logits.dtype)

    @cached_property
    def mode(self) -> Tensor:
        """Viterbi over emissions and transitions, under the space's scheme and unique types if `constrained`."""
        scores = Scores(self._emissions.detach(), self.mask, *self._decoding_scores)
        tags = self._find_best(scores)
        if self.constrained and self.space.unique is not None:
            tags = begin_once(tags, scores, self.space.unique.to(tags.device))
        return self.space.one_hot(tags.unsqueeze(1), self.mask).to(self.logits.dtype)

    def _find_best(self, scores: Scores) -> Tensor:
        """The best paths `(batch, token)`. A path whose probability is above one half is the best, and its tags are the
        likeliest by their marginals, which predictions need for their scores: only other rows take Viterbi."""
        with torch.no_grad():
            if not scores.emissions.shape[1]:
                return scores.emissions.argmax(-1)
            tags = self.mean[:, 0].argmax(-1)
            log_q = self.log_prob(self.space.one_hot(tags.unsqueeze(1), self.mask).to(self.logits.dtype))[:, 0]
            is_unsure = ~((log_q > SURE) & is_possible(tags, *scores[1:]))
            if is_unsure.any():
                tags[is_unsure] = viterbi(*scores.rows(is_unsure))
            return tags if self.mask is None else tags * self.mask

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """List Viterbi; obeys the scheme as `mode` does, but not unique types."""
        tags, scores = chain_k_best(self._emissions.detach(), self.mask, *self._decoding_scores, k)
        return self.space.one_hot(tags, self.mask).to(self.logits.dtype), scores - self.log_z.detach().unsqueeze(1)

    def detach(self) -> CrfProposal:
        return replace(super().detach(), chain=self.chain.detach())

    def tempered(self, temperature: float) -> CrfProposal:
        return replace(super().tempered(temperature), chain=Chain(*(scores / temperature for scores in self.chain)))

    @property
    def _decoding_scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Transitions, start and end for decoding; if `constrained`, −∞ where they violate the scheme."""
        scores = self.chain.detach()
        if not self.constrained or self.space.scheme == "none":
            return scores
        transitions = allowed_transitions(self.space.tags, self.space.scheme)
        return tuple(
            s.masked_fill(~allowed.to(s.device), float("-inf")) for s, allowed in zip(scores, transitions, strict=True)
        )
