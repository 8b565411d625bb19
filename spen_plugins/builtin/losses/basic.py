"""Energy losses `ssvm` and `dvn`, which look for outputs by gradient-based inference on the energy that they train, and
`likelihood`, which sums over all outputs."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.batch import Batch
from spen_plugins.energy import BoundEnergy
from spen_plugins.energy_loss import EnergyLoss, Terms
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference import descent
from spen_plugins.inference.descent import Descent, Start
from spen_plugins.nn import MarginCost, ValueLoss, entropy, margin_cost
from spen_plugins.settings.config import Config
from spen_plugins.spaces import LabelSet, Proposal, TagSequence
from spen_plugins.task import Task


class _StartsConfig(Config):
    """Settings of a search's starts."""

    starts: list[Start] = Field(default=["zeros"], min_length=1)
    """Starting points of inference; "net" is the output of the experiment's inference net."""
    random: int = Field(1, ge=1)
    """Number of starts for "random", drawn anew each time."""


class Ssvm(EnergyLoss):
    """[Δ(ŷ, y) − E(x, ŷ) + E(x, y)]₊ at the ŷ where it is largest (Belanger & McCallum 2016, Eq. 8).

    ŷ is the lowest point of E − Δ that cost-augmented gradient-based inference finds from its starts. It is data to the
    loss: no gradient goes through the descent.
    """

    class Config(_StartsConfig):
        cost: MarginCost = "mean_l1"
        """Δ. l1: the space's distance, L1 (squared for grey levels); mean_l1: divided by the number of labels, tokens
        or pixels; score: 1 − the space's soft score (soft F1 for labels)."""
        descent: Descent = Descent(steps=20)
        """Cost-augmented inference of ŷ."""

    def forward(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        mask, gold, c = batch.x.mask, batch.gold, self.config

        def augmented(y: Tensor) -> Tensor:
            return energy(y) - margin_cost(self.space, y, gold, mask, c.cost)

        start = _make_starts(self, batch, proposal)
        violating = descent.minimise(augmented, self.space, start, mask, c.descent).lowest().y
        return F.relu(energy(gold) - augmented(violating))[:, 0] * batch.labelled


class Dvn(ValueLoss):
    """Cross entropy of σ(−E(x, ŷ)) against ŷ's soft score, over training tuples (Gygli et al. 2017, Sec. 3.2).

    Tuples: gold; the current result of gradient-based inference; and an adversarial output that ascends this
    loss, starting from gold in half of the examples (redrawn each time) and from the first of `starts` in the rest.
    """

    class Config(_StartsConfig):
        descent: Descent = Descent(steps=20)
        """Gradient-based inference of outputs of low energy."""
        adversary: Descent = Descent(steps=1, pick="last")
        """Gradient ascent of the adversary on the loss."""

    def forward(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        return self.value_loss(energy, batch, self.outputs(energy, batch, proposal)).mean(1) * batch.labelled

    def outputs(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        """The tuples' ŷ, `(batch, tuple, *variables)`, without gradient."""
        c, mask, gold = self.config, batch.x.mask, batch.gold
        start = _make_starts(self, batch, proposal)
        low_energy = descent.minimise(energy, self.space, start, mask, c.descent).lowest().y
        starts_from_gold = torch.rand(len(batch), 1, *[1] * (gold.dim() - 2), device=gold.device) < 0.5

        def climb(y: Tensor) -> Tensor:
            return -self.value_loss(energy, batch, y)

        start = torch.where(starts_from_gold, gold, start[:, :1])
        return torch.cat([gold, low_energy, descent.minimise(climb, self.space, start, mask, c.adversary).y], 1)


def _make_starts(loss: EnergyLoss, batch: Batch, proposal: Proposal) -> Tensor:
    """The starting points of a loss's search, `(batch, start, *variables)`."""
    c = loss.config
    net = proposal.mean.detach() if "net" in c.starts else None
    return descent.starts(c.starts, loss.space, batch.gold, batch.x.mask, c.random, net)


class Likelihood(EnergyLoss):
    """−ln p(y | x) = E(x, y) + ln Z(x) of p ∝ exp(−E); with `linear_chain`, that of a CRF (Lafferty et al. 2001).

    The nets minimise E(x, ŷ) − H(ŷ) for their marginals ŷ. If a net's variables are independent and E is linear in each
    of them, as `local` and `linear_chain` are, that is the divergence KL(q‖p) less ln Z(x), which the net can't change:
    the exact expectation of E under q, without samples (as inference networks for a CRF: Tu & Gimpel 2018). With
    `mean` it is an upper bound of that divergence. With `marginals` the nets minimise KL(p‖q) instead, plus p's
    entropy: −ln q at p's marginals, distillation (Hinton et al. 2015), if q's variables are independent.

    Raises:
        ConfigError: the outputs are neither label sets nor tag sequences.
    """

    class Config(Config):
        entropy: float = Field(1.0, ge=0)
        """Weight of H, the entropy of the net's marginals. With 0 the net minimises the energy: it aims at the single
        best output instead of all likely ones."""
        marginals: bool = False
        """If true, the nets learn the marginals of p by cross entropy instead; `entropy` is not used."""

    def __init__(self, config: Any, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not isinstance(task.space, LabelSet | TagSequence):
            raise ConfigError(
                f"energy_loss 'likelihood' requires label sets or tag sequences, but these outputs are "
                f"{type(task.space).__name__}; choose another energy loss"
            )

    def forward(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy.log_z()
        return (energy(batch.gold)[:, 0] + energy.log_z()) * batch.labelled

    def likelihoods(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        return {"energy": energy(batch.gold)[:, 0] + energy.log_z()}

    def net_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        if self.config.marginals:
            return {"distillation": -proposal.log_prob(energy.marginals().to(proposal.logits))[:, 0]}
        terms = {"energy": energy(proposal.mean)[:, 0]}
        if self.config.entropy:
            terms["entropy"] = -self.config.entropy * entropy(self.space, proposal.mean)[:, 0]
        return terms
