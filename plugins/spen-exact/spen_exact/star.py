"""Energy and inference net `star`: label sets with pairs of each label and a few hubs."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor, nn

from spen_exact.label_scores import LabelScoresConfig, StructuredEnergy, make_scores
from spen_plugins import BoundEnergy, Component, Config, FeatureNetwork, InferenceNet, Proposal, Task, X
from spen_plugins.nn import Star, StarLabels, at_least_float32, find_hubs


class HubsConfig(Config):
    """Settings of the hubs."""

    hubs: int = Field(4, ge=1, le=4)
    """Number of labels that have pairs with all others."""


class StarConfig(HubsConfig, LabelScoresConfig):
    """Settings of the net `star`."""


def make_pairs(component: Component, task: Task, count: int) -> nn.Linear:
    """Returns the layer of w_hi(x), which start from 0; sets the component's buffer `hubs`."""
    labels = len(component.space.labels)
    component.register_buffer("hubs", find_hubs(task, labels, count))
    layer = nn.Linear(component.features.output_dim, len(component.hubs) * labels)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class StarNet(InferenceNet):
    """q(y | x) ∝ exp(Σ_i s_i(x) y_i + Σ_h Σ_i w_hi(x) y_h y_i), with at most four hubs h; the graph of GSPEN
    (Graber & Schwing 2019) has one."""

    uses_features = True
    Config = StarConfig

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.output = make_scores(self, config.bias)
        self.pairs = make_pairs(self, task, config.hubs)

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        features = self.features(x)
        logits = self.output(features).unsqueeze(1)
        pairs = self.pairs(features).unflatten(1, (len(self.hubs), -1))
        return StarLabels(self.space, logits, features=features, pairs=pairs, hubs=self.hubs)


class StarEnergy(StructuredEnergy):
    """E(x, y) = −Σ_i s_i(x) y_i − Σ_h Σ_i w_hi(x) y_h y_i, linear in each label of a relaxed y."""

    Config = HubsConfig

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.local = make_scores(self)
        self.pairs = make_pairs(self, task, config.hubs)

    def encode(self, x: X) -> Star:
        features = self.features(x)
        pairs = self.pairs(features).unflatten(1, (len(self.hubs), -1))
        return Star(at_least_float32(self.local(features)), at_least_float32(pairs), self.hubs)

    def forward(self, features: Star, y: Tensor) -> Tensor:
        return -features.score(y)

    def distribution(self, features: Star) -> Proposal:
        return StarLabels(self.space, features.scores.unsqueeze(1), pairs=features.pairs, hubs=features.hubs)
