"""Energy loss `exact.partition`: the energy and a net for its log-partition function learn together."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

import spen_plugins as sp
from spen_plugins.nn import at_least_float32, effective_samples, estimate_likelihoods, log_weights


class Partition(sp.EnergyLoss):
    """E(x, y) + τ(x) + E_q[exp(−E(x, y') − ln q(y' | x) − τ(x))] − 1, y' samples of the net q (Sander et al. 2025).

    For any τ this is at least −ln p(y | x) of p ∝ exp(−E), and equal to it at τ = ln Z: both nets minimise it, and the
    gradient of samples is unbiased. τ is linear in a feature network of its own; its first value is the estimate of
    ln Z from the first batch's samples. Several processes each start from an estimate of their own; use one process.
    """

    uses_features = True
    moves_with = "energy"

    class Config(sp.Config):
        samples: int = Field(50, ge=1)
        """Number of samples of the net for each example and update."""
        clip: float = Field(5.0, gt=0)
        """In training, the exponential goes on as its tangent where its exponent is above this, so that a single sample
        of a poor net can't outweigh all others. Measured as `clipped`."""

    config: Config

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not task.space.discrete:
            raise sp.ConfigError(
                "energy_loss 'exact.partition' requires discrete outputs, but this task's are real numbers"
            )
        self.output = nn.Linear(features.output_dim, 1)
        for parameter in self.output.parameters():
            nn.init.zeros_(parameter)
        self.register_buffer("started", torch.tensor(False))

    def terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        if batch.gold is None:
            return {"gold": 0 * energy(proposal.mean)[:, 0]}
        with torch.no_grad():
            y = proposal.sample(self.config.samples)
            noise = proposal.density(y)
        energies = energy(torch.cat([batch.gold.to(y), y], 1))
        weights = -energies[:, 1:] - noise
        tau = self._compute_tau(batch, weights)
        exponent = weights - tau.unsqueeze(1)
        sums = _extend_exp(exponent, self.config.clip) if self.training else exponent.exp()
        labelled = batch.labelled
        return {
            "gold": (energies[:, 0] + tau) * labelled,
            "partition": (sums.mean(1) - 1) * labelled,
        }

    def measures(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """The effective number of samples, and the share of those that are clipped."""
        weights = log_weights(energy, proposal, self.config.samples)
        clipped = weights - self._compute_tau(batch, weights).unsqueeze(1) > self.config.clip
        values = {"effective samples": effective_samples(weights), "clipped": clipped.float().mean(1)}
        return {name: value * batch.labelled for name, value in values.items()}

    def likelihoods(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        """Like `estimate_likelihoods`; `energy_bound` is this loss, an upper bound in expectation over the samples."""
        bound = sum(self.terms(energy, batch, proposal).values())
        return {**estimate_likelihoods(energy, batch, proposal), "energy_bound": bound}

    def _compute_tau(self, batch: sp.Batch, weights: Tensor) -> Tensor:
        """τ(x), `(batch,)`, in full precision: the sum over tokens if the features are per token.

        Args:
            weights: log-weights of the first batch's samples, `(batch, sample)`.
        """
        features = at_least_float32(self.features(batch.x))
        with torch.autocast(features.device.type, enabled=False):
            values = self.output(features).squeeze(-1)
        counts = torch.ones_like(values)
        if values.dim() > 1:
            counts = counts if batch.x.mask is None else batch.x.mask.to(values.dtype)
            values, counts = (values * counts).sum(1), counts.sum(1)
        if not self.started and self.training:
            with torch.no_grad():
                shift = (weights.logsumexp(1) - math.log(weights.shape[1])).mean() / counts.mean()
                self.output.bias += shift
                self.started.fill_(True)
            values = values + shift * counts
        return values


def _extend_exp(exponent: Tensor, clip: float) -> Tensor:
    """exp up to `clip`; above it, the tangent of exp at `clip`."""
    clipped = exponent.clamp(max=clip)
    return clipped.exp() * (1 + exponent - clipped)
