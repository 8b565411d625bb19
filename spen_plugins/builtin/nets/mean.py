"""Inference net `mean`: the mean of several nets' distributions (Hansen & Salamon 1990)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from spen_plugins.batch import X
from spen_plugins.component import Component, name_parts
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet, check_alone
from spen_plugins.spaces import Proposal
from spen_plugins.spaces.mixture import average
from spen_plugins.task import Task


class Mean(InferenceNet):
    """q(y | x) = 1/K Σ_k q_k(y | x) of the nets in the table `nets`, whose keys are free names.

    `spen decode RUNS OUT --mean` makes one of finished runs. Trained, the nets learn together, as a mixture.
    """

    parts: ClassVar[Mapping[str, str]] = {"nets": "inference_net*"}

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
                "inference_net 'mean' found no nets; expected a table of named inference nets, such as "
                '"nets": {"a": {"type": "independent"}, "b": {"type": "independent"}}'
            )
        for name, net in nets.items():
            check_alone(net, f"inference_net.nets.{name}")
        self.nets = name_parts(nets, "inference_net.nets")

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        return average([net(x) for net in self.nets.values()])
