"""Inference net `gbi`: the energy itself predicts, by gradient-based inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.batch import Batch, X
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference import descent
from spen_plugins.inference.descent import Descent, Start
from spen_plugins.inference_net import InferenceNet
from spen_plugins.model import Model
from spen_plugins.spaces import Proposal
from spen_plugins.task import ImageInputs, Task
from spen_plugins.task_parts import selection_score


class Gbi(InferenceNet):
    """y of low E(x, y) by gradient steps inside the relaxed set (Belanger & McCallum 2016; Gygli et al. 2017).

    With another inference net (`net`), that net's mean is a start, and in training losses see that net's proposal, with
    its samples and its cross entropy. Without one, losses see the uniform distribution.
    """

    uses_energy = True
    iterative = True
    parts: ClassVar[Mapping[str, str]] = {"net": "inference_net"}

    class Config(Descent):
        starts: list[Start] | None = Field(None, min_length=1)
        """Starting points; of several, the result of lowest energy is used. null: the net's output if
        there is a net, zeros otherwise."""
        random: int = Field(3, ge=1)
        """Number of starts for "random"; the same ones for every example."""

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, net: InferenceNet | None = None
    ) -> None:
        super().__init__(config, task, features)
        self.net, self.inputs = net, task.inputs
        self.starts = config.starts or (["zeros"] if net is None else ["net"])
        if "net" in self.starts and net is None:
            raise ConfigError("inference_net.starts has 'net', which requires inference_net.net")

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        """A proposal whose mean is the descent's result; its `iterates` are the path if `keep_iterates`."""
        assert energy is not None
        net = self.net(x, energy if self.net.uses_energy else None).mean if "net" in self.starts else None
        zeros, seed = self._make_zeros(x, energy), None if self.training else 0
        start = descent.starts(self.starts, self.space, zeros, x.mask, self.config.random, net, seed)
        lowest = descent.minimise(energy, self.space, start, x.mask, self.config, self.keep_iterates).lowest()
        return self.space.independent(self.space.logits(lowest.y, x.mask), x.mask, iterates=lowest.path)

    def training_proposal(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        if self.net is not None:
            return self.net.training_proposal(x, energy)
        assert energy is not None
        return self.space.independent(self._make_zeros(x, energy), x.mask)

    def _make_zeros(self, x: X, energy: BoundEnergy) -> Tensor:
        """Zeros `(batch, 1, *variables)` of the energy's type, on its device."""
        parameter = next(energy.energy.parameters(), None)
        device = next(iter(x.inputs.values())).device if parameter is None else parameter.device
        sizes = self.space.sizes(x.mask)
        if None in sizes and isinstance(self.inputs, ImageInputs):
            sizes = x.inputs["image"].shape[-2:]
        if None in sizes:
            raise PluginError(
                f"the output size of {type(self.space).__name__} varies between batches, and this batch has no mask; "
                "expected the task's collate to set X.mask"
            )
        return torch.zeros(x.size, 1, *sizes, device=device, dtype=None if parameter is None else parameter.dtype)


def gbi_score(model: Model, task: Task, batches: Sequence[Batch], config: Gbi.Config) -> float:
    """The task's selection score if the model's energy predicts by `gbi`, on top of its inference net."""
    net = Gbi(config, task, net=model.inference_net).eval()
    with torch.no_grad():
        return selection_score(task, ((net(batch.x, model.energy.at(batch.x)), batch) for batch in batches))
