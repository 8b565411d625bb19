"""Energy `mean`: minus the logarithm of the mean of finished runs' probabilities, fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from spen_plugins.batch import X
from spen_plugins.component import Component, name_parts
from spen_plugins.energy import Energy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import check_alone
from spen_plugins.spaces import Proposal
from spen_plugins.spaces.mixture import average
from spen_plugins.task import Task


class MeanOfRuns(Energy):
    """E(x, y) = −ln 1/K Σ_k q_k(y | x) of the inference nets of finished runs, without their dropout: ln Z = 0.

    `init.energy` names the runs. Their weights are fixed. A relaxed y has the `log_prob` that each q_k extends to it:
    with independent variables, Σ y · ln q_k. Then E(x, ŷ) is an upper bound of the expectation of E under independent
    variables with mean ŷ, and equal to it if all q_k are the same.
    """

    parts: ClassVar[Mapping[str, str]] = {"nets": "inference_net*"}
    takes_runs = True

    def __init__(
        self,
        config: Any,
        task: Task,
        features: FeatureNetwork | None = None,
        nets: Mapping[str, Component] | None = None,
    ) -> None:
        super().__init__(config, task, features)
        if not nets:
            raise ConfigError(
                "energy 'mean' combines finished runs, but init.energy names none; expected a run folder, a folder "
                'of runs, or a list: init.energy=runs/both, init.energy=\'["runs/a", "runs/b"]\''
            )
        for name, net in nets.items():
            check_alone(net, f"energy.nets.{name}")
        self.nets = name_parts(nets, "energy.nets")
        self.requires_grad_(False)

    def train(self, mode: bool = True) -> MeanOfRuns:
        """Stay in evaluation mode: the nets are finished, and their dropout is off."""
        return super().train(False)

    def encode(self, x: X) -> Proposal:
        with torch.no_grad():
            return average([net(x) for net in self.nets.values()]).detach()

    def forward(self, features: Proposal, y: Tensor) -> Tensor:
        return -features.log_prob(y)

    def log_z(self, features: Proposal) -> Tensor:
        """0: each q_k sums to one. Densities of real outputs have no such sum."""
        if not self.space.discrete:
            return super().log_z(features)
        return features.logits.new_zeros(features.logits.shape[0])

    def marginals(self, features: Proposal) -> Tensor:
        return features.mean
