"""A plugin of the hooks that docs/tutorial lacks, written from docs/plugins.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.figures import Out, Run, group_of, load_task, new_figure, save_figure, styled
from spen_plugins.nn import MarginCost, local_layer, local_scores, local_sum, margin_cost


class Sums(sp.FeatureNetwork):
    """The sum of the vectors of the active features."""

    class Config(sp.Config):
        size: int = Field(4, ge=1)
        """Size of an example's vector."""

    def __init__(self, config: Config, task: sp.Task) -> None:
        super().__init__(config, task)
        if not isinstance(task.inputs, sp.VectorInputs) or not task.inputs.binary:
            raise sp.ConfigError("features 'acme.sums' takes binary vectors; choose another task")
        self.output_dim = config.size
        self.bag = torch.nn.EmbeddingBag(task.inputs.size, config.size, mode="sum")

    def forward(self, x: sp.X) -> Tensor:
        return torch.tanh(self.bag(x.inputs["indices"], x.inputs["offsets"]))


class Pairs(sp.Energy):
    """E(x, y) = −Σ_i y_i b_iᵀ T(x) − w · yᵀ W y."""

    uses_features = True

    class Config(sp.Config):
        strength: float = 1.0
        """w."""

    def __init__(self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.local = local_layer(self)
        self.pairs = torch.nn.Parameter(torch.randn(self.space.shape[-1], self.space.shape[-1]))

    def encode(self, x: sp.X) -> Tensor:
        return local_scores(self, x)

    def forward(self, features: Tensor, y: Tensor) -> Tensor:
        return -local_sum(features, y) - self.config.strength * ((y @ self.pairs) * y).sum(-1)


class Hinge(sp.EnergyLoss):
    """[Δ(F, y) − E(F) + E(y)]₊, and the same without Δ for the net's own output."""

    parts: ClassVar = {"cost_net": "cost_net"}

    class Config(sp.Config):
        cost: MarginCost = "l1"
        """Δ."""

    def __init__(
        self, config: Config, task: sp.Task, features: sp.FeatureNetwork | None = None, cost_net: Any = None
    ) -> None:
        super().__init__(config, task, features)
        if cost_net is None:
            raise sp.ConfigError("energy_loss 'acme.hinge' needs a cost net; give cost_net, as {'type': 'acme.louder'}")
        self.cost_net = cost_net

    def terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        if batch.gold is None:
            return {"margin": 0 * energy(proposal.mean)[:, 0]}
        y = self.cost_net(batch, proposal).mean
        cost_augmented, net, gold = energy(torch.cat([y, proposal.mean, batch.gold], 1)).unbind(1)
        cost = margin_cost(self.space, y, batch.gold, batch.x.mask, self.config.cost)[:, 0]
        return {
            "margin": F.relu(cost - cost_augmented + gold) * batch.labelled,
            "perceptron": F.relu(gold - net) * batch.labelled,
        }

    def net_terms(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        terms = {"energy": energy(proposal.mean)[:, 0]}
        if batch.gold is not None:
            y = self.cost_net(batch, proposal).mean
            cost = margin_cost(self.space, y, batch.gold, batch.x.mask, self.config.cost)
            terms["cost_net"] = (energy(y) - cost)[:, 0] * batch.labelled
        return terms


class Louder(sp.CostNet):
    """A layer on the net's output beside gold."""

    def __init__(self, config: sp.Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        size = self.space.shape[-1]
        self.layer = torch.nn.Linear(2 * size, size)

    def forward(self, batch: sp.Batch, proposal: sp.Proposal) -> sp.Proposal:
        inputs = torch.cat([proposal.mean.detach(), batch.gold], -1)
        return self.space.independent(self.layer(inputs), batch.x.mask)


def label_counts(run: Run, out: Out = None) -> None:
    """Training examples of a run with each label."""
    group = group_of(run)
    task = load_task(group.runs[0], sp.Registry())
    gold = task.collate(task.part("train")).gold[:, 0]
    counts = dict(zip(task.space.labels, gold.sum(0).tolist(), strict=True))
    save_figure(_bars(counts), group, "label_counts", out)


@styled
def _bars(counts: Mapping[str, float]) -> Any:
    figure = new_figure(4, 3)
    figure.subplots().bar(list(counts), list(counts.values()))
    return figure


def model() -> Path:
    return Path(__file__).parent / "model"


@sp.hookimpl
def spen_feature_network() -> sp.Classes:
    return {"sums": Sums}


@sp.hookimpl
def spen_energy() -> sp.Classes:
    return {"pairs": Pairs}


@sp.hookimpl
def spen_energy_loss() -> sp.Classes:
    return {"hinge": Hinge}


@sp.hookimpl
def spen_cost_net() -> sp.Classes:
    return {"louder": Louder}


@sp.hookimpl
def spen_figure() -> sp.Functions:
    return {"label_counts": "spen_acme:label_counts"}


def read_capitals(path: Path) -> sp.Rules:
    return Capitals(path)


class Capitals(sp.Rules):
    """Votes on capitalised words, for the tag or type in a file."""

    def __init__(self, path: Path) -> None:
        self.name, self.checksums = path.read_text(encoding="utf-8").strip(), {str(path): sp.sha256(path)}

    def bind(self, space: sp.OutputSpace) -> list[str]:
        self.space = space
        self.values = torch.tensor([float(tag.removeprefix("B-") == self.name) for tag in space.tags])
        return []

    def index(self, words: Sequence[str]) -> list[bool]:
        return [word[0].isupper() for word in words]

    def collate(self, items: Sequence[list[bool]]) -> dict[str, Tensor]:
        has_fired = torch.nn.utils.rnn.pad_sequence([torch.tensor(item) for item in items], batch_first=True)
        return {sp.FIRED: has_fired.unsqueeze(-1), sp.VOTES: has_fired.unsqueeze(-1) * self.values}

    def rule_votes(self) -> Tensor:
        return self.values.unsqueeze(0)

    def reward(self, x: sp.X, y: Tensor) -> Tensor:
        votes = x.inputs[sp.VOTES].to(y)
        return (y * votes.unsqueeze(1)).flatten(2).sum(-1) / votes.flatten(1).sum(1, keepdim=True).clamp(min=1)

    def search(self, x: sp.X, proposal: sp.Proposal) -> Tensor:
        return proposal.mode


@sp.hookimpl
def spen_rules() -> sp.Functions:
    return {"acme": read_capitals}


@sp.hookimpl
def spen_model() -> sp.Functions:
    return {"spen_multilabel": "spen_acme:model"}
