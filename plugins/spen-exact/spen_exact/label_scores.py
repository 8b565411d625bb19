"""The scores of single labels, which all structures over label sets have."""

from __future__ import annotations

from torch import nn

from spen_plugins import Component, Config, ConfigError, LabelSet


class LabelScoresConfig(Config):
    """Settings of the scores of single labels."""

    bias: bool = False
    """If true, the layer of the scores has a bias."""


def make_scores(component: Component, bias: bool = False) -> nn.Linear:
    """The layer of the scores s_i(x), on the component's features.

    Raises:
        ConfigError: the outputs are no label sets.
    """
    if not isinstance(component.space, LabelSet):
        raise ConfigError(
            f"{type(component).__name__} is for label sets (tasks 'multilabel', 'text'), and these outputs are "
            f"{type(component.space).__name__}; choose another inference net or energy"
        )
    assert component.features is not None
    return nn.Linear(component.features.output_dim, len(component.space.labels), bias=bias)
