"""Inference net `rerank`: the energy chooses among the k best outputs of another net."""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.batch import X
from spen_plugins.builtin.nets.chooser import Chooser
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet
from spen_plugins.settings.config import Config
from spen_plugins.spaces import LabelSet, Proposal
from spen_plugins.task import Task
from spen_plugins.task_parts import FitsDecoder


class Rerank(Chooser):
    """argmin of E(x, y) over the k most probable y of another inference net (re-ranking: Collins & Koo 2005).

    Of label sets, it may choose among the beginnings of the net's ranking instead: the label that the net finds most
    probable, the first two, and so on to k, and no label. An energy that estimates F1 (Gygli et al. 2017) decides so on
    how many labels there are.
    """

    class Config(Config):
        k: int = Field(8, ge=1)
        """Number of outputs from which the energy chooses; with 1 the net's own is kept."""
        candidates: Literal["best", "prefixes"] = "best"
        """The k most probable outputs, or, of label sets, the k sets of the net's first labels, and none."""

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, net: InferenceNet | None = None
    ) -> None:
        super().__init__(config, task, features, net)
        if not task.space.discrete:
            raise ConfigError(
                "inference_net 'rerank' chooses among the k most probable outputs, and outputs that are real numbers "
                "have no such list; take 'gbi'"
            )
        if config.candidates == "prefixes" and not isinstance(task.space, LabelSet):
            raise ConfigError(
                "inference_net 'rerank': found candidates 'prefixes' of outputs that are no label sets; expected 'best'"
            )

    def _choose(self, proposal: Proposal, x: X, energy: BoundEnergy) -> Tensor:
        if self.config.candidates == "prefixes":
            y = list_prefixes(proposal.logits[:, 0], self.config.k)
        else:
            y = self._list_best(proposal)
            y[:, :1] = self.task.decode(proposal, x)  # k_best's first may be another, equally likely one
        lowest = energy(y).argmin(1)
        return y[torch.arange(len(y), device=y.device), lowest].unsqueeze(1)

    def _list_best(self, proposal: Proposal) -> Tensor:
        """The `k` most probable outputs; of a task with a decoder of its own, those nearest to its decision."""
        if isinstance(self.task, FitsDecoder):
            return self.task.k_best(proposal, self.config.k)
        return proposal.k_best(self.config.k)[0]


def list_prefixes(logits: Tensor, k: int) -> Tensor:
    """Label sets `(batch, size, label)` of the 0 to k labels with the largest logits `(batch, label)`."""
    place = logits.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    sizes = torch.arange(min(k, logits.shape[-1]) + 1, device=logits.device)
    return (place.unsqueeze(1) < sizes.unsqueeze(1)).to(logits.dtype)
