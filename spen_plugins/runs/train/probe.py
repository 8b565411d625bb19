"""The probe: scores of gradient-based inference while the energy trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from spen_plugins.config.experiment import Built
from spen_plugins.inference.gbi import Gbi, gbi_score
from spen_plugins.loop.evaluation import each_batch

STARTS = {"net_gbi": "net", "random_gbi": "random"}
"""Score in a history record -> starting points of the descent."""


def make_probe(built: Built, device: torch.device) -> Callable[[int, dict[str, Any]], dict[str, Any]]:
    """The callback after validation for `trainer.probe`.

    It takes the epoch and its validation scores, and returns a history record's `probe`: the scores of the net and of
    gradient-based inference from the net's output and from random starts. In epochs without a probe it returns nothing.
    """
    model, task, config = built.model, built.task, built.trainer.config.probe

    def after_validation(epoch: int, scores: dict[str, Any]) -> dict[str, Any]:
        if config is None or model.energy is None or epoch % config.every:
            return {}
        batches = list(each_batch(task, task.part("validation"), built.trainer.config.inferred_at_once, device))
        fields = config.model_dump(exclude={"every"})
        descents = {name: Gbi.Config(**fields, starts=[start]) for name, start in STARTS.items()}
        reached = {name: gbi_score(model, task, batches, descent) for name, descent in descents.items()}
        return {"probe": {"net": float(scores[task.selection]), **reached}}

    return after_validation
