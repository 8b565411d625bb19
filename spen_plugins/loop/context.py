"""Cache of the bound energy and the proposal of a batch, which drops stale values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from spen_plugins.batch import Batch
from spen_plugins.energy import BoundEnergy, has_shape, show_shape
from spen_plugins.errors import PluginError
from spen_plugins.inference_net import InferenceNet
from spen_plugins.loop.active import ActivePhase
from spen_plugins.model import Model
from spen_plugins.spaces import Proposal
from spen_plugins.trainer import Context, backward


def check_proposal(net: InferenceNet, proposal: Any) -> None:
    """Raise PluginError unless a net has returned a proposal."""
    if not isinstance(proposal, Proposal):
        raise PluginError(
            f"{type(net).__name__}.forward returns a {type(proposal).__name__}; expected a Proposal, such as "
            "self.space.independent(logits, x.mask)"
        )


class NetStates:
    """The model's nets, the number of updates of each, and their modes."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.moves: Counter[str] = Counter()
        self.modes: dict[str, bool] = {}
        self.constant: frozenset[str] = frozenset()

    def phase_begins(self, active: ActivePhase) -> None:
        """Put the nets in the modes that they have during a phase."""
        self.enter(self._find_training(active), self._find_constant(active))

    def enter(self, training: frozenset[str], constant: frozenset[str] = frozenset()) -> None:
        """Put the given nets in training mode, the others in evaluation mode; the `constant` ones get no gradient."""
        self.constant = constant
        for name, net in self.model.named_children():
            mode = name in training
            if self.modes.get(name) != mode:
                net.train(mode)
                self.modes[name] = mode

    def _find_training(self, active: ActivePhase) -> frozenset[str]:
        """The nets in training mode during a phase."""
        if active.phase.frozen_dropout:
            return frozenset(name for name, _ in self.model.named_children())
        net = self.model.inference_net
        # A net without its own weights is in the energy's mode; a net on top of a fixed one is not in training mode.
        if net.uses_energy and "energy" in active.touches and next(net.parameters(), None) is None:
            return active.touches | {"inference_net"}
        return active.touches

    def _find_constant(self, active: ActivePhase) -> frozenset[str]:
        """The nets whose own parameters get no gradient in a phase: the energy, unless it moves, the net differentiates
        it, or the phase's gradient rule may reach it."""
        net = self.model.inference_net
        may_change = "energy" in active.touches or net.uses_energy or active.phase.gradient is not backward
        return frozenset() if may_change else frozenset({"energy"})


class LiveContext(Context):
    """Bound energy and proposal of one batch, each computed at first use and again when its net was updated or has
    changed its mode.

    A proposal keeps its graph from the energy's phase to the net's, so that with one step each the net runs once.
    """

    def __init__(self, nets: NetStates, batch: Batch) -> None:
        self.nets, self.model, self.batch = nets, nets.model, batch
        self._cache: dict[str, tuple[Any, Any]] = {}

    @property
    def energy(self) -> BoundEnergy:
        if self.model.energy is None:
            raise ValueError("this experiment has no energy")
        return self._keep("energy", ("energy",), lambda: self.model.energy.at(self.batch.x))

    @property
    def proposal(self) -> Proposal:
        net = self.model.inference_net
        net_names = ("inference_net", "energy") if net.uses_energy else ("inference_net",)

        def make() -> Proposal:
            proposal = net.training_proposal(self.batch.x, self.energy if net.uses_energy else None)
            check_proposal(net, proposal)
            expected = (self.batch.x.size, 1, *proposal.space.sizes(self.batch.x.mask))
            if not has_shape(proposal.logits, expected):  # it would be broadcast
                raise PluginError(
                    f"{type(net).__name__}'s logits: found shape {tuple(proposal.logits.shape)}; expected (batch, 1, "
                    f"*variables) = {show_shape(expected)}"
                )
            return proposal

        return self._keep("proposal", net_names, make)

    def _keep(self, name: str, net_names: tuple[str, ...], make: Callable[[], Any]) -> Any:
        # The y-independent part of a fixed energy is computed without a graph. A proposal always has its graph: the
        # next phase may train its net.
        is_constant = name in self.nets.constant
        state = (is_constant, *((self.nets.moves[name], self.nets.modes.get(name)) for name in net_names))
        if name not in self._cache or self._cache[name][0] != state:
            with torch.set_grad_enabled(not is_constant):  # whatever the mode of the first access
                self._cache[name] = (state, make())
        return self._cache[name][1]
