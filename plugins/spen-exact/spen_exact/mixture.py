"""Inference net `mixture`: a conditional Bernoulli mixture over label sets (Li et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from spen_exact.label_scores import LabelScoresConfig, make_scores
from spen_plugins import BoundEnergy, FeatureNetwork, InferenceNet, Mixture, Proposal, Task, X
from spen_plugins.nn import take_vectors

CANDIDATES = 16
"""Minimal number of each component's best sets from which the mixture's best ones are chosen."""


@dataclass(frozen=True)
class LabelMixture(Mixture):
    """A mixture of independent labels whose `mode` is approximate: the most probable of the components' best sets.

    Likewise, `k_best` has the k most probable of the components' k best sets, at least 16 of each.
    """

    @cached_property
    def mode(self) -> Tensor:
        return self.k_best(1)[0]

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            best = [component.k_best(max(k, CANDIDATES)) for component in self.components]
            y = torch.cat([sets for sets, _ in best], 1)
            exists = torch.cat([log_q for _, log_q in best], 1) > -torch.inf
            sizes, overlaps = y.sum(2), y @ y.transpose(1, 2)
            is_equal = sizes.unsqueeze(1) + sizes.unsqueeze(2) - 2 * overlaps < 0.5
            is_first = ~is_equal.tril(-1).any(2)
            log_q = self.log_prob(y).masked_fill(~(exists & is_first), -torch.inf)
            log_q, indices = log_q.topk(k, 1)
            indices = torch.where(log_q == -torch.inf, indices[:, :1], indices)
            return take_vectors(y, indices), log_q


class MixtureConfig(LabelScoresConfig):
    """Settings of the net `mixture`."""

    components: int = Field(4, ge=1, le=100)
    """Number of components, each of independent labels."""


class LabelMixtureNet(InferenceNet):
    """q(y | x) = Σ_k π_k(x) Π_i Bernoulli(y_i; p_ik(x)), all from one feature network."""

    uses_features = True
    Config = MixtureConfig

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.output = nn.ModuleList(make_scores(self, config.bias) for _ in range(config.components))
        self.weights = nn.Linear(features.output_dim, config.components)

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        features = self.features(x)
        components = [self.space.independent(layer(features).unsqueeze(1)) for layer in self.output]
        return LabelMixture.of(components, self.weights(features), features=features)
