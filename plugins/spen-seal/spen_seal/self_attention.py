"""SEAL's energy for tag sequences: self-attention over tag vectors."""

from __future__ import annotations

import math

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.nn import at_least_float32, inner_product, local_layer, local_scores, require_tags


class SelfAttention(sp.Energy):
    """E(x, y) = −Σ_t y_tᵀ B T_E(x)_t − Σ_t max_l [Attend(y + positions)]_tl (Lee et al. 2022, Sec. 4.3).

    One layer of self-attention whose tokens are tag vectors: sinusoidal positions are added in tag space, and the
    attention's result is projected back to tags; the maximum over tags counts at each token.

    Products of queries and keys are divided by √(dim / heads), the root of their own width (Vaswani et al. 2017), so
    that their size does not depend on the width. The released code uses AllenNLP's layer, which divides by
    √(tags / heads): its products are larger by √(dim / tags), 1.4 at 130 tags. The weights can learn such a factor, so
    this class keeps its own, and stored runs keep their energies.
    """

    uses_features = True

    class Config(sp.Config):
        dim: int = Field(256, ge=1)
        """Width of queries, keys and values, all heads together."""
        heads: int = Field(1, ge=1)
        """Attention heads; must divide `dim`."""
        dropout: float = Field(0.5, ge=0, lt=1)
        """Dropout on the attention's weights."""
        local: bool = True
        """If true, adds the local part, the sum over tokens of the tag's score given x."""

        @model_validator(mode="after")
        def _check_heads(self) -> SelfAttention.Config:
            if self.dim % self.heads:
                raise ValueError(f"heads ({self.heads}) must divide dim ({self.dim})")
            return self

    config: Config

    def __init__(self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features if config.local else None)
        require_tags(self)
        tags = self.space.shape[-1]
        if config.local:
            self.local = local_layer(self)
        self.attend = nn.Linear(tags, 3 * config.dim)
        self.back = nn.Linear(config.dim, tags)

    def encode(self, x: sp.X) -> tuple[Tensor | None, Tensor | None]:
        """Local scores `(batch, token, tag)`, or None without a local part, and the mask."""
        return (local_scores(self, x) if self.config.local else None), x.mask

    def forward(self, features: tuple[Tensor | None, Tensor | None], y: Tensor) -> Tensor:
        scores, mask = features
        # amax splits the gradient among equals and is slower
        maxima = at_least_float32(self.compute_attention(y, mask).max(-1).values)
        if mask is not None:
            maxima = maxima * mask.unsqueeze(1)
        energy = -maxima.sum(-1)
        return energy if scores is None else energy - inner_product(scores, y)

    def compute_attention(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Attend(y + positions), `(batch, sample, token, tag)`.

        Apart from the softmax the layer is linear in tags. So the weights of queries and keys are multiplied with each
        other first, and those of values with the output's. The result is the same as through vectors of size `dim`,
        with a quarter of the work and memory at 130 tags. The layer is written out so that it can be differentiated
        twice.
        """
        heads, tags = self.config.heads, y.shape[-1]
        u = y + positions(y.shape[2], tags, y)
        query, key, value = self.attend.weight.view(3, heads, -1, tags)
        # A key's bias adds the same to all of a query's weights, so it cancels in the softmax.
        query_bias, _, value_bias = self.attend.bias.view(3, heads, -1)
        output = self.back.weight.view(tags, heads, -1)
        scale = 1 / math.sqrt(query.shape[1])
        query_key = torch.einsum("hda,hdb->hba", query, key).flatten(0, 1) * scale
        query_key_bias = torch.einsum("hd,hdb->hb", query_bias, key).flatten() * scale
        output_value = torch.einsum("ahd,hdb->ahb", output, value).flatten(1)
        output_value_bias = torch.einsum("ahd,hd->ah", output, value_bias)

        queries = F.linear(u.flatten(0, 2), query_key, query_key_bias).view(*y.shape[:3], heads, tags).transpose(2, 3)
        weights = queries @ u.unsqueeze(2).transpose(-1, -2)
        if mask is not None:
            weights = weights.masked_fill(~mask[:, None, None, None, :], torch.finfo(weights.dtype).min)
        weights = F.dropout(torch.softmax(weights, -1), self.config.dropout, self.training)
        weighted_sums = (weights @ u.unsqueeze(2)).transpose(2, 3).reshape(-1, heads * tags)
        # After dropout the weights don't sum to one, so the values' bias is weighted like the values.
        total = weights.sum(-1).transpose(2, 3).reshape(-1, heads)
        result = torch.addmm(F.linear(weighted_sums, output_value, self.back.bias), total, output_value_bias.T)
        return result.view(y.shape)


def positions(tokens: int, size: int, like: Tensor) -> Tensor:
    """Sinusoids of geometrically growing wavelength (Vaswani et al. 2017), `(token, size)`: sines, then cosines."""
    half = size // 2
    step = math.log(10_000.0) / max(half - 1, 1)
    rates = torch.exp(-step * torch.arange(half, device=like.device, dtype=like.dtype))
    angles = torch.arange(tokens, device=like.device, dtype=like.dtype).unsqueeze(1) * rates
    return F.pad(torch.cat([angles.sin(), angles.cos()], 1), (0, size - 2 * half))
