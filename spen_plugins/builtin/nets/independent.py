"""Inference net `independent`: a linear layer on features, variables independent given x."""

from __future__ import annotations

from typing import Any

from torch import nn

from spen_plugins.batch import X
from spen_plugins.energy import BoundEnergy
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet
from spen_plugins.nn import output_size
from spen_plugins.settings.config import Config
from spen_plugins.spaces import LabelSet, Proposal
from spen_plugins.task import Task


class Independent(InferenceNet):
    """Logits `(batch, 1, *variables)`: label embeddings times features (Lee et al. 2022, Sec. 4.1)."""

    uses_features = True

    class Config(Config):
        bias: bool | None = None
        """If true, the output layer has a bias; null: none for labels (as in SEAL's released code), one for tags."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        assert features is not None
        bias = config.bias if config.bias is not None else not isinstance(task.space, LabelSet)
        self.output = nn.Linear(features.output_dim, output_size(self), bias=bias)

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        features = self.features(x)
        return self.space.independent(self.output(features).unsqueeze(1), x.mask, features=features)
