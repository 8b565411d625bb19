"""Energy and inference net `star`: label sets with pairs of each label and a few hubs."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from spen_exact.label_scores import LabelScoresConfig, StructuredEnergy, make_scores
from spen_exact.training_labels import training_labels
from spen_plugins import BoundEnergy, Component, Config, FeatureNetwork, InferenceNet, Proposal, Task, X
from spen_plugins.nn import Star, StarLabels, at_least_float32


class HubsConfig(Config):
    """Settings of the hubs."""

    hubs: int = Field(4, ge=1, le=4)
    """Number of labels of which there are pairs with all others."""


class StarConfig(HubsConfig, LabelScoresConfig):
    """Settings of the net `star`."""


def find_hubs(task: Task, labels: int, count: int) -> Tensor:
    """The hubs, `(hub,)`: one after the other, each adds most to Σ_i max_h I(y_h; y_i), the mutual information of
    labels in the training part. The first labels without a training part, as of a restored task."""
    total, on, both = 0, torch.zeros(labels, dtype=torch.double), torch.zeros(labels, labels, dtype=torch.double)
    for gold in training_labels(task):
        y = gold.double().cpu()
        total, on, both = total + len(y), on + y.sum(0), both + y.t() @ y
    information = mutual_information(both, on, max(total, 1))
    covered, hubs = torch.zeros(labels, dtype=torch.double), torch.zeros(labels, dtype=torch.bool)
    chosen: list[int] = []
    for _ in range(min(count, labels)):
        gain = (torch.maximum(information, covered) - covered).sum(1).masked_fill(hubs, -torch.inf)
        chosen.append(int(gain.argmax()))
        hubs[chosen[-1]] = True
        covered = torch.maximum(covered, information[chosen[-1]])
    return torch.tensor(chosen)


def mutual_information(both: Tensor, on: Tensor, total: int) -> Tensor:
    """I(y_i; y_j) in nats, 0 of a label with itself, from the counts of pairs and labels among `total` examples:
    `(label, label)`."""
    of_first = on.unsqueeze(1)
    joint = torch.stack([both, of_first - both, on - both, total - of_first - on + both]).clamp(min=0) / total
    p, q = of_first / total, on / total
    apart = torch.stack([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
    information = torch.where(joint > 0, joint * (joint / apart.clamp(min=1e-300)).log(), 0.0).sum(0)
    return information.fill_diagonal_(0)


def make_pairs(component: Component, task: Task, count: int) -> nn.Linear:
    """The layer of w_hi(x), which start from 0; sets the component's buffer `hubs`."""
    labels = len(component.space.labels)
    component.register_buffer("hubs", find_hubs(task, labels, count))
    layer = nn.Linear(component.features.output_dim, len(component.hubs) * labels)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class StarNet(InferenceNet):
    """q(y | x) ∝ exp(Σ_i s_i(x) y_i + Σ_h Σ_i w_hi(x) y_h y_i), h running over at most four hubs, as the graph of
    GSPEN (Graber & Schwing 2019) has one."""

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
