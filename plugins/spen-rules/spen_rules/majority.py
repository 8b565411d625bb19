"""The rules' weighted vote as a predictor, without training."""

from __future__ import annotations

from typing import Any

import spen_plugins as sp
from spen_rules.votes import check_rules, require_votes


class Majority(sp.InferenceNet):
    """q(y | x) of independent variables whose logits are the rules' votes."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        check_rules(task)

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        return self.space.independent(require_votes(x).unsqueeze(1), x.mask)


class Untrained(sp.Trainer):
    """No training: the net is scored as it is."""

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        frozen = tuple(sorted({name.split(".")[0] for name, _ in model.named_parameters()}))
        return [sp.Stage("untrained", (), 1, frozen=frozen, examples=task.part("train")[:1])]
