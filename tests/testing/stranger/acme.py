"""A plugin of every hook, written from docs/plugins.md: texts of one topic each, in files of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

import spen_plugins as sp
from spen_plugins.figures import Out, Run, group_of, load_task, new_figure, save_figure, styled
from spen_plugins.nn import MarginCost, inner_product, local_layer, local_scores, local_sum, margin_cost


class OneOf(sp.OutputSpace):
    """One of L labels; `y` is `(batch, sample, label)` on the simplex."""

    simplex = True

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = list(labels)

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (len(self.labels),)

    def relax(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        return torch.softmax(logits, -1)

    def logits(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return torch.log(y.clamp(min=1e-4))

    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        ordered = y.sort(-1, descending=True).values
        share = (ordered.cumsum(-1) - 1) / torch.arange(1, y.shape[-1] + 1, device=y.device)
        last = (ordered > share).sum(-1, keepdim=True).clamp(min=1) - 1
        return (y - share.gather(-1, last)).clamp(min=0)

    def round(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return F.one_hot(y.argmax(-1), y.shape[-1]).to(y.dtype)

    def cost(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        return (y - gold).abs().sum(-1)

    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        return torch.minimum(y, gold).sum(-1)

    def size(self, y: Tensor, mask: Tensor | None) -> Tensor:
        return y.new_ones(len(y), 1)

    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> Categorical:
        return Categorical(self, logits, mask, **kept)


@dataclass(frozen=True)
class Categorical(sp.Proposal):
    """Label i with probability softmax(logits)_i."""

    @property
    def mode(self) -> Tensor:
        return self.space.round(self.logits.detach(), self.mask)

    def sample(self, n: int) -> Tensor:
        p = torch.softmax(self.logits.detach()[:, 0], -1)
        return F.one_hot(torch.multinomial(p, n, replacement=True), p.shape[-1]).to(p.dtype)

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        return F.gumbel_softmax(self.logits.expand(-1, n, -1), temperature, dim=-1)

    def log_prob(self, y: Tensor) -> Tensor:
        return inner_product(torch.log_softmax(self.logits[:, 0], -1), y)


class Accuracy(sp.Metric):
    """The share of texts whose topic is found."""

    def __init__(self, task: Topics) -> None:
        self.task, self.right, self.seen = task, 0, 0

    def update(self, proposal: sp.Proposal, batch: sp.Batch) -> None:
        same = (self.task.decode(proposal) == batch.gold).all(-1)[:, 0]
        self.right += int((same & batch.labelled).sum())
        self.seen += int(batch.labelled.sum())

    def compute(self) -> dict[str, Any]:
        return {"accuracy": self.right / max(self.seen, 1)}


class Topics(sp.Task):
    """Lines such as `{"text": "rain and wind", "topic": "weather"}`; without a topic there is no gold."""

    selection = "accuracy"

    class Config(sp.Config):
        train: str
        """File to learn from."""
        validation: str
        """File that picks the best epoch."""
        test: str | None = None
        """File to report on."""

    def load(self) -> None:
        self.parts = {part: self.read(file) for part in sp.PARTS if (file := getattr(self.config, part))}
        words = sorted({word for words, _ in self.parts["train"] for word in words})
        self._set(words, sorted({topic for _, topic in self.parts["train"] if topic}))

    def _set(self, words: list[str], topics: list[str]) -> None:
        self.words, self.number = words, {word: i for i, word in enumerate(words)}
        self.space, self.inputs = OneOf(topics), sp.VectorInputs(len(words), binary=False)

    def part(self, name: str) -> Sequence[Any]:
        return self.parts.get(name, [])

    def read(self, path: str) -> Sequence[Any]:
        found = []
        for number, line in enumerate(sp.locate(path).read_text(encoding="utf-8").splitlines(), 1):
            try:
                found.append(self.parse(json.loads(line)))
            except (ValueError, KeyError, AttributeError):
                raise sp.DataError(path, number, repr(line), 'a table with "text"') from None
        return found

    def parse(self, item: Any) -> Any:
        """`{"text": "rain and wind"}`."""
        return item["text"].split(), item.get("topic")

    def collate(self, examples: Sequence[Any], rows: Sequence[int] | None = None) -> sp.Batch:
        vector, gold = torch.zeros(len(examples), len(self.words)), torch.zeros(len(examples), 1, *self.space.shape)
        for i, (words, topic) in enumerate(examples):
            for word in words:
                if word in self.number:
                    vector[i, self.number[word]] += 1
            if topic is not None:
                gold[i, 0, self.space.labels.index(topic)] = 1
        labelled = torch.tensor([topic is not None for _, topic in examples])
        return sp.Batch(
            sp.X({"vector": vector}, None, len(examples)),
            torch.tensor(list(range(len(examples)) if rows is None else rows)),
            gold if labelled.any() else None,
            labelled,
        )

    def metric(self) -> sp.Metric:
        return Accuracy(self)

    def predictions(self, proposal: sp.Proposal, batch: sp.Batch, examples: Sequence[Any]) -> list[Any]:
        return [{"topic": self.space.labels[i]} for i in self.decode(proposal)[:, 0].argmax(-1).tolist()]

    def facts(self) -> dict[str, Any]:
        return {"words": self.words, "topics": self.space.labels}

    def restore(self, facts: Mapping[str, Any]) -> None:
        self._set(facts["words"], facts["topics"])

    def protocol(self) -> dict[str, Any]:
        return {"accuracy": "right topics / texts with one", "split": "files", "threshold": None}

    def show(self, example: Any) -> sp.Shown:
        words, topic = example
        return sp.Shown([" ".join(words)], None if topic is None else [topic])

    def checksums(self) -> dict[str, str]:
        files = [file for part in sp.PARTS if (file := getattr(self.config, part))]
        return {file: sp.sha256(sp.locate(file)) for file in files}


class Sums(sp.FeatureNetwork):
    """One layer over counts of words."""

    class Config(sp.Config):
        size: int = Field(4, ge=1)
        """Size of a text's vector."""

    def __init__(self, config: Config, task: sp.Task) -> None:
        super().__init__(config, task)
        if not isinstance(task.inputs, sp.VectorInputs) or task.inputs.binary:
            raise sp.ConfigError("features 'acme.sums' takes vectors of numbers; choose another task")
        self.output_dim = config.size
        self.layer = torch.nn.Linear(task.inputs.size, config.size)

    def forward(self, x: sp.X) -> Tensor:
        return torch.tanh(self.layer(x.inputs["vector"]))


class Linear(sp.InferenceNet):
    """A linear layer on the features."""

    uses_features = True

    def __init__(self, config: sp.Config, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.output = torch.nn.Linear(features.output_dim, self.space.shape[-1])

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        features = self.features(x)
        return self.space.independent(self.output(features).unsqueeze(1), x.mask, features=features)


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
    """[Δ(F, y) − E(F) + E(y)]₊, and the same for the net's own output without Δ."""

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
        wrong, net, right = energy(torch.cat([y, proposal.mean, batch.gold], 1)).unbind(1)
        cost = margin_cost(self.space, y, batch.gold, batch.x.mask, self.config.cost)[:, 0]
        return {
            "margin": F.relu(cost - wrong + right) * batch.labelled,
            "perceptron": F.relu(right - net) * batch.labelled,
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
        seen = torch.cat([proposal.mean.detach(), batch.gold], -1)
        return self.space.independent(self.layer(seen), batch.x.mask)


class Turns(sp.Trainer):
    """The net alone first, then net and energy by turns on each batch."""

    needs = ("energy", "energy_loss")

    class Config(sp.TrainerConfig):
        net: sp.Player = sp.Player()
        """The nets' player."""
        energy: sp.Player = sp.Player()
        """The energy's player."""

    def stages(self, model: sp.Model, task: sp.Task) -> list[sp.Stage]:
        c = self.config
        nets = ("inference_net", "energy_loss") if list(model.energy_loss.parameters()) else ("inference_net",)
        phases = (sp.Phase("nets", nets, self._loss, c.net), sp.energy_phase(c.energy))
        first = sp.net_stage(model, task, 1, c.net, c.patience)
        return [first, sp.Stage("turns", phases, c.epochs, patience=c.patience)]

    def _loss(self, context: sp.Context) -> sp.Terms:
        return {**sp.net_terms(context), "cross_entropy": sp.cross_entropy(context)}


def count_topics(file: Path) -> None:
    """Count the topics in FILE."""
    topics = [json.loads(line)["topic"] for line in file.read_text().splitlines()]
    for topic in sorted(set(topics)):
        print(topic, topics.count(topic))


def topic_shares(run: Run, out: Out = None) -> None:
    """Shares of the topics among the training texts of a run."""
    group = group_of(run)
    task = load_task(group.runs[0], sp.Registry())
    topics = [topic for _, topic in task.part("train") if topic]
    save_figure(_bars({topic: topics.count(topic) for topic in sorted(set(topics))}), group, "topic_shares", out)


@styled
def _bars(counts: Mapping[str, int]) -> Any:
    figure = new_figure(4, 3)
    figure.subplots().bar(list(counts), list(counts.values()))
    return figure


def model() -> Path:
    return Path(__file__).parent / "model"


@sp.hookimpl
def spen_task() -> sp.Classes:
    return {"topics": Topics}


@sp.hookimpl
def spen_feature_network() -> sp.Classes:
    return {"sums": Sums}


@sp.hookimpl
def spen_inference_net() -> sp.Classes:
    return {"linear": Linear}


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
def spen_trainer() -> sp.Classes:
    return {"turns": Turns}


@sp.hookimpl
def spen_command() -> sp.Functions:
    return {"count_topics": "spen_acme:count_topics"}


@sp.hookimpl
def spen_figure() -> sp.Functions:
    return {"topic_shares": "spen_acme:topic_shares"}


@sp.hookimpl
def spen_model() -> sp.Functions:
    return {"spen_multilabel": "spen_acme:model"}
