"""Feature network `mlp`: features of multi-label energies and nets (Lee et al. 2022, Sec. 4.1 and released configs)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.settings.config import Config
from spen_plugins.spaces.sparse import Lists
from spen_plugins.task import Task, VectorInputs

Dropout = Annotated[float, Field(ge=0, lt=1)]


class Layers(Config):
    """Layers of linear, softplus, dropout."""

    hidden: list[PositiveInt] = Field([400, 400], min_length=1)
    """Width of each layer."""
    dropout: Dropout | list[Dropout] = 0.0
    """Dropout after each softplus: one number per layer, or one for all but the last (which has none)."""

    @model_validator(mode="after")
    def _check_dropout(self) -> Layers:
        if isinstance(self.dropout, list) and len(self.dropout) != len(self.hidden):
            layers = len(self.hidden)
            raise ValueError(f"dropout: found {len(self.dropout)} numbers; expected one, or one per layer ({layers})")
        return self


class Mlp(FeatureNetwork):
    """Layers of linear, softplus, dropout; `(batch, size)` -> `(batch, hidden[-1])`.

    Weights are Kaiming-uniform with the gain of ReLU, biases zero. If inputs are binary or sparse, the first layer sums
    the weight rows of the non-zero inputs, so zeros cost nothing and no dense batch is formed.
    """

    Config = Layers

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__(config, task)
        if not isinstance(task.inputs, VectorInputs):
            raise ConfigError(
                "features 'mlp' requires vectors (task 'multilabel'), but this task has other inputs; "
                "use 'bilstm' or 'transformer' for sentences, 'ngrams' for texts"
            )
        size, width = task.inputs.size, config.hidden[0]
        self.first = BagLinear(size, width) if task.inputs.listed else _make_linear(size, width)
        self.rest = make_rest(config)
        self.output_dim = config.hidden[-1]

    def forward(self, x: X) -> Tensor:
        if isinstance(self.first, BagLinear):
            return self.rest(self.first(x.inputs["indices"], x.inputs["offsets"], x.inputs.get("values")))
        return self.rest(self.first(x.inputs["vector"]))


class BagLinear(nn.Module):
    """A linear layer on sparse vectors: the indices of non-zero entries, and their values if not all are 1.

    `weight` is `(before, after)`, a row per input, the transpose of `nn.Linear`'s.
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        bound = math.sqrt(6.0 / max(before, 1))
        self.weight = nn.Parameter(torch.empty(before, after).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(after))

    def forward(self, indices: Tensor, offsets: Tensor, values: Tensor | None = None) -> Tensor:
        """indices and values `(total,)`, offsets `(batch,)` (start of each row) -> `(batch, after)`."""
        return Lists(indices, offsets, self.weight.shape[0], values).sums(self.weight) + self.bias


def make_rest(config: Layers) -> nn.Sequential:
    """All modules after the first linear layer."""
    layers: list[nn.Module] = []
    setting = config.dropout
    rates = setting if isinstance(setting, list) else [setting] * (len(config.hidden) - 1) + [0.0]
    for i, (width, dropout) in enumerate(zip(config.hidden, rates, strict=True)):
        if i:
            layers.append(_make_linear(config.hidden[i - 1], width))
        layers.append(nn.Softplus())
        if dropout > 0:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)


def _make_linear(input_size: int, output_size: int) -> nn.Linear:
    layer = nn.Linear(input_size, output_size)
    nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)
    return layer
