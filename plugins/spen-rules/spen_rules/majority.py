"""The rules' weighted vote as a predictor, without training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import spen_plugins as sp
from spen_rules.vote_energy import require_votes

COUNTED, RARE = 1000, 0.01
"""Maximal number of examples in which tags are counted, and the weight of their shares beside votes."""


class Majority(sp.InferenceNet):
    """q(y | x) of independent variables whose logits are the rules' votes.

    Without votes, and between equal votes, the most frequent tag of gold comes first.
    """

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        sp.require_rules(task)
        self.register_buffer("prior", RARE * count_tags(task))

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        return self.space.independent((require_votes(x) + self.prior).unsqueeze(1), x.mask)


def count_tags(task: sp.Task) -> Tensor:
    """The share of each tag in the training examples with gold, `(value,)`; zeros for labels, or without examples."""
    values = task.space.shape[-1]
    examples = task.part("train")[:COUNTED] if task.space.simplex else []
    batch = task.collate(examples) if len(examples) else None
    if batch is None or batch.gold is None:
        return torch.zeros(values)
    counts = batch.gold.flatten(0, -2).sum(0)
    return counts / counts.sum()


class Untrained(sp.Trainer):
    """No training: the net is scored as it is."""

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        return [sp.Stage("untrained", (), 1, frozen=sp.frozen_except(model), examples=task.part("train")[:1])]
