"""Energies over tags more than one token apart (Tu, Liu & Gimpel 2020): skip-chains and high orders."""

from __future__ import annotations

from functools import reduce

import torch
from pydantic import Field
from torch import Tensor, nn

import spen_plugins as sp
from spen_plugins.nn import at_least_float32, mask_padding, require_tags

SPREAD = 0.02
"""Scores are initialised from U(−0.02, 0.02), as W in Eq. 7."""
LARGEST_TABLE = 5_000_000
"""Largest number of entries of a table."""


class SkipChain(sp.Energy):
    """E(y) = −Σ_t Σ_{i=1}^M y_{t−i}ᵀ W_i y_t, one matrix per distance i (Tu, Liu & Gimpel 2020).

    Only pairs inside the sequence count. Each W_i is initialised from U(−0.02, 0.02).
    """

    class Config(sp.Config):
        order: int = Field(3, ge=1)
        """M, the largest distance between two tags of a scored pair."""

    config: Config

    def __init__(self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_tags(self)
        tags = self.space.shape[-1]
        self.pairs = nn.Parameter(torch.empty(config.order, tags, tags).uniform_(-SPREAD, SPREAD))

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        y = mask_padding(y, features)
        # A slice that begins after the last token is empty, and its sum is 0.
        return -sum(
            at_least_float32((y[:, :, : max(y.shape[2] - i, 0)] @ w) * y[:, :, i:]).sum((2, 3))
            for i, w in enumerate(self.pairs, 1)
        )


class HighOrder(sp.Energy):
    """E(y) = −Σ_{t=M+1}^T s(y_{t−M}, …, y_t), one s for all positions (Tu, Liu & Gimpel 2020).

    s is linear in each tag, so the score of soft tags is the expected score of independent tags. Only windows
    inside the sequence count: a sequence of M tags or fewer has energy 0. s has a parameter for each of the L^(M+1)
    windows, s = ⟨S, y_{t−M} ⊗ … ⊗ y_t⟩ (the paper's Kronecker product of all the tags, without the layers in between).
    """

    class Config(sp.Config):
        order: int = Field(2, ge=1)
        """M, the number of preceding tags in a window."""

    config: Config

    def __init__(self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_tags(self)
        tags, window = self.space.shape[-1], config.order + 1
        if tags**window > LARGEST_TABLE:
            raise sp.ConfigError(
                f"energy.order {config.order} with {tags} tags requires a table of {tags**window:,} entries; expected "
                f"at most {LARGEST_TABLE:,}. Use a lower order"
            )
        self.table = nn.Parameter(torch.empty((tags,) * window).uniform_(-SPREAD, SPREAD))

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        """The table times the products of a window's two halves' tags, summed over windows, `(batch, sample)`."""
        tags = list_windows(mask_padding(y, features), self.config.order + 1)
        half = len(tags) // 2
        left, right = reduce(kronecker, tags[:half]), reduce(kronecker, tags[half:])
        scores = ((left @ self.table.view(left.shape[-1], right.shape[-1])) * right).sum(-1)
        return -at_least_float32(scores).sum(-1)


def list_windows(y: Tensor, size: int) -> list[Tensor]:
    """The first, second, …, last member of all windows of consecutive tokens, `(batch, sample, window, …)` each."""
    count = max(y.shape[2] - size + 1, 0)
    return [y[:, :, i : i + count] for i in range(size)]


def kronecker(left: Tensor, right: Tensor) -> Tensor:
    """`(…, a)`, `(…, b)` -> `(…, a·b)`, all pairwise products."""
    return (left.unsqueeze(-1) * right.unsqueeze(-2)).flatten(-2)
