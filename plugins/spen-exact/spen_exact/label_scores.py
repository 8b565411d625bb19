"""The scores of single labels, which all structures over label sets share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from spen_plugins import Component, Config, Energy, Proposal
from spen_plugins.nn import require_label_sets


class LabelScoresConfig(Config):
    """Settings of the scores of single labels."""

    bias: bool = False
    """If true, the layer of the scores has a bias."""


def make_scores(component: Component, bias: bool = False) -> nn.Linear:
    """The layer of the scores s_i(x), on the component's features.

    Raises:
        ConfigError: the outputs are not label sets.
    """
    require_label_sets(component)
    assert component.features is not None
    return nn.Linear(component.features.output_dim, len(component.space.labels), bias=bias)


class StructuredEnergy(Energy, ABC):
    """An energy whose p ∝ exp(−E) is a distribution with exact sums."""

    uses_features = True

    @abstractmethod
    def distribution(self, features: Any) -> Proposal:
        """p(y | x), given `encode(x)`."""

    def log_z(self, features: Any) -> Tensor:
        return self.distribution(features).log_z

    def marginals(self, features: Any) -> Tensor:
        return self.distribution(features).mean

    def modes(self, features: Any, shift: Tensor) -> Tensor:
        p = self.distribution(features).map_rows(lambda values: values.repeat_interleave(shift.shape[1], 0))
        return replace(p, logits=p.logits + shift.flatten(0, 1).unsqueeze(1), _kept={}).mode.view_as(shift)
