"""Objectives of the minimax game of an energy and inference nets: margin, perceptron, …, and the compound objective."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

import spen_plugins as sp
from spen_infnet.cost_nets import Stacked
from spen_plugins.nn import MarginCost, margin_cost


class Hinge(sp.EnergyLoss):
    """[h(Δ, E(x, ŷ), E(x, y))]₊ with ŷ an inference net's output; subclasses define h.

    Θ minimises it, always truncated at zero. The net maximises it, by default without the truncation (Tu et al. 2020,
    Sec. 4.1): an untrained net has outputs of high energy, where the truncated loss has no gradient.
    """

    class Config(sp.Config):
        cost: MarginCost = "l1"
        """Δ: the L1 distance summed over variables, as in the paper; the same divided by the number of variables (of
        tokens, for sequences); or 1 − the soft score."""
        truncate_nets: bool = False
        """If true, the nets' objective is truncated at zero too (Tu & Gimpel 2018)."""

    config: Any

    def terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """The energy's loss by parts, `(batch,)` each; zero in rows without gold."""
        if batch.gold is None:
            return {"hinge": 0 * energy(proposal.mean)[:, 0]}
        wrong, right = energy(torch.cat([proposal.mean, batch.gold], 1)).unbind(1)
        return {"hinge": F.relu(self._violation(self._cost(proposal.mean, batch), wrong, right)) * batch.labelled}

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """The nets' loss by parts, `(batch,)` each; in rows without gold E(x, ŷ)."""
        if batch.gold is None:
            return {"energy": energy(proposal.mean)[:, 0]}
        wrong, right = energy(torch.cat([proposal.mean, batch.gold], 1)).unbind(1)
        asked = self._asked(self._violation(self._cost(proposal.mean, batch), wrong, right))
        return {"energy": torch.where(batch.labelled, asked, wrong)}

    def measures(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """l1 = Δ − E(x, ŷ) and l0 = [l1 + E(x, y)]₊ of Sec. 4.3, `(batch,)` each, whatever the objective is; zero in
        rows without gold."""
        if batch.gold is None:
            return {}
        y = self.augmented(batch, proposal)
        wrong, right = energy(torch.cat([y, batch.gold], 1)).unbind(1)
        l1 = self._cost(y, batch) - wrong
        return {"l1": l1 * batch.labelled, "l0": F.relu(l1 + right) * batch.labelled}

    def augmented(self, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        """F(x), the cost-augmented output, `(batch, 1, *variables)`: here the one net's."""
        return proposal.mean

    def _violation(self, cost: Tensor, wrong: Tensor, right: Tensor) -> Tensor:
        raise NotImplementedError

    def _asked(self, violation: Tensor) -> Tensor:
        """The nets' objective: minimised to maximise a violation."""
        return -F.relu(violation) if self.config.truncate_nets else -violation

    def _cost(self, y: Tensor, batch: sp.Batch) -> Tensor:
        return margin_cost(self.space, y, batch.gold, batch.x.mask, self.config.cost)[:, 0]


class Margin(Hinge):
    """Margin-rescaled: [Δ(F(x), y) − E(x, F(x)) + E(x, y)]₊ (Tu & Gimpel 2018; Tu et al. 2020, Eq. 4).

    The one net learns cost-augmented inference; the trainer's `finetune` adapts it to test-time inference.
    """

    def _violation(self, cost: Tensor, wrong: Tensor, right: Tensor) -> Tensor:
        return cost - wrong + right


class Perceptron(Hinge):
    """[−E(x, A(x)) + E(x, y)]₊ (Tu et al. 2020, Eq. 5, the second part): no Δ, so the one net is the test-time net."""

    def _violation(self, cost: Tensor, wrong: Tensor, right: Tensor) -> Tensor:
        return right - wrong


class Contrastive(Hinge):
    """[m − E(x, F(x)) + E(x, y)]₊ with a fixed margin m (Tu & Gimpel 2018)."""

    class Config(Hinge.Config):
        margin: float = Field(1.0, ge=0)
        """m, in units of the energy."""

    def _violation(self, cost: Tensor, wrong: Tensor, right: Tensor) -> Tensor:
        return self.config.margin - wrong + right


class Slack(Hinge):
    """Slack-rescaled: Δ(F(x), y) · [1 − E(x, F(x)) + E(x, y)]₊ (Tsochantaridis et al. 2004; Tu & Gimpel 2018)."""

    def _violation(self, cost: Tensor, wrong: Tensor, right: Tensor) -> Tensor:
        return cost * (1 - wrong + right)


class Compound(Hinge):
    """The compound objective (Tu et al. 2020, Eq. 6): a margin for a cost-augmented net F, a perceptron for A.

        Θ minimises    [Δ(F, y) − E(x, F) + E(x, y)]₊ + λ [E(x, y) − E(x, A)]₊
        the nets       −(Δ(F, y) − E(x, F)) + λ E(x, A) + w · cross entropy of F

    `cost_net` chooses F: `infnet.stacked` (the default), `infnet.shared`, `infnet.separated` or another.
    Without gold there is no F, and the nets minimise λ E(x, A).
    """

    parts: ClassVar = {"cost_net": "cost_net"}

    class Config(Hinge.Config):
        perceptron_weight: float = Field(1.0, ge=0)
        """λ of Eq. 6; 10 in the authors' code."""
        cost_net_cross_entropy: float = Field(0.0, ge=0)
        """w, weight of F's own cross entropy, summed over variables; that of A is the trainer's."""

    def __init__(
        self,
        config: Any,
        task: sp.Task,
        features: sp.FeatureNetwork | None = None,
        cost_net: sp.CostNet | None = None,
    ) -> None:
        super().__init__(config, task, features)
        self.cost_net = cost_net if cost_net is not None else Stacked(Stacked.Config(), task)

    def terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        if batch.gold is None:
            return {"margin": 0 * energy(proposal.mean)[:, 0]}
        augmented = self.augmented(batch, proposal)
        wrong, right, predicted = energy(torch.cat([augmented, batch.gold, proposal.mean], 1)).unbind(1)
        return {
            "margin": F.relu(self._cost(augmented, batch) - wrong + right) * batch.labelled,
            "perceptron": self.config.perceptron_weight * F.relu(right - predicted) * batch.labelled,
        }

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        weight, labelled = self.config.perceptron_weight, batch.labelled
        if batch.gold is None:
            return {"test_time": weight * energy(proposal.mean)[:, 0]}
        augmenting = self.cost_net(batch, proposal)
        y = augmenting.mean
        outputs = [y, proposal.mean, *([batch.gold] if self.config.truncate_nets else [])]
        wrong, predicted, *golds = energy(torch.cat(outputs, 1)).unbind(1)
        # Without truncation E(x, y) is constant for the nets.
        right = golds[0] if golds else 0.0
        violated = torch.where(labelled, self._asked(right - predicted), predicted)
        terms = {
            "cost_augmented": self._asked(self._cost(y, batch) - wrong + right) * labelled,
            "test_time": weight * violated,
        }
        if self.config.cost_net_cross_entropy:
            terms["cost_net_cross_entropy"] = (
                -self.config.cost_net_cross_entropy * augmenting.log_prob(batch.gold)[:, 0] * labelled
            )
        return terms

    def augmented(self, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        return self.cost_net(batch, proposal).mean
