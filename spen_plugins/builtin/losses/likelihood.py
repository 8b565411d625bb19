"""Energy loss `likelihood`: the energy as a log-linear model, and the divergence of the net from it."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.energy import BoundEnergy, Energy
from spen_plugins.energy_loss import EnergyLoss, Terms
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.nn import entropy
from spen_plugins.settings.config import Config
from spen_plugins.spaces import LabelSet, Proposal, TagSequence
from spen_plugins.task import Task


class Likelihood(EnergyLoss):
    """−ln p(y | x) = E(x, y) + ln Z(x) of p ∝ exp(−E); with `linear_chain`, that of a CRF (Lafferty et al. 2001).

    The nets minimise E(x, ŷ) − H(ŷ) for their marginals ŷ. If a net's variables are independent and E is linear in each
    of them, as `local` and `linear_chain` are, that is the divergence KL(q‖p) less ln Z(x), which the net can't change:
    the exact expectation of E under q, without samples (as inference networks for a CRF: Tu & Gimpel 2018).

    Raises:
        ConfigError: the outputs are neither label sets nor tag sequences, or the energy has no ln Z.
    """

    class Config(Config):
        entropy: float = Field(1.0, ge=0)
        """Weight of H, the entropy of the net's marginals. With 0 the net minimises the energy: it aims at the single
        best output instead of all likely ones."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not isinstance(task.space, LabelSet | TagSequence):
            raise ConfigError(
                f"energy_loss 'likelihood' sums over label sets or tag sequences, and these outputs are "
                f"{type(task.space).__name__}; choose another energy loss"
            )

    def check_energy(self, energy: Energy) -> None:
        if type(energy).log_z is Energy.log_z:
            raise ConfigError(
                f"energy_loss 'likelihood' sums over all outputs, which {type(energy).__name__} can't in closed form; "
                "take the energy linear_chain or local"
            )

    def forward(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy.log_z()
        return (energy(batch.gold)[:, 0] + energy.log_z()) * batch.labelled

    def net_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        terms = {"energy": energy(proposal.mean)[:, 0]}
        if self.config.entropy:
            terms["entropy"] = -self.config.entropy * entropy(self.space, proposal.mean)[:, 0]
        return terms
