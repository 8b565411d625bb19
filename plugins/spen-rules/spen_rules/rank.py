"""Energy loss `rules.rank`: the output of higher reward gets the lower energy, by a margin."""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import mask_padding

TIE = 1e-6
"""Difference up to which rewards are equal: they are sums, which are rounded."""


class Rank(sp.EnergyLoss):
    """[α (R(y_h) − R(y_l)) + E(y_h) − E(y_l)]₊ over pairs of outputs with R(y_h) > R(y_l).

    Outputs come from noisy gradient-based inference, z ← z − η (∇_z E(relax(z)) + ε). "iterates" compares its
    consecutive steps (R-SPEN, Rooshenas et al. 2018); "search" the last one, rounded, with the output of higher reward
    that truncated random search finds from it, if it does (SG-SPEN, Rooshenas et al. 2019). R is the
    reward of the rounded output: its score in rows with gold, else `Rewards.reward`; without rules the loss is 0 there.
    """

    class Config(sp.Config):
        pairs: Literal["iterates", "search"] = "search"
        """The outputs that are compared: R-SPEN's or SG-SPEN's."""
        margin: float = Field(100.0, ge=0)
        """α, the margin for a difference of 1 in the reward."""
        steps: int = Field(10, ge=2)
        """Steps of the inference."""
        lr: float = Field(0.5, gt=0)
        """η, the step size; the noise ε has variance `noise` · 2η."""
        noise: float = Field(1.0, ge=0)
        """Scale of the noise's variance."""
        proposals: int = Field(100, ge=1)
        """Changes of one variable to another value that a search tries at most."""
        gain: float = Field(0.01, ge=0)
        """Gain in reward at which a search stops."""

    config: Config

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if isinstance(task, sp.TakesRules):  # other tasks may only have gold
            sp.require_rules(task)
        self.task = task

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        path = self._infer(energy, batch, proposal)
        if self.config.pairs == "search":
            last = self.space.round(path[:, -1:], batch.x.mask)
            y = torch.cat([last, self._search(batch, last)], 1)
        else:
            y = path[:, 1:]
        rewards = self.judge(batch, y)
        if rewards is None:
            return 0 * energy(y[:, :1])[:, 0]
        energies = energy(y)
        gain = rewards[:, 1:] - rewards[:, :-1]
        rise = energies[:, 1:] - energies[:, :-1]
        violation = (self.config.margin * gain.abs() + torch.sign(gain) * rise).clamp(min=0)
        return torch.where(gain.abs() > TIE, violation, 0 * violation).sum(1)

    def judge(self, batch: sp.Batch, y: Tensor) -> Tensor | None:
        """R of the rounded outputs, `(batch, sample)`, 0 in rows without a reward; None if no row has one."""
        y = self.space.round(y, batch.x.mask)
        rewards = self.task.reward(batch.x, y) if isinstance(self.task, sp.Rewards) else None
        if batch.gold is None:
            return rewards
        scores = self.space.score(y, batch.gold, batch.x.mask)
        return torch.where(
            batch.labelled.unsqueeze(1), scores, torch.zeros_like(scores) if rewards is None else rewards
        )

    def _infer(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        """The outputs along noisy descent, the start first, `(batch, 1 + steps, *variables)`, without gradient."""
        c, mask = self.config, batch.x.mask
        z = torch.rand_like(proposal.logits)
        path = []
        for step in range(c.steps + 1):
            with torch.enable_grad():
                z = z.detach().requires_grad_()
                y = self.space.relax(z, mask)
                path.append(y.detach())
                if step < c.steps:
                    [gradient] = torch.autograd.grad(energy(y).sum(), z)
            z = z - c.lr * (gradient + (2 * c.lr * c.noise) ** 0.5 * torch.randn_like(z))
        return torch.cat(path, 1)

    @torch.no_grad()
    def _search(self, batch: sp.Batch, start: Tensor) -> Tensor:
        """Outputs of higher reward than `start` `(batch, 1, *variables)`, or `start` itself where there is none."""
        best, start_reward = start, self.judge(batch, start)
        if start_reward is None:
            return start
        reward = start_reward
        for _ in range(self.config.proposals):
            is_open = reward <= start_reward + self.config.gain
            if not is_open.any():
                break
            candidates = change_one(self.space, best, batch.x.mask)
            candidate_reward = self.judge(batch, candidates)
            is_better = (candidate_reward > reward + TIE) & is_open
            best = torch.where(is_better.view(-1, *[1] * (best.dim() - 1)), candidates, best)
            reward = torch.where(is_better, candidate_reward, reward)
        return best


def change_one(space: sp.OutputSpace, y: Tensor, mask: Tensor | None) -> Tensor:
    """Discrete outputs `(batch, 1, *variables)` with one random variable of each at a random value; never padding."""
    flat = y.flatten(2, -2) if space.simplex else y.flatten(2).unsqueeze(-1)
    batch, values = len(flat), flat.shape[-1]
    present = torch.ones_like(y[..., 0] if space.simplex else y, dtype=torch.float)
    present = mask_padding(present, mask).flatten(1)
    index = torch.multinomial(present + 1e-9, 1)
    if space.simplex:
        new_values = torch.nn.functional.one_hot(torch.randint(values, (batch,), device=y.device), values).to(y.dtype)
    else:
        new_values = torch.randint(2, (batch, 1), device=y.device).to(y.dtype)
    new_values = new_values * present.gather(1, index).to(new_values.dtype)  # a row may have no variable at all
    changed = flat[:, 0].scatter(1, index.unsqueeze(-1).expand(-1, -1, values), new_values.unsqueeze(1))
    return changed.view_as(y)
