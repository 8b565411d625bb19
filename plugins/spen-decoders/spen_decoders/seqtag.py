"""Inference net `seqtag`: reads labels as words after the text, and tags each as on or off."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from spen_decoders.chain import LabelChain
from spen_decoders.orders import order_by_frequency
from spen_decoders.reading import LabelsAsWords
from spen_plugins import BoundEnergy, Component, Config, ConfigError, FeatureNetwork, InferenceNet, Proposal, Task, X


def require_labels(net: Component, kind: str) -> None:
    """Raises `ConfigError` unless the net's features read labels."""
    if not isinstance(net.features, LabelsAsWords):
        raise ConfigError(
            f"inference_net 'decoders.{kind}' requires features 'decoders.labels_as_words'; found "
            f"{type(net.features).__name__}. Use "
            '"features": {"type": "decoders.labels_as_words", "reader": {"type": "bilstm"}}'
        )


class SeqTag(InferenceNet):
    """The logit of a label is a linear function of its vector, the same for all labels. With `chain`, labels in the
    order of their frequency are a chain (a CRF with two tags), as in the baseline of Zhang et al. 2021."""

    uses_features = True

    class Config(Config):
        chain: bool = False
        """If true, neighbouring labels, the frequent ones first, depend on each other by transitions that all share;
        otherwise labels are independent given the text."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_labels(self, "seqtag")
        self.output = nn.Linear(features.output_dim, 1)
        if config.chain:
            self.transitions = nn.Parameter(torch.empty(2, 2).uniform_(-0.1, 0.1))
            self.register_buffer("order", order_by_frequency(task))

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        features = self.features(x)
        logits = self.output(features).squeeze(2).unsqueeze(1)
        if not self.config.chain:
            return self.space.independent(logits, features=features)
        return LabelChain(self.space, logits, features=features, transitions=self.transitions, order=self.order)
