"""The local part of an energy: a score for each label, or for each tag of each token, from features of x alone."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.component import Component
from spen_plugins.errors import ConfigError
from spen_plugins.spaces import LabelSet, SparseLabels, TagSequence
from spen_plugins.spaces.base import at_least_float32, inner_product

MANY_LABELS = 2000
"""From this number of labels on, only the needed rows of labels are computed, as they dominate a step's cost."""


def local_layer(component: Component) -> nn.Linear:
    """The b_i of a local energy: a bias-free linear layer from the component's features to scores of labels or tags."""
    assert component.features is not None
    return nn.Linear(component.features.output_dim, output_size(component), bias=False)


def output_size(component: Component) -> int:
    """Number of labels, or of tags: the size of the outputs' last axis. Raises a `ConfigError` if it differs between
    batches, as for images."""
    size = component.space.shape[-1]
    if size is None:
        raise ConfigError(
            f"{type(component).__name__} requires a known number of labels or tags, but the outputs are "
            f"{type(component.space).__name__}; choose another task, or a component for such outputs"
        )
    return size


def local_scores(component: Component, x: X) -> Tensor:
    """Local scores of x, `(batch, *variables)`, zero on padding: the y-independent part of a local energy."""
    scores = component.local(component.features(x))
    return scores if x.mask is None else scores * x.mask.unsqueeze(-1)


class LazyScores:
    """Local scores of many labels: computed only for the labels in sparse outputs, for all labels at first need.

    Args:
        vectors: T(x), `(batch, size)`.
        local: linear layer whose weight has a row b_i per label.
    """

    def __init__(self, vectors: Tensor, local: nn.Linear) -> None:
        self.vectors, self.local = vectors, local
        self._is_recording = torch.is_grad_enabled()

    @cached_property
    def all(self) -> Tensor:
        """`(batch, label)`."""
        with torch.set_grad_enabled(self._is_recording):
            return self.local(self.vectors)

    def sums(self, bags: SparseLabels) -> Tensor:
        """Σ_i y_i b_iᵀ T(x), `(batch, sample)`: the b_i of a label set are summed before the product with T(x)."""
        return inner_product(self.vectors, bags.vectors(self.local.weight).view(*bags.shape[:2], -1))


def lazy_scores(component: Component, x: X) -> Tensor | LazyScores:
    """The scores of `local_scores`, but lazy if there are many labels; `local_sum` takes either."""
    if isinstance(component.space, LabelSet) and len(component.space.labels) >= MANY_LABELS:
        return LazyScores(component.features(x), component.local)
    return local_scores(component, x)


def local_sum(scores: Tensor | LazyScores, y: Tensor | SparseLabels) -> Tensor:
    """Σ over variables of y · scores, `(batch, sample)`."""
    if isinstance(y, SparseLabels):
        return scores.sums(y) if isinstance(scores, LazyScores) else y.sums(at_least_float32(scores))
    return inner_product(scores.all if isinstance(scores, LazyScores) else scores, y)


def require_tags(component: Component) -> None:
    """Raise `ConfigError` unless the task's outputs are tag sequences."""
    if not isinstance(component.space, TagSequence):
        raise ConfigError(
            f"{type(component).__name__} scores tag sequences, but the outputs are {type(component.space).__name__}; "
            "choose a task with tag sequences, or another energy (core.local also scores label sets)"
        )


def require_label_sets(component: Component) -> None:
    """Raises `ConfigError` unless the task's outputs are label sets."""
    if not isinstance(component.space, LabelSet):
        raise ConfigError(
            f"{type(component).__name__} requires label sets as outputs (tasks 'multilabel', 'text'); found "
            f"{type(component.space).__name__}. Use another method"
        )
