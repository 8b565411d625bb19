"""The inference net: a letter's neighbours say whether a morph ends behind it."""

import torch
from pydantic import Field

import spen_plugins as sp


class Windows(sp.InferenceNet):
    """A convolution over the letters' features."""

    uses_features = True

    class Config(sp.Config):
        width: int = Field(5, ge=1)
        """Letters in a window."""

    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.windows = torch.nn.Conv1d(features.output_dim, 1, config.width, padding="same")

    def forward(self, x, energy=None):
        vectors = self.features(x) * x.mask.unsqueeze(-1)  # (batch, letter, size), and padding tells nothing
        logits = self.windows(vectors.transpose(1, 2))  # (batch, 1, letter), which is the shape of one sample
        return self.space.independent(logits, x.mask, features=vectors)
