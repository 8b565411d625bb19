"""The energy: which letters end a morph, and how far from one end to the next."""

import torch
from pydantic import Field

import spen_plugins as sp


class Gaps(sp.Energy):
    """E(x, y) = −Σ_t y_t s_t(x) + Σ_d w_d Σ_t y_t y_t+d: w_d is high where ends d letters apart are rare."""

    uses_features = True

    class Config(sp.Config):
        reach: int = Field(3, ge=1)
        """Largest d."""

    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.scores = torch.nn.Linear(features.output_dim, 1)
        self.weights = torch.nn.Parameter(torch.zeros(config.reach))

    def encode(self, x):
        return self.scores(self.features(x)).squeeze(-1) * x.mask  # s(x), (batch, letter)

    def forward(self, features, y):
        energy = -(features.unsqueeze(1) * y).sum(-1)  # (batch, sample); y is 0 on padding
        for distance, weight in enumerate(self.weights, 1):
            energy = energy + weight * (y[..., :-distance] * y[..., distance:]).sum(-1)
        return energy
