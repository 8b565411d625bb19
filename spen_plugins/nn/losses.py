"""Losses that several energy losses share: margins, the compound objective, learned values, entropy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.batch import Batch
from spen_plugins.energy import BoundEnergy
from spen_plugins.energy_loss import EnergyLoss, Terms
from spen_plugins.inference_net import CostNet
from spen_plugins.spaces import OutputSpace, Proposal
from spen_plugins.spaces.mixture import Mixture

MarginCost = Literal["mean_l1", "l1", "score"]
"""Choice of Δ in a config; see `margin_cost`."""


def margin_cost(space: OutputSpace, y: Tensor, gold: Tensor, mask: Tensor | None, cost: MarginCost) -> Tensor:
    """Δ(y, gold), `(batch, sample)`.

    Args:
        space: the output space.
        y, gold: `(batch, sample, *variables)`; they broadcast over the samples.
        mask: as `X.mask`.
        cost: "l1", the distance summed over variables (the space's `cost`); "mean_l1", the same divided by the number
            of variables without padding (labels, tokens, pixels); or "score", 1 − the space's soft score.
    """
    if cost == "score":
        return 1 - space.score(y, gold, mask)
    distance = space.cost(y, gold, mask)
    return distance / space.size(y, mask) if cost == "mean_l1" else distance


@dataclass(frozen=True)
class CompoundObjective:
    """The compound objective (Tu et al. 2020, Eq. 6): a margin for a cost-augmented net F, a perceptron for A.

        Θ minimises    [Δ(F, y) − E(x, F) + E(x, y)]₊ + λ [E(x, y) − E(x, A)]₊
        the nets       −(Δ(F, y) − E(x, F)) + λ E(x, A)

    Terms are `(batch,)` each. Without gold there is no F, Θ has no loss, and the nets minimise λ E(x, A).

    Args:
        cost: Δ, as in `margin_cost`.
        perceptron_weight: λ.
        truncate_nets: if true, the nets' objective is truncated at zero too (Tu & Gimpel 2018).
    """

    cost: MarginCost
    perceptron_weight: float
    truncate_nets: bool = False

    def energy_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal, cost_net: CostNet) -> Terms:
        """The energy's loss: `margin` and `perceptron`, 0 in rows without gold."""
        if batch.gold is None:
            return {"margin": 0 * energy(proposal.mean)[:, 0]}
        augmenting = cost_net(batch, proposal)
        augmented_energy, gold_energy, predicted_energy = energy(
            torch.cat([augmenting.mean, batch.gold, proposal.mean], 1)
        ).unbind(1)
        return {
            "margin": F.relu(self._compute_cost(batch, augmenting) - augmented_energy + gold_energy) * batch.labelled,
            "perceptron": self.perceptron_weight * F.relu(gold_energy - predicted_energy) * batch.labelled,
        }

    def net_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal, augmenting: Proposal | None) -> Terms:
        """The nets' loss: `cost_augmented` and `test_time`.

        Args:
            energy, batch, proposal: as in `EnergyLoss.net_terms`.
            augmenting: the proposal of F; None without gold.
        """
        if augmenting is None:
            return {"test_time": self.perceptron_weight * energy(proposal.mean)[:, 0]}
        labelled = batch.labelled
        outputs = [augmenting.mean, proposal.mean, *([batch.gold] if self.truncate_nets else [])]
        augmented_energy, predicted_energy, *gold_energies = energy(torch.cat(outputs, 1)).unbind(1)
        # Without truncation E(x, y) is constant for the nets.
        gold_energy = gold_energies[0] if gold_energies else 0.0
        test_loss = torch.where(
            labelled, to_minimise(gold_energy - predicted_energy, self.truncate_nets), predicted_energy
        )
        violation = self._compute_cost(batch, augmenting) - augmented_energy + gold_energy
        return {
            "cost_augmented": to_minimise(violation, self.truncate_nets) * labelled,
            "test_time": self.perceptron_weight * test_loss,
        }

    def _compute_cost(self, batch: Batch, augmenting: Proposal) -> Tensor:
        return margin_cost(augmenting.space, augmenting.mean, batch.gold, batch.x.mask, self.cost)[:, 0]


SAMPLES = 300
"""Samples from which an energy's ln Z is estimated."""
TEMPERATURES = (1.0, 2.0, 4.0)
"""Temperatures of the net, in equal shares: a net that learned from the energy is too sure, and its own samples miss
most of Z."""
AT_ONCE = 5_000_000
"""Approximate limit of numbers in the samples that an energy gets at once."""


def estimate_likelihoods(energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
    """−ln p of the gold outputs under p ∝ exp(−E), with ln Z by importance sampling, `(batch,)` each.

    `energy` is E(x, y) + ln (1/K) Σ_k exp(−E(x, y_k) − ln r(y_k | x)), with K = 300 samples of r, the mean of the net's
    distributions at temperatures 1, 2 and 4. `energy_ess` is the effective number of samples, (Σ w)² / Σ w². The
    estimate of ln Z is too low on average, and far too low if few samples count.
    """
    mixture = Mixture.of([proposal.tempered(temperature) for temperature in TEMPERATURES])
    weights = log_weights(energy, mixture, SAMPLES)
    return {
        "energy": energy(batch.gold)[:, 0] + weights.logsumexp(1) - math.log(SAMPLES),
        "energy_ess": effective_samples(weights),
    }


def log_weights(energy: BoundEnergy, proposal: Proposal, n: int) -> Tensor:
    """−E(x, y) − ln q(y | x) of `n` samples y of the proposal q, `(batch, n)`, without gradient."""
    size = max(1, AT_ONCE // max(1, proposal.logits.numel()))
    parts = []
    with torch.no_grad():
        for start in range(0, n, size):
            y = proposal.sample(min(size, n - start))
            parts.append(-energy(y) - proposal.density(y))
    return torch.cat(parts, 1)


def effective_samples(log_weights: Tensor) -> Tensor:
    """Effective number of samples (Σ w)² / Σ w² of weights `(batch, sample)` given by their logarithms, `(batch,)`."""
    return torch.exp(2 * log_weights.logsumexp(1) - (2 * log_weights).logsumexp(1))


def to_minimise(violation: Tensor, truncate: bool) -> Tensor:
    """The nets' objective that maximises a violation: minus it, truncated at zero or not."""
    return -F.relu(violation) if truncate else -violation


class ValueLoss(EnergyLoss, ABC):
    """Cross entropy of σ(−E(x, ŷ)) against ŷ's soft score, over some outputs ŷ of each example."""

    @abstractmethod
    def outputs(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Tensor:
        """The outputs whose scores are learned, `(batch, sample, *variables)`."""

    def net_terms(self, energy: BoundEnergy, batch: Batch, proposal: Proposal) -> Terms:
        """−σ(−E), the negative predicted score."""
        return {"energy": -torch.sigmoid(-energy(proposal.mean)[:, 0])}

    def value_loss(self, energy: BoundEnergy, batch: Batch, y: Tensor, rewards: Tensor | None = None) -> Tensor:
        """−s ln σ(−E) − (1 − s) ln(1 − σ(−E)) of each output: `(batch, sample)`.

        s is its soft score against gold; in rows without gold it is its reward, from `rewards` `(batch, sample)`.
        """
        scores = rewards if batch.gold is None else self.space.score(y, batch.gold, batch.x.mask)
        if batch.gold is not None and rewards is not None:
            scores = torch.where(batch.labelled.unsqueeze(1), scores, rewards)
        return F.binary_cross_entropy_with_logits(-energy(y), scores, reduction="none")


def entropy(space: OutputSpace, y: Tensor) -> Tensor:
    """Σ_i H(y_i) of relaxed outputs as distributions of independent variables, `(batch, sample)`; 0 on padding.

    Twice differentiable: if a probability is 0, as on padding, its slope is 0.

    Args:
        space: the output space, which is discrete.
        y: `(batch, sample, *variables)`.
    """
    parts = _compute_entropy(y)
    if not space.simplex:
        parts = parts + _compute_entropy(1 - y)
    return parts.flatten(2).sum(-1)


def _compute_entropy(p: Tensor) -> Tensor:
    """Computes −p ln p. Its slope at 0 is infinite, even under a mask; here it is 0, as for the smallest numbers, whose
    second derivative −1 / p is too large."""
    return torch.special.entr(torch.where(p >= torch.finfo(p.dtype).tiny, p, 1.0))
