"""Energy `sum`: several energies added up, each with a weight and features of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.component import Component
from spen_plugins.config.config import Config
from spen_plugins.energy import Energy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.task import Task


class Sum(Energy):
    """E(x, y) = Σ_k w_k E_k(x, y) over the energies of the table `terms`, whose keys are names of the user's own."""

    parts: ClassVar[Mapping[str, str]] = {"terms": "energy*"}

    class Config(Config):
        weights: dict[str, float] = Field(default={})
        """w_k by the term's name; 1 for a term that isn't named."""

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
        """What each term keeps of x."""
        return {name: term.encode(x) for name, term in self.terms.items()}

    def forward(self, features: dict[str, Any], y: Tensor) -> Tensor:
        return sum(self.config.weights.get(name, 1.0) * term(features[name], y) for name, term in self.terms.items())
