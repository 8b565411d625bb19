"""Cost-augmented nets F, and their joint parameterisations with the test-time net A (Tu et al. 2020, Sec. 3.1)."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

import spen_plugins as sp
from spen_plugins.nn import Lstm, output_size, read_both_ways, reverse_places


class Separated(sp.CostNet):
    """F has its own feature network and output layer, like A; it doesn't see gold."""

    uses_features = True

    def __init__(self, config: sp.Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        assert features is not None
        self.output = nn.Linear(features.output_dim, output_size(self))

    def forward(self, batch: sp.Batch, proposal: sp.Proposal) -> sp.Proposal:
        features = self.features(batch.x)
        return self.space.independent(self.output(features).unsqueeze(1), batch.x.mask, features=features)


class Shared(sp.CostNet):
    """F has its own output layer on A's features, which both nets train; it doesn't see gold."""

    def __init__(self, config: sp.Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.output: nn.Linear | None = None

    def bind(self, net: sp.InferenceNet) -> None:
        """Makes the output layer as wide as the net's features; `ConfigError` if it has no feature network."""
        if net.features is None:
            raise sp.ConfigError(
                f"cost_net 'infnet.shared' requires an inference net with features, and {type(net).__name__} has none; "
                "use 'infnet.stacked', or an inference net on a feature network (core.independent)"
            )
        if self.output is None:
            self.output = nn.Linear(net.features.output_dim, output_size(self))

    def forward(self, batch: sp.Batch, proposal: sp.Proposal) -> sp.Proposal:
        assert self.output is not None, "a shared cost net works inside a Model, which binds it to its net"
        logits = self.output(proposal.features).unsqueeze(1)
        return self.space.independent(logits, batch.x.mask, features=proposal.features)


class Stacked(sp.CostNet):
    """F(x, y)_t = softmax(W_q [A(x)_t ; y_t] + b_q): A's output and gold at each position.

    The gradient stops before A: training F does not change A. W_q is `(L, 2L)`.
    """

    def __init__(self, config: sp.Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        size = output_size(self)
        self.output = nn.Linear(2 * size, size)

    def forward(self, batch: sp.Batch, proposal: sp.Proposal) -> sp.Proposal:
        return self.space.independent(self.output(join_gold(batch, proposal)), batch.x.mask)


class StackedBiLstm(sp.CostNet):
    """Like `Stacked`, with a bidirectional LSTM over [A(x)_t ; y_t] before the affine layer; for sequences."""

    class Config(sp.Config):
        hidden: int = Field(32, ge=1)
        """Width of one direction."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if len(self.space.shape) != 2 or not self.space.simplex:
            raise sp.ConfigError("cost_net 'infnet.stacked_bilstm' requires tag sequences; use 'infnet.stacked'")
        size = output_size(self)
        self.forwards, self.backwards = Lstm(2 * size, config.hidden), Lstm(2 * size, config.hidden)
        self.output = nn.Linear(2 * config.hidden, size)

    def forward(self, batch: sp.Batch, proposal: sp.Proposal) -> sp.Proposal:
        mask = batch.x.mask
        inputs = join_gold(batch, proposal)[:, 0].transpose(0, 1)
        token_mask = inputs.new_ones(inputs.shape[:2]) if mask is None else mask.t()
        states = read_both_ways(inputs, reverse_places(token_mask), self.forwards, self.backwards).transpose(0, 1)
        return self.space.independent(self.output(states).unsqueeze(1), mask)


def join_gold(batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
    """[A(x) ; gold] along the last axis, `(batch, 1, *variables[:-1], 2 L)`, without gradient to A."""
    return torch.cat([proposal.mean.detach(), batch.gold.to(proposal.mean)], -1)
