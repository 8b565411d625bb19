"""Inference net `reweight`: samples of another net, weighted by the energy, decide on the label set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.batch import X
from spen_plugins.config.config import Config
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet
from spen_plugins.scores.expected_f1 import best_of_samples, best_sets
from spen_plugins.spaces import LabelSet, Proposal
from spen_plugins.task import Task

WEIGHTS = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)
TEMPERATURES = (0.75, 1.0, 1.5, 2.0, 3.0)
"""Of which the validation part chooses."""


class Reweight(InferenceNet):
    """The label set of highest expected F1 under q(y)^(1 − β) exp(−β E(x, y)), q the net at temperature T.

    K samples of q have weights exp(β (−E − ln q)); with β = 1 and an energy that learned by NCE, whose −E estimates
    ln p(y | x) up to a constant (Lee et al. 2022, Eq. 8), that is importance sampling from p. With β = 0 the set is the
    net's own, exactly. Of all sets of k labels, the best has the k largest Σ_y w(y) y_i 2 / (k + |y|), for any
    distribution (Dembczyński et al. 2011). The samples are drawn from the same numbers for every x, so that an output
    depends neither on its batch nor on chance.

    The proposal is that net's; its `chosen`, which the task decodes, is the set.
    """

    uses_energy = True
    parts: ClassVar[Mapping[str, str]] = {"net": "inference_net"}

    class Config(Config):
        samples: int = Field(150, ge=1, le=100_000)
        """K, samples of each x."""
        weight: float | None = Field(None, ge=0)
        """β, the energy's weight in the logarithm; null: of 0 to 1, chosen by the run's validation part under
        `--refine`, and 1 otherwise."""
        temperature: float | None = Field(None, gt=0)
        """T, the temperature of the net; null: of 0.75 to 3, chosen likewise, and 1 otherwise."""

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, net: InferenceNet | None = None
    ) -> None:
        super().__init__(config, task, features)
        if net is None:
            raise ConfigError(
                "inference_net 'reweight' weighs samples of another inference net; give it one as inference_net.net, "
                'such as {"type": "independent"}'
            )
        if not isinstance(task.space, LabelSet):
            raise ConfigError("inference_net 'reweight' decides on label sets, and this task's outputs are others")
        self.net, self.task = net, task
        self.weight = 1.0 if config.weight is None else config.weight
        self.temperature = 1.0 if config.temperature is None else config.temperature

    def choices(self) -> list[dict[str, float]]:
        """Weights and temperatures, those nearest to the net's own first; none if both are given."""
        weights = WEIGHTS if self.config.weight is None else (self.config.weight,)
        given = self.config.temperature
        temperatures = sorted(TEMPERATURES, key=lambda t: abs(t - 1)) if given is None else [given]
        found = [{"weight": weight, "temperature": one} for weight in weights for one in temperatures]
        return found if len(found) > 1 else []

    def choose(self, choice: Mapping[str, float]) -> None:
        self.weight, self.temperature = choice["weight"], choice["temperature"]

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        """The net's proposal, with `chosen`."""
        assert energy is not None
        proposal = self.net(x, energy if self.net.uses_energy else None)
        with torch.no_grad():
            logits = proposal.logits / self.temperature
            if self.weight == 0:
                chosen = best_sets(torch.sigmoid(logits[:, 0]))
            else:
                y = self._samples(logits)
                noise = proposal.space.independent(logits).log_prob(y)
                chosen = best_of_samples(y, torch.softmax((self.weight * (-energy(y) - noise)).double(), 1))
        return replace(proposal, chosen=chosen.to(proposal.logits.dtype).unsqueeze(1))

    def training_proposal(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        return self.net.training_proposal(x, energy)

    def _samples(self, logits: Tensor) -> Tensor:
        """`(batch, sample, label)` of zeros and ones."""
        draw = torch.Generator().manual_seed(0)
        numbers = torch.rand(self.config.samples, logits.shape[-1], generator=draw, dtype=torch.float64)
        return (numbers.to(logits.device) < torch.sigmoid(logits.double())).to(logits.dtype)
