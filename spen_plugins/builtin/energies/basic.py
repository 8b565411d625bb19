"""Energies every structure can start from: local ones, and the linear chain."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.component import Component
from spen_plugins.config.config import Config
from spen_plugins.energy import Energy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.spaces import LabelSet, SparseLabels, TagSequence
from spen_plugins.spaces.base import full, inner
from spen_plugins.task import Task

MANY_LABELS = 2000
"""From so many labels on, what a step costs is the rows of all labels that it touches: only those needed are."""


class Local(Energy):
    """E(x, y) = −Σ_i y_i b_iᵀ T_E(x): each variable on its own (Belanger & McCallum 2016; SEAL, Eq. 2, the local part).

    For labels, i runs over labels; for tag sequences over the tags of every token that exists.
    """

    uses_features = True
    takes_sparse = True

    def __init__(self, config: Config, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.local = local_scores(self)

    def encode(self, x: X) -> Tensor | LateScores:
        return encoded_scores(self, x)

    def forward(self, features: Tensor | LateScores, y: Tensor | SparseLabels) -> Tensor:
        return -local_part(features, y)


class LinearChain(Energy):
    """E(x, y) = −Σ_t y_tᵀ B T_E(x)_t − Σ_t y_{t−1}ᵀ W y_t, with a start and an end (Tu, Pang & Gimpel 2020, Eq. 7).

    W, the start and the end are drawn from U(−0.02, 0.02).
    """

    uses_features = True

    def __init__(self, config: Config, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        need_tags(self)
        tags = self.space.shape[-1]
        self.local = local_scores(self)
        self.pairs = nn.Parameter(torch.empty(tags, tags).uniform_(-0.02, 0.02))
        self.start = nn.Parameter(torch.empty(tags).uniform_(-0.02, 0.02))
        self.end = nn.Parameter(torch.empty(tags).uniform_(-0.02, 0.02))

    def encode(self, x: X) -> tuple[Tensor, Tensor | None]:
        """Start and end are linear in y too, so they join the local scores."""
        scores, mask = masked_scores(self, x), x.mask
        here = torch.ones_like(scores[..., 0]) if mask is None else mask.to(scores)
        following = torch.nn.functional.pad(here[:, 1:], (0, 1))
        preceding = torch.nn.functional.pad(here[:, :-1], (1, 0))
        first, last = here * (1 - preceding), here * (1 - following)
        return scores + first.unsqueeze(-1) * self.start + last.unsqueeze(-1) * self.end, mask

    def forward(self, features: tuple[Tensor, Tensor | None], y: Tensor) -> Tensor:
        scores, mask = features
        pair = full((y[:, :, :-1] @ self.pairs) * y[:, :, 1:]).sum(-1)
        if mask is not None:
            pair = pair * mask[:, None, 1:]
        return -inner(scores, y) - pair.sum(-1)


def local_scores(component: Component) -> nn.Linear:
    """The b_i of a local energy: from the component's features to one score per label or tag, without bias."""
    assert component.features is not None
    return nn.Linear(component.features.output_dim, component.space.shape[-1], bias=False)


def masked_scores(component: Component, x: X) -> Tensor:
    """Local scores of x, `(batch, *variables)`, zero on padding: the part of a local energy that y doesn't change."""
    scores = component.local(component.features(x))
    return scores if x.mask is None else scores * x.mask.unsqueeze(-1)


class LateScores:
    """Local scores of many labels: those of the labels in bags where outputs are bags, all of them at first need.

    Args:
        vectors: T(x), `(batch, size)`.
        local: its weight has a row b_i per label.
    """

    def __init__(self, vectors: Tensor, local: nn.Linear) -> None:
        self.vectors, self.local = vectors, local
        self._gradients = torch.is_grad_enabled()

    @cached_property
    def all(self) -> Tensor:
        """`(batch, label)`."""
        with torch.set_grad_enabled(self._gradients):
            return self.local(self.vectors)

    def sums(self, bags: SparseLabels) -> Tensor:
        """Σ_i y_i b_iᵀ T(x), `(batch, sample)`: the b_i of a bag are added up before T(x) is multiplied."""
        return inner(self.vectors, bags.vectors(self.local.weight).view(*bags.shape[:2], -1))


def encoded_scores(component: Component, x: X) -> Tensor | LateScores:
    """As `masked_scores`, but late where there are many labels; `local_part` takes either."""
    if isinstance(component.space, LabelSet) and len(component.space.labels) >= MANY_LABELS:
        return LateScores(component.features(x), component.local)
    return masked_scores(component, x)


def local_part(scores: Tensor | LateScores, y: Tensor | SparseLabels) -> Tensor:
    """Σ over variables of y · scores, `(batch, sample)`."""
    if isinstance(y, SparseLabels):
        return scores.sums(y) if isinstance(scores, LateScores) else y.sums(full(scores))
    return inner(scores.all if isinstance(scores, LateScores) else scores, y)


def need_tags(component: Component) -> None:
    """`ConfigError` unless the task's outputs are tag sequences."""
    if not isinstance(component.space, TagSequence):
        raise ConfigError(
            f"{type(component).__name__} scores tag sequences, but the outputs are {type(component.space).__name__}; "
            "choose a task with tag sequences, or another energy (core.local takes every task)"
        )
