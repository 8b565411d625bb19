"""Feature network `shared`: the inference net's feature network, reused by an energy."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from spen_plugins.batch import X
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.task import Task


class Shared(FeatureNetwork):
    """The vectors of the inference net's feature network, without gradient: the energy trains only the layers on top.

    One encoder is stored, trained and run in place of two. A batch that the net has read, in the same mode and with the
    same weights, is not read again; in training the vectors have the net's dropout. `Shared` has no weights of its own:
    the network's are saved with the net.
    """

    of_net = True

    def __init__(self, config: Any, task: Task, network: FeatureNetwork | None = None) -> None:
        super().__init__(config, task)
        if network is None:
            raise ConfigError(
                "features 'shared' reuse those of the inference net; they require an energy or a cost net, and a net "
                "with a feature network; choose another type"
            )
        self.output_dim, self.contextual, self.large = network.output_dim, network.contextual, network.large
        self._latest_output = _LatestOutput(network)  # no submodule: the weights are the net's

    def forward(self, x: X) -> Tensor:
        return self._latest_output(x)


class _LatestOutput:
    """A network and its latest output."""

    def __init__(self, network: FeatureNetwork) -> None:
        self._network, self._step_count = network, 0
        self._entry: tuple[weakref.ref[X], Any, Tensor] | None = None
        network.register_forward_hook(self._keep)  # a method, so that copies of both go together
        _LATEST_OUTPUTS.add(self)

    def __call__(self, x: X) -> Tensor:
        if self._entry is None or self._entry[0]() is not x or self._entry[1] != self._read_state():
            with torch.no_grad():
                self._network(x)
        assert self._entry is not None
        return self._entry[2]

    def _keep(self, network: FeatureNetwork, args: tuple[X], output: Tensor) -> None:
        self._entry = weakref.ref(args[0]), self._read_state(), output.detach()

    def note_step(self, optimizer: Optimizer) -> None:
        """Counts an optimiser's step if it updates the network's weights."""
        parameters = {id(p) for p in self._network.parameters()}
        self._step_count += any(id(p) in parameters for group in optimizer.param_groups for p in group["params"])

    def _read_state(self) -> tuple[Any, ...]:
        """The network's mode and weights."""
        weights = ((p.data_ptr(), p._version) for p in self._network.parameters())
        return (self._network.training, self._step_count, *weights)


_LATEST_OUTPUTS: weakref.WeakSet[_LatestOutput] = weakref.WeakSet()


def _note_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    for latest in _LATEST_OUTPUTS:
        latest.note_step(optimizer)


register_optimizer_step_post_hook(_note_step)  # fused steps leave a tensor's version as it was
