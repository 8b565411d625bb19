"""The energy `star`: label sets with potentials on a star and a global term (Graber & Schwing 2019)."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_gspen.beliefs import Beliefs
from spen_plugins.nn import Star, at_least_float32, find_hubs, require_label_sets


class StarGraph(sp.Energy):
    """E(x, y) = −Σ_i s_i(x) y_i − Σ_h Σ_i w_hi(x) y_h y_i − T(y), with T(y) = vᵀ softplus(M y).

    For beliefs μ over labels and pairs, `belief_energy` is −⟨(s, w), μ⟩ − T(μ of labels) − ε H(μ). For a relaxed y,
    `forward` uses the pairs of independent labels and no entropy; for label sets both are equal. The pairs are two
    layers on the features, and start from 0, like T.

    Raises:
        ConfigError: the outputs are not label sets, or a hub is not a label.
    """

    uses_features = True

    class Config(sp.Config):
        hubs: Annotated[int, Field(ge=1, le=4)] | Annotated[list[str], Field(min_length=1, max_length=4)] = 1
        """Labels that have pairs with all others: their number, to choose those of most mutual information with the
        others in the training part; or their names."""
        pair_hidden: int = Field(400, ge=1)
        """Width of the layer between the features and the pairs."""
        hidden: int = Field(16, ge=1)
        """Rows of M."""
        entropy: float = Field(1.0, gt=0)
        """ε, weight of the entropy."""

    config: Config

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_label_sets(self)
        labels, width = self.space.shape[0], features.output_dim
        self.register_buffer("hubs", self._choose_hubs(task))
        self.local = nn.Linear(width, labels, bias=False)
        last = nn.Linear(config.pair_hidden, len(self.hubs) * labels)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.pairs = nn.Sequential(nn.Linear(width, config.pair_hidden), nn.ReLU(), last)
        self.measure = nn.Linear(labels, config.hidden, bias=False)
        self.v = nn.Parameter(torch.zeros(config.hidden))

    def encode(self, x: sp.X) -> Star:
        """The potentials s, `(batch, label)`, and w, `(batch, hub, label)`."""
        features = self.features(x)
        pairs = self.pairs(features).unflatten(1, (len(self.hubs), -1))
        return Star(at_least_float32(self.local(features)), at_least_float32(pairs), self.hubs)

    def forward(self, features: Star, y: Tensor) -> Tensor:
        return -features.score(y) - self.score_globally(y)

    def score_globally(self, y: Tensor) -> Tensor:
        """T(y), `(…, label)` -> `(…,)`."""
        with torch.autocast(self.v.device.type, enabled=False):
            return F.softplus(self.measure(at_least_float32(y))) @ at_least_float32(self.v)

    def global_slope(self, y: Tensor) -> Tensor:
        """∇T(y) = Mᵀ (v · σ(M y)), of y's shape."""
        return (torch.sigmoid(self.measure(y)) * self.v) @ self.measure.weight

    def belief_energy(self, features: Star, beliefs: Beliefs) -> Tensor:
        """E(x, μ), `(batch,)`."""
        linear = beliefs.expect(features) + self.score_globally(beliefs.labels)
        return -linear - self.config.entropy * beliefs.entropy()

    def _choose_hubs(self, task: sp.Task) -> Tensor:
        names = self.config.hubs
        if isinstance(names, int):
            return find_hubs(task, len(self.space.labels), names)
        for name in names:
            if names.count(name) > 1:
                raise sp.ConfigError(f"energy.hubs: found {name!r} twice; expected each label once")
            if name not in self.space.labels:
                raise sp.ConfigError(f"energy.hubs: unknown label {name!r}.{sp.did_you_mean(name, self.space.labels)}")
        return torch.tensor([self.space.labels.index(name) for name in names])
