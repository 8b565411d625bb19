"""Energy and inference net `counts`: label sets with a free potential on the number of labels."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from spen_exact.counted import CountedLabels, potential
from spen_exact.label_scores import LabelScoresConfig, StructuredEnergy, make_scores
from spen_plugins import BoundEnergy, FeatureNetwork, InferenceNet, Proposal, Task, X
from spen_plugins.nn import at_least_float32, inner_product

MORE = 2
"""Number of sizes above the largest one in the training part that have their own potential."""


def make_counts(component: nn.Module) -> nn.Linear:
    """Returns the layer of c_0(x), c_1(x), …, which start from 0. Sizes above the cap, the largest set in training plus
    two, share the last one, so that no set has probability 0."""
    labels, largest = len(component.space.labels), component.space.largest
    last_size = labels if largest is None else min(labels, largest + MORE + 1)
    layer = nn.Linear(component.features.output_dim, last_size + 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class Counts(InferenceNet):
    """q(y | x) ∝ exp(Σ_i s_i(x) y_i + c_|y|(x)) (Tarlow et al. 2012; Swersky et al. 2012)."""

    uses_features = True
    Config = LabelScoresConfig

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.output = make_scores(self, config.bias)
        self.counts = make_counts(self)

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        features = self.features(x)
        logits = self.output(features).unsqueeze(1)
        return CountedLabels(self.space, logits, features=features, counts=self.counts(features))


class CountsEnergy(StructuredEnergy):
    """E(x, y) = −Σ_i s_i(x) y_i − c_|y|(x); for a relaxed y, with the expectation of c under independent labels with
    these means, its multilinear extension."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.local = make_scores(self)
        self.counts = make_counts(self)

    def encode(self, x: X) -> tuple[Tensor, Tensor]:
        features = self.features(x)
        return self.local(features), at_least_float32(self.counts(features))

    def forward(self, features: tuple[Tensor, Tensor], y: Tensor) -> Tensor:
        scores, counts = features
        return -inner_product(scores, y) - potential(counts, y)

    def distribution(self, features: tuple[Tensor, Tensor]) -> Proposal:
        scores, counts = features
        return CountedLabels(self.space, scores.unsqueeze(1), counts=counts)
