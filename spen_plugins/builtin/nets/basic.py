"""Basic inference nets: independent variables, the mean of several nets, and a choice among candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from spen_plugins.batch import ChoiceInputs, X
from spen_plugins.component import NamedParts
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet, join_nets
from spen_plugins.nn import output_size
from spen_plugins.settings.config import Config
from spen_plugins.spaces import LabelSet, Proposal
from spen_plugins.spaces.mixture import average
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


class Mean(InferenceNet):
    """q(y | x) = 1/K Σ_k q_k(y | x) of the nets in `nets`, under names of your choice (Hansen & Salamon 1990).

    `spen decode RUNS OUT --mean` makes one from finished runs. In training, the nets learn together, as a mixture.
    """

    parts: ClassVar[Mapping[str, str]] = {"nets": "inference_net*"}

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, nets: NamedParts | None = None
    ) -> None:
        super().__init__(config, task, features)
        missing = (
            "inference_net 'mean' found no nets; expected a table of named inference nets, such as "
            '"nets": {"a": {"type": "independent"}, "b": {"type": "independent"}}'
        )
        self.nets = join_nets(nets, "inference_net.nets", missing)

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        return average([net(x) for net in self.nets.values()])


IMPOSSIBLE = -1e4
"""Logit of a place without a candidate: its probability is 0, and results stay finite."""


class Choice(InferenceNet):
    """Logits `(batch, 1, 1, place)` of the marked word's candidates: the product of a candidate's vector and the
    word's, plus its bias. Both are sums over the candidate's attributes, so new candidates have them too."""

    uses_features = True

    class Config(Config):
        dim: int = Field(128, ge=1)
        """Width of the attributes' vectors."""
        dropout: float = Field(0.3, ge=0, lt=1)
        """Dropout of the word's vector, and share of attributes that training drops."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        assert features is not None
        inputs = task.inputs
        if not isinstance(inputs, ChoiceInputs):
            raise ConfigError("inference_net 'choice' requires candidates, but this task has other inputs")
        self._mark = next(iter(inputs.marks))
        self.query = nn.Linear(features.output_dim, config.dim)
        self.vectors = nn.Embedding(len(inputs.attributes) + 2, config.dim, padding_idx=0)
        self.biases = nn.Embedding(len(inputs.attributes) + 2, 1, padding_idx=0)
        nn.init.normal_(self.vectors.weight, std=0.1)
        nn.init.zeros_(self.biases.weight)
        with torch.no_grad():
            self.vectors.weight[0].zero_()

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        h = self.features(X(x.inputs, x.inputs["words"] > 0, x.size))
        rows = torch.arange(x.size, device=h.device)
        words = nn.functional.dropout(h[rows, x.inputs[self._mark].argmax(1)], self.config.dropout, self.training)
        query = self.query(words)
        candidates = x.inputs["candidates"]
        row, place = (candidates[..., 0] > 0).nonzero(as_tuple=True)
        attributes = self._drop(candidates[row, place])
        products = (query[row] * self.vectors(attributes).sum(1)).sum(-1)
        scores = products + self.biases(attributes).sum(1).squeeze(-1)
        logits = scores.new_full((x.size, self.space.shape[-1]), IMPOSSIBLE)
        logits = logits.index_put((row, place), scores)
        return self.space.independent(logits[:, None, None], x.mask)

    def _drop(self, attributes: Tensor) -> Tensor:
        """Attributes `(candidate, attribute)`, in training with a share of them left out."""
        if not self.training or not self.config.dropout:
            return attributes
        return attributes.masked_fill(torch.rand(attributes.shape, device=attributes.device) < self.config.dropout, 0)
