"""Energy and inference net `hierarchy`: label sets in which a label implies its parent."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from spen_exact.coherent import CoherentLabels
from spen_exact.label_scores import LabelScoresConfig, StructuredEnergy, make_scores
from spen_plugins import BoundEnergy, Component, ConfigError, FeatureNetwork, InferenceNet, Proposal, Task, X
from spen_plugins.nn import inner_product, training_labels


def check_hierarchy(component: Component, task: Task) -> None:
    """Raises `ConfigError` unless the labels have a hierarchy, and all gold of the training part obeys it."""
    forest = component.space.forest
    if forest is None:
        raise ConfigError(
            f"{type(component).__name__} requires a label hierarchy, and the data has none; set task.hierarchy=FILE, "
            "a file of lines 'child parent', or use another method"
        )
    violations, pair = 0, None
    for gold in training_labels(task):
        is_violated = gold[:, forest.children] & ~gold[:, forest.above]
        if is_violated.any():
            violations += int(is_violated.any(1).sum())
            edge = int(is_violated.any(0).int().argmax())
            pair = pair or (forest.names[int(forest.children[edge])], forest.names[int(forest.above[edge])])
    if pair is not None:
        raise ConfigError(
            f"{type(component).__name__}: {violations} training examples have a label without its parent, such as "
            f"{pair[0]!r} without {pair[1]!r}; add the parents"
        )


class Hierarchy(InferenceNet):
    """q(y | x) ∝ exp(Σ_i s_i(x) y_i) over sets that have each label's parent (Ahmed et al. 2022, on a forest)."""

    uses_features = True
    Config = LabelScoresConfig

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.output = make_scores(self, config.bias)
        check_hierarchy(self, task)

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        features = self.features(x)
        return CoherentLabels(self.space, self.output(features).unsqueeze(1), features=features)


class HierarchyEnergy(StructuredEnergy):
    """E(x, y) = −Σ_i s_i(x) y_i, with ln Z over the sets that have each label's parent. All other sets have
    probability 0: their energy only interpolates between coherent sets."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.local = make_scores(self)
        check_hierarchy(self, task)

    def encode(self, x: X) -> Tensor:
        return self.local(self.features(x))

    def forward(self, features: Tensor, y: Tensor) -> Tensor:
        return -inner_product(features, y)

    def distribution(self, features: Tensor) -> Proposal:
        return CoherentLabels(self.space, features.unsqueeze(1))
