"""The rules' weighted vote as an energy."""

from __future__ import annotations

from typing import Any

from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import inner_product


class Votes(sp.Energy):
    """The rules' weighted vote as an energy: how much weight y lacks of what the rules could have.

    E(x, y) = Σ_t (max_k s_tk − Σ_k s_tk y_tk), with s the votes' weights for a tag k at word t; for labels
    Σ_l (max(0, s_l) − s_l y_l). It is 0 exactly for outputs that have the highest vote everywhere, and linear in y.
    """

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if "rules" not in task.indexers:
            sp.require_rules(task)

    def encode(self, x: sp.X) -> Tensor:
        return require_votes(x)

    def forward(self, features: Tensor, y: Tensor) -> Tensor:
        return measure_regret(self.space, features, y)


def require_votes(x: sp.X) -> Tensor:
    """The votes of a batch, `(batch, token, tag)` or `(batch, label)`; raises ConfigError if there are none."""
    if sp.VOTES not in x.inputs:
        raise sp.ConfigError(
            "the outputs are the rules' votes (net 'rules.majority' or energy 'rules.votes'), and only training reads "
            "task.rules. Such a run has scores, for spen compare, but can't predict or score other files: train a net "
            "by the same rules, such as method=rules_energy, votes or expectation"
        )
    return x.inputs[sp.VOTES]


def best_votes(space: sp.OutputSpace, votes: Tensor) -> Tensor:
    """The highest weight at each variable: `(batch, token)` or `(batch, label)`."""
    return votes.amax(-1) if space.simplex else votes.clamp(min=0)


def measure_regret(space: sp.OutputSpace, votes: Tensor, y: Tensor) -> Tensor:
    """The highest weight at each variable minus that of y, summed, `(batch, sample)`; y is 0 on padding."""
    weight = inner_product(votes, y)
    return best_votes(space, votes).flatten(1).sum(1, keepdim=True).to(weight.dtype) - weight


def find_kind(tag: str) -> str:
    """The type of a span's tag: PER for B-PER."""
    return tag[2:] if tag[1:2] == "-" and tag[0] in "BIES" else tag
