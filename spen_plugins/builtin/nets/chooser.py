"""Inference nets that choose an output of another net by the energy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from spen_plugins.batch import X
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task


class Chooser(InferenceNet, ABC):
    """The proposal is another net's, marginals, samples and mode included; its `chosen`, which the task decodes, is
    the choice."""

    uses_energy = True
    chooses = True
    parts: ClassVar[Mapping[str, str]] = {"net": "inference_net"}

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, net: InferenceNet | None = None
    ) -> None:
        super().__init__(config, task, features)
        if net is None:
            raise ConfigError(
                f"inference_net {type(self).__name__.lower()!r} chooses among outputs of another inference net; give "
                'it one as inference_net.net, such as {"type": "independent"}'
            )
        self.net, self.task = net, task

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        """The net's proposal, with `chosen`."""
        assert energy is not None
        proposal = self.net(x, energy if self.net.uses_energy else None)
        with torch.no_grad():
            return replace(proposal, chosen=self._choose(proposal, x, energy))

    @abstractmethod
    def _choose(self, proposal: Proposal, x: X, energy: BoundEnergy) -> Tensor:
        """The chosen output, `(batch, 1, *variables)`."""

    def training_proposal(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        return self.net.training_proposal(x, energy)
