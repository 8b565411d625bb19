"""Energy loss `cd`: gold against samples of the net, with the cost of their errors (Shankar & Piratla)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import MarginCost, margin_cost


class ContrastiveDivergence(sp.EnergyLoss):
    """−ln of gold's share in exp(−E(y)) + Σ_k exp(−E(ȳ_k) + Δ_k), over K outputs ȳ_k of the net.

    The paper prints it without the minus, and calls Δ, the cost of an output, its score s. With one output it is the
    smooth hinge of the margin loss, softplus(Δ + E(y) − E(ȳ)).

    In rows without gold, the output of highest `Rewards.reward` takes the place of gold, and Δ is the difference to its
    reward; without a reward, the loss of such a row is 0.
    """

    class Config(sp.Config):
        samples: int = Field(20, ge=1)
        """K, the number of the net's outputs for each example; one if they are `soft`."""
        outputs: Literal["relaxed", "straight", "soft", "discrete"] = "relaxed"
        """Relaxed samples, with a gradient to the net; the same rounded, with their gradient (straight-through); the
        net's relaxed output itself; or discrete samples, without gradient."""
        temperature: float = Field(1.0, gt=0)
        """Temperature of relaxed samples; a low one makes them nearly discrete, and their gradient large."""
        cost: MarginCost = "score"
        """Δ: 1 − the soft score; or the L1 distance, summed or divided by the number of variables."""
        by_rules: bool = False
        """If true, the reward comes from rules: a task that has none, or has gold everywhere, is rejected."""

    config: Config

    def __init__(self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.task = task
        if config.by_rules:
            sp.require_rules(task, learns=True)

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        y = self._draw_outputs(proposal)
        comparison = self._compare(batch, proposal, y)
        if comparison is None:
            return 0 * energy(proposal.mean)[:, 0]
        target, cost, is_counted = comparison
        scores = -energy(torch.cat([target.to(y), y], 1))
        scores = torch.cat([scores[:, :1], scores[:, 1:] + cost], 1)
        return (scores.logsumexp(1) - scores[:, 0]) * is_counted

    def _compare(self, batch: sp.Batch, proposal: sp.Proposal, y: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
        """The output that should win, `(batch, 1, *variables)`, Δ of the others, `(batch, K)`, and true for rows that
        count.

        None if no row counts: the batch has no gold, and the task no reward.
        """
        gold, labelled = batch.gold, batch.labelled
        needs_reward = isinstance(self.task, sp.Rewards) and not labelled.all()
        rewards = self.task.reward(batch.x, y) if needs_reward else None
        gold_cost = None if gold is None else margin_cost(self.space, y, gold, batch.x.mask, self.config.cost)
        if rewards is None:
            return None if gold is None else (gold, gold_cost, labelled)
        best_output, reward = self._find_best(batch, proposal, y)
        cost = (reward - rewards).clamp(min=0)
        if gold is not None:
            best_output = torch.where(labelled.view(-1, *[1] * (y.dim() - 1)), gold, best_output)
            cost = torch.where(labelled.unsqueeze(1), gold_cost, cost)
        return best_output, cost, torch.ones_like(labelled)

    def _find_best(self, batch: sp.Batch, proposal: sp.Proposal, y: Tensor) -> tuple[Tensor, Tensor]:
        """The discrete output of highest reward among the net's and those of the task's search, and its reward,
        `(batch, 1)`."""
        with torch.no_grad():
            outputs = [self.space.round(y.detach(), batch.x.mask), proposal.mode.to(y)]
            if (searched_outputs := self.task.search(batch.x, proposal)) is not None:
                outputs.append(searched_outputs.to(y))
            candidates = torch.cat(outputs, 1)
            reward, place = self.task.reward(batch.x, candidates).max(1, keepdim=True)
            return candidates.take_along_dim(place.view(len(y), 1, *[1] * (y.dim() - 2)), 1), reward

    def _draw_outputs(self, proposal: sp.Proposal) -> Tensor:
        """ȳ, `(batch, K, *variables)`."""
        config = self.config
        if config.outputs == "soft":
            return proposal.mean
        if config.outputs == "discrete":
            return proposal.sample(config.samples)
        y = proposal.rsample(config.samples, config.temperature)
        if config.outputs == "relaxed":
            return y
        return y + (self.space.round(y, proposal.mask) - y).detach()
