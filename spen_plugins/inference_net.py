"""Inference nets: x -> a proposal."""

from __future__ import annotations

from typing import ClassVar

from spen_plugins.batch import Batch, X
from spen_plugins.component import Component
from spen_plugins.energy import BoundEnergy
from spen_plugins.spaces import Proposal


class InferenceNet(Component):
    """A_Ψ, the task-net: what predicts at test time."""

    uses_energy: ClassVar[bool] = False
    """Whether prediction needs the energy (an optimiser over y does); the run folder then ships it with the net."""
    iterative: ClassVar[bool] = False
    """Whether prediction goes step by step; its proposals then have `iterates` while `keep_iterates` is set."""
    keep_iterates: bool = False
    """Set by who wants to see the steps."""

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        """The net's q(y | x)."""
        raise NotImplementedError

    def training_proposal(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        """What losses see while something trains: the net's q(y | x), unless an optimiser stands on another net."""
        return self(x, energy)


class CostNet(Component):
    """F_Φ, the cost-augmented net: sees gold, so a type of its own and never a test-time net.

    Owned as a submodule by the energy loss that uses it, and trained in the nets' phase.
    """

    def bind(self, net: InferenceNet) -> None:
        """Told the test-time net once both are made: one that builds on its features learns their width here."""

    def forward(self, batch: Batch, proposal: Proposal) -> Proposal:
        """A proposal meant to violate the margin, from the batch and the test-time net's proposal."""
        raise NotImplementedError
