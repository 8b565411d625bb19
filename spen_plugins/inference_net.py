"""Inference nets: x -> a proposal, a distribution over outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from torch import nn

from spen_plugins.batch import Batch, X
from spen_plugins.component import Component, NamedParts, name_parts
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError
from spen_plugins.spaces import Proposal


class InferenceNet(Component):
    """A_Ψ, the net that predicts at test time, also called the task-net."""

    uses_energy: ClassVar[bool] = False
    """True if prediction needs the energy (as an optimiser over y does); the run folder then keeps it with the net."""
    iterative: ClassVar[bool] = False
    """True if prediction is iterative; its proposals then have `iterates` while `keep_iterates` is set."""
    chooses: ClassVar[bool] = False
    """True if its proposals have `chosen`, outputs that the task takes unchanged, without its own threshold."""
    keep_iterates: bool = False
    """If true, proposals keep the iterates; set by callers that need them."""

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        """The net's q(y | x)."""
        raise NotImplementedError(f"{type(self).__name__} does not implement forward")

    def training_proposal(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        """The proposal for losses in training: the net's q(y | x), or that of the net on which an optimiser builds."""
        return self(x, energy)

    def choices(self) -> Sequence[Mapping[str, float]]:
        """Prediction settings from which the validation part chooses one (on a tie, the first); none by default. Used
        by `--refine`."""
        return []

    def choose(self, choice: Mapping[str, float]) -> None:
        """Predict with one of `choices` from now on."""
        raise NotImplementedError


def check_alone(net: InferenceNet | type[InferenceNet], label: str) -> None:
    """Raise a ConfigError if a net predicts by an energy.

    Args:
        net: the net, or its class.
        label: its name in messages.
    """
    if net.uses_energy or net.chooses:
        kind = net.__name__ if isinstance(net, type) else type(net).__name__
        raise ConfigError(
            f"{label}: {kind} predicts with an energy, but a mean averages probabilities; expected a net that predicts "
            "by itself, such as 'independent' or 'crf'"
        )


def join_nets(nets: NamedParts | None, key_path: str, missing: str) -> nn.ModuleDict:
    """The nets of a mean, as modules.

    Raises:
        ConfigError: there are no nets (the message is `missing`), or a net predicts by an energy.
    """
    if not nets:
        raise ConfigError(missing)
    for name, net in nets.items():
        check_alone(net, f"{key_path}.{name}")
    return name_parts(nets, key_path)


class CostNet(Component):
    """F_Φ, the cost-augmented net: sees gold, therefore a separate type, never a test-time net.

    A submodule of the energy loss that uses it, trained in the nets' phase.
    """

    def bind(self, net: InferenceNet) -> None:
        """Bind to the test-time net after both are built: a cost net on its features gets their width here."""

    def forward(self, batch: Batch, proposal: Proposal) -> Proposal:
        """A proposal that should violate the margin, given the batch and the test-time net's proposal."""
        raise NotImplementedError
