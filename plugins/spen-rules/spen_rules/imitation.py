"""Losses of a net that learns from rules where there is no gold: their votes as gold, or their expectations."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_rules.vote_energy import find_kind


class Imitation(sp.EnergyLoss):
    """Cross entropy of the rules' weighted vote in rows without gold: the usual weak supervision.

    Σ_t −ln Σ_k q(y_t = k | x) over the tags k with the highest vote at word t, usually one, and over words with a vote;
    for labels, the sum is over all labels with a vote for or against them.
    """

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        sp.require_rules(task, learns=True)

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        return 0 * energy(proposal.mean)[:, 0]

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        if sp.VOTES not in batch.x.inputs:
            return {"votes": 0 * proposal.logits.flatten(1).sum(1)}
        votes, p = batch.x.inputs[sp.VOTES], proposal.mean[:, 0]
        if self.space.simplex:
            best = votes.amax(-1)
            agreement, has_vote = (p * (votes == best.unsqueeze(-1))).sum(-1), best > 0
        else:
            agreement, has_vote = torch.where(votes > 0, p, 1 - p), votes != 0
        loss = -torch.log(torch.where(has_vote, agreement, 1).clamp(min=1e-12))
        return {"votes": loss.flatten(1).sum(1) * ~batch.labelled}


class Expectation(sp.EnergyLoss):
    """Generalized expectation (Mann & McCallum 2010): Σ_r KL(g_r ‖ q_r) over rules r, the same number in every row.

    q_r is the net's expected distribution over tags at the words where the rule holds, in rows without gold; types of
    spans count, not their single tags. g_r gives the rule's tags `target` together, in equal shares, and the others
    the rest; a rule against some gives them 1 − `target`. Each label of a text is a distribution of its own. The counts
    behind q_r are running sums over batches, of which only the current batch has a gradient.
    """

    class Config(sp.Config):
        target: float = Field(0.9, gt=0.5, lt=1)
        """Share of a rule's hits for which the rule is assumed to be right."""
        memory: float = Field(0.9, ge=0, lt=1)
        """Share of the running counts that stays at each batch; 0: a batch counts alone."""

    config: Config

    def __init__(self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        sp.require_rules(task, learns=True)
        sides = task.rule_votes() if isinstance(task, sp.Rewards) else None
        sides = torch.zeros(0, 1) if sides is None else sides
        has_tags = isinstance(self.space, sp.TagSequence)
        kinds = [find_kind(tag) for tag in self.space.tags] if has_tags else []
        order = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
        groups = torch.tensor([[float(order[kind] == i) for i in order.values()] for kind in kinds])
        self.register_buffer("groups", groups if has_tags else None, persistent=False)
        if has_tags and len(sides):
            sides = torch.sign(sides @ groups)
        self.register_buffer("targets", make_targets(sides, config.target, has_tags), persistent=False)
        shape = (len(sides), sides.shape[1]) if has_tags else (len(sides), sides.shape[1], 2)
        self.running = torch.zeros(shape)

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        return 0 * energy(proposal.mean)[:, 0]

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        if sp.FIRED not in batch.x.inputs:
            return {"expectation": 0 * proposal.logits.flatten(1).sum(1)}
        p = proposal.mean[:, 0]
        fired = batch.x.inputs[sp.FIRED].to(p.dtype) * (~batch.labelled).view(-1, *[1] * (p.dim() - 1))
        if self.groups is not None:
            batch_counts = torch.einsum("btr,btk->rk", fired, p @ self.groups.to(p.dtype))
        else:
            batch_counts = torch.einsum("br,blv->rlv", fired, torch.stack([p, 1 - p], -1))
        counts = self.config.memory * self.running.to(batch_counts) + batch_counts
        if batch_counts.requires_grad:
            self.running = counts.detach()
        q = (counts / counts.sum(-1, keepdim=True).clamp(min=1e-6)).clamp(1e-6, 1)
        is_defined = (self.targets.sum(-1) > 0) & (counts.sum(-1) > 1e-6)
        divergence = (torch.special.xlogy(self.targets, self.targets) - self.targets * q.log()).sum(-1)
        return {"expectation": (divergence * is_defined).sum().expand(len(batch))}


def make_targets(sides: Tensor, target: float, has_tags: bool) -> Tensor:
    """g_r: `(rule, kind)` for tags, `(rule, label, 2)`, present and absent, for labels; 0 where a rule takes no side.

    Args:
        sides: as in `Rewards.rule_votes`, of kinds.
        target: probability of a rule's side.
    """
    if not has_tags:
        present = torch.where(sides > 0, target, 1 - target)
        return torch.stack([present, 1 - present], -1) * (sides != 0).unsqueeze(-1)
    is_chosen = (sides > 0) | ((sides == 0) & (sides < 0).any(-1, keepdim=True))
    chosen, others = (part.float() / part.sum(-1, keepdim=True).clamp(min=1) for part in (is_chosen, ~is_chosen))
    takes_side = is_chosen.any(-1, keepdim=True) & (~is_chosen).any(-1, keepdim=True)
    return (target * chosen + (1 - target) * others) * takes_side
