"""Constraints on the arguments of a predicate."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import at_least_float32, require_tags
from spen_rules.logic import Constraint, log_truth, violation

CORE = re.compile(r"[BS]-(?:A|ARG)[0-5]")


class UniqueRole(Constraint):
    """Each core role at most once: "X begins at word i" implies "X begins at no other word" (Li et al. 2020, Sec. 3.2).

    E(x, y) = Σ_X Σ_i max(0, ln p_i(B-X) − min_{j≠i} ln(1 − p_j(B-X))). Two equal roles count 2 · 13.8.
    """

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_tags(self)
        begins = [i for i, tag in enumerate(self.space.tags) if CORE.fullmatch(tag)]
        if not begins:
            raise sp.ConfigError(
                "energy 'rules.unique_role' is about core roles; none of the task's tags is B-A0 to B-A5 or B-ARG0 to "
                "B-ARG5"
            )
        self.register_buffer("begins", torch.tensor(begins), persistent=False)

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        begins = at_least_float32(y[..., self.begins]).transpose(2, 3)
        if features is not None:
            begins = begins * features[:, None, None]
        return violation(log_truth(begins), self.all_others(log_truth(1 - begins))).flatten(2).sum(-1)
