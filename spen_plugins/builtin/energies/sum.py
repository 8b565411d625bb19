"""Energy `sum`: a weighted sum of energies, each with its own features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.component import Component
from spen_plugins.energy import Energy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.settings.config import Config
from spen_plugins.task import Task


class Sum(Energy):
    """E(x, y) = Σ_k w_k E_k(x, y) over the energies in the table `terms`, whose keys are free names."""

    parts: ClassVar[Mapping[str, str]] = {"terms": "energy*"}

    class Config(Config):
        weights: dict[str, float] = Field(default={})
        """w_k by the term's name; 1 for terms that are not listed."""

    def __init__(
        self,
        config: Any,
        task: Task,
        features: FeatureNetwork | None = None,
        terms: Mapping[str, Component] | None = None,
    ) -> None:
        super().__init__(config, task, features)
        if not terms:
            raise ConfigError(
                "energy 'sum' found no terms; expected a table of energies by names of your own, such as "
                '"terms": {"chain": {"type": "linear_chain"}}'
            )
        known = ", ".join(repr(name) for name in terms)
        for name in config.weights:
            if name not in terms:
                raise ConfigError(f"energy.weights: found {name!r}, which is no term; expected among: {known}")
        for name in terms:
            if "." in name or not name or hasattr(nn.ModuleDict(), name):
                raise ConfigError(f"energy.terms: a term can't be called {name!r} in PyTorch; choose another name")
        self.terms = nn.ModuleDict(terms)

    def encode(self, x: X) -> dict[str, Any]:
        """The encoding of x by each term."""
        return {name: term.encode(x) for name, term in self.terms.items()}

    def forward(self, features: dict[str, Any], y: Tensor) -> Tensor:
        return sum(self.config.weights.get(name, 1.0) * term(features[name], y) for name, term in self.terms.items())
