"""Energy loss `exact.fenchel_young`: the perturbed Fenchel-Young loss."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp


class FenchelYoung(sp.EnergyLoss):
    """E_Z[max_y' −E(x, y') + σ Z · y'] + E(x, y), Z standard Gaussian noise on each variable (Berthet et al. 2020;
    Blondel et al. 2022 for losses of energies).

    The maximum is exact, so the loss requires an energy with an exact search (`Energy.modes`). Its gradient is that of
    −E at these modes (Danskin's theorem): for linear energies, the mean output under noise minus gold.
    """

    class Config(sp.Config):
        samples: int = Field(5, ge=1)
        """Number of draws of the noise for each example and update."""
        std: float = Field(1.0, gt=0)
        """σ, the standard deviation of the noise on each variable's score."""

    config: Config

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not isinstance(task.space, sp.LabelSet | sp.TagSequence):
            raise sp.ConfigError(
                "energy_loss 'exact.fenchel_young' requires label sets or tag sequences as outputs; found "
                f"{type(task.space).__name__}. Use another energy loss"
            )

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        gold, c = batch.gold, self.config
        noise = c.std * torch.randn(len(batch), c.samples, *gold.shape[2:], dtype=gold.dtype, device=gold.device)
        modes = energy.modes(noise)
        energies = energy(torch.cat([gold, modes], 1))
        noise_scores = (noise * modes).flatten(2).sum(-1)
        return (energies[:, 0] + (noise_scores - energies[:, 1:]).mean(1)) * batch.labelled
