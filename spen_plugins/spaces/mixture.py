"""Mixtures of distributions over outputs: the mean of several nets' q(y | x)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.spaces.base import OutputSpace, at_least_float32
from spen_plugins.spaces.distribution import Dependent, Proposal
from spen_plugins.spaces.spans import Spans


@dataclass(frozen=True)
class Mixture(Dependent):
    """q(y | x) = Σ_k π_k q_k(y | x), exact in `log_prob`, `mean` and `sample`. `Mixture.of` constructs it.

    `mode` is that of the independent variables with the mixture's mean, not the most probable output of the mixture:
    each label whose mean is above 1/2, or the tags whose means have the largest product, under the space's scheme and
    unique types. `rsample` and `perturb` use these independent variables too. For a relaxed y, `log_prob` takes each
    component's `log_prob`.

    Args:
        logits: the logits of the independent variables with the mixture's mean.
        components: q_k, over outputs of the same space and mask; at least one.
        log_weights: ln π_k, normalised, `(component,)` or `(batch, component)`.
    """

    components: tuple[Proposal, ...] = ()
    log_weights: Tensor | None = None

    @classmethod
    def of(cls, components: Sequence[Proposal], log_weights: Tensor | None = None, **kept: Any) -> Mixture:
        """The mixture of several distributions; differentiable in their parameters and in the weights.

        Args:
            components: at least one, over outputs of the same space and mask.
            log_weights: `(component,)` or `(batch, component)`, up to a constant; None: equal weights.
            kept: further fields of a `Proposal`: `features`, `iterates`.
        """
        first = components[0]
        if log_weights is None:
            log_weights = at_least_float32(first.logits).new_zeros(len(components))
        log_weights = at_least_float32(log_weights).log_softmax(-1)
        logits = _compute_mean_logits(first.space, components, log_weights)
        fields = {"components": tuple(components), "log_weights": log_weights, **kept}
        return cls(first.space, logits, first.mask, **fields)

    @property
    def exact(self) -> bool:
        """True if all components are exact."""
        return all(component.exact for component in self.components)

    @cached_property
    def mean(self) -> Tensor:
        with self.restore_grad_mode():
            return _average_means(self.components, self.log_weights)

    @property
    def pairs(self) -> Tensor:
        """Probabilities of each token's tag and the next one's, `(batch, token - 1, tag, tag)`; tag sequences only."""
        pairs = torch.stack([component.pairs for component in self.components])
        return (_align(self.log_weights.exp(), pairs[0].dim()) * pairs).sum(0)

    def span_posteriors(self, floor: float) -> Spans:
        """The mean posteriors; a component's posterior counts as 0 below a hundredth of `floor`."""
        parts = [component.span_posteriors(floor / 100) for component in self.components]
        weights = self.log_weights.detach().exp().double().reshape(-1, len(parts))
        weights = weights.expand(self.logits.shape[0], -1).to(parts[0].p.device)
        spans = Spans.join([part._replace(p=part.p * weights[part.row, k]) for k, part in enumerate(parts)])
        places, groups = torch.stack(spans[:4]).unique_consecutive(dim=1, return_inverse=True)
        spans = Spans(*places, spans.p.new_zeros(places.shape[1]).index_add_(0, groups, spans.p))
        return spans.pick(spans.p > floor)

    @property
    def mode(self) -> Tensor:
        return self._closest_independent.mode

    def sample(self, n: int) -> Tensor:
        """`n` outputs, each from an independently drawn component; a component draws no more than its share."""
        batch = self.logits.shape[0]
        weights = self.log_weights.detach().exp()
        chosen = torch.multinomial(weights.expand(batch, -1), n, replacement=True)
        samples = self.logits.new_zeros(batch, n, *self.logits.shape[2:])
        for k, component in enumerate(self.components):
            is_chosen = chosen == k
            ranks = is_chosen.cumsum(1) - 1
            if (count := int(ranks.max()) + 1) > 0:
                outputs = component.sample(count).to(samples.dtype)
                rows, columns = is_chosen.nonzero(as_tuple=True)
                samples[rows, columns] = outputs[rows, ranks[rows, columns]]
        return samples

    def log_prob(self, y: Tensor) -> Tensor:
        log_probs = torch.stack([component.log_prob(y) for component in self.components])
        return torch.logsumexp(_align(self.log_weights, 2) + log_probs, 0)

    def label_powers(self, t: Tensor) -> Tensor | None:
        """The mean of the components' label powers."""
        parts = [component.label_powers(t) for component in self.components]
        if any(part is None for part in parts):
            return None
        return (_align(self.log_weights.detach().exp(), 3) * torch.stack(parts)).sum(0)

    def tempered(self, temperature: float) -> Mixture:
        """The mixture of the components at this temperature, with weights ∝ π_k^(1/T)."""
        components = [component.tempered(temperature) for component in self.components]
        return type(self).of(components, self.log_weights / temperature, chosen=self.chosen)

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> Mixture:
        components = tuple(component.map_rows(change) for component in self.components)
        weights = self.log_weights.expand(self.logits.shape[0], -1)
        return replace(super().map_rows(change), components=components, log_weights=change(weights))

    def detach(self) -> Mixture:
        components = tuple(component.detach() for component in self.components)
        return replace(super().detach(), components=components, log_weights=self.log_weights.detach())

    @cached_property
    def _closest_independent(self) -> Proposal:
        return self.space.independent(self.logits, self.mask)


def average(proposals: Sequence[Proposal]) -> Proposal:
    """The mean of the distributions; a single one is returned as it is."""
    return proposals[0] if len(proposals) == 1 else Mixture.of(proposals)


def _align(weights: Tensor, dim: int) -> Tensor:
    """Weights `(component,)` or `(batch, component)` as `(component, batch or 1, …)` of `1 + dim` axes."""
    weights = weights.reshape(-1, weights.shape[-1]).t()
    return weights[(..., *[None] * (dim - 1))]


def _average_means(components: Sequence[Proposal], log_weights: Tensor) -> Tensor:
    means = torch.stack([component.mean for component in components])
    return (_align(log_weights.exp(), means[0].dim()) * means).sum(0)


def _compute_mean_logits(space: OutputSpace, components: Sequence[Proposal], log_weights: Tensor) -> Tensor:
    """Logits of independent variables with the mean of the components, in log space: small probabilities are exact."""
    if not space.discrete:
        return _average_means(components, log_weights)
    log_p, log_complement = (torch.stack(parts) for parts in zip(*map(_compute_log_means, components), strict=True))
    weights = _align(log_weights, log_p[0].dim())
    log_on = torch.logsumexp(weights + log_p, 0)
    return log_on if space.simplex else log_on - torch.logsumexp(weights + log_complement, 0)


def _compute_log_means(component: Proposal) -> tuple[Tensor, Tensor]:
    """ln of the mean and ln of one minus the mean, of the mean's shape; for a simplex, the second repeats the first."""
    space, logits = component.space, at_least_float32(component.logits)
    if type(component) is type(space.independent(component.logits, component.mask)):
        if space.simplex:
            return (log_p := logits.log_softmax(-1)), log_p
        return F.logsigmoid(logits), F.logsigmoid(-logits)
    if isinstance(component, Mixture):  # its logits are its mean's
        return _compute_log_means(component._closest_independent)
    mean = at_least_float32(component.mean)
    tiny = torch.finfo(mean.dtype).tiny
    return mean.clamp(min=tiny).log(), (1 - mean).clamp(min=tiny).log()
