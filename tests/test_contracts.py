"""Every registered component passes the contract checks, found through the registry as a user's own would be."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.model import Model
from spen_plugins.registry import Registry
from spen_plugins.testing import (
    ToyFeatures,
    ToyLabels,
    ToyTags,
    check_energy,
    check_energy_loss,
    check_feature_network,
    check_inference_net,
    check_space,
    check_task,
    check_trainer,
)

REGISTRY = Registry()
TOYS = {"labels": ToyLabels, "binary labels": lambda: ToyLabels(binary=True), "tags": ToyTags}
PLAIN = {name: TOYS[name] for name in ("labels", "tags")}

# Fields a type can't do without here, or that make it small.
SMALL = {
    "mlp": {"hidden": [3, 2]},
    "bilstm": {"word_dim": 3, "hidden": 2, "layers": 2},
    "seal.labels": {"hidden": 3},
    "seal.self_attention": {"dim": 4, "heads": 2},
    "multilabel": {"corpus": "sample"},
    "srl": {"corpus": "sample"},
}


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


def parse(kind: str, name: str, tmp_path):
    fields = dict(SMALL.get(name, {}))
    if name == "transformer":
        fields["model"] = str(tiny_bert(tmp_path))
    try:
        return REGISTRY.parse(kind, {"type": name, **fields}, kind, "test")
    except PluginError as error:
        pytest.fail(str(error))


def build(kind: str, name: str, task, tmp_path):
    """The component on this task, or a skip where it says that such a task is not for it."""
    cls, config = parse(kind, name, tmp_path)
    try:
        if kind == "features":
            return cls(config, task)
        return cls(config, task, ToyFeatures(task) if cls.uses_features else None)
    except ConfigError as error:
        pytest.skip(str(error))


def tiny_bert(folder):
    transformers = pytest.importorskip("transformers")
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *"abcdefghijklmnopqrstuvwxyz",
        *[f"##{c}" for c in "aehnsty"],
    ]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def some_energy(task):
    return (ENERGY_FOR[type(task)])(task)


def _labels_energy(task):
    cls, config = REGISTRY.parse("energy", {"type": "seal.labels", "hidden": 3}, "energy", "test")
    return cls(config, task, ToyFeatures(task))


def _tags_energy(task):
    cls, config = REGISTRY.parse("energy", {"type": "linear_chain"}, "energy", "test")
    return cls(config, task, ToyFeatures(task))


ENERGY_FOR = {ToyLabels: _labels_energy, ToyTags: _tags_energy}


def independent(task):
    cls, config = REGISTRY.parse("inference_net", {"type": "independent"}, "inference_net", "test")
    return cls(config, task, ToyFeatures(task))


@pytest.mark.parametrize("toy", PLAIN)
@pytest.mark.parametrize("name", REGISTRY.names("energy"))
def test_energies(name, toy, tmp_path):
    task = TOYS[toy]()
    check_energy(build("energy", name, task, tmp_path), task)


@pytest.mark.parametrize("toy", PLAIN)
@pytest.mark.parametrize("name", REGISTRY.names("energy_loss"))
def test_energy_losses(name, toy, tmp_path):
    task = TOYS[toy]()
    check_energy_loss(build("energy_loss", name, task, tmp_path), some_energy(task), independent(task), task)


@pytest.mark.parametrize("toy", PLAIN)
@pytest.mark.parametrize("name", REGISTRY.names("inference_net"))
def test_inference_nets(name, toy, tmp_path):
    task = TOYS[toy]()
    net = build("inference_net", name, task, tmp_path)
    check_inference_net(net, task, some_energy(task) if net.uses_energy else None)


@pytest.mark.parametrize("toy", TOYS)
@pytest.mark.parametrize("name", REGISTRY.names("features"))
def test_feature_networks(name, toy, tmp_path):
    task = TOYS[toy]()
    features = build("features", name, task, tmp_path)
    if features.indexer() is not None:
        key, indexer = features.indexer()
        task.indexers[key] = indexer
    check_feature_network(features, task)


@pytest.mark.parametrize("toy", PLAIN)
@pytest.mark.parametrize("name", REGISTRY.names("trainer"))
def test_trainers(name, toy, tmp_path):
    task = TOYS[toy]()
    cls, config = parse("trainer", name, tmp_path)
    losses = [None]
    if "energy_loss" in cls.needs:
        losses = [build("energy_loss", loss, task, tmp_path) for loss in REGISTRY.names("energy_loss")]
    for loss in losses:
        check_trainer(cls(config), Model(independent(task), some_energy(task), loss), task)


@pytest.mark.parametrize("name", REGISTRY.names("task"))
def test_tasks(name, tmp_path):
    cls, config = parse("task", name, tmp_path)
    task = cls(config)
    task.load()
    check_task(task)
    check_space(task.space)


@pytest.mark.parametrize("toy", TOYS)
def test_toys(toy):
    check_task(TOYS[toy]())
    check_space(TOYS[toy]().space)


def test_nothing_is_left_out():
    """Every plugin of this environment can be imported, or the tests above would leave it out in silence."""
    assert [plugin.error for plugin in REGISTRY.check() if plugin.error] == []


class SumOfLabels(sp.Energy):
    """A sound energy; the broken ones below differ from it in one line."""

    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.weight = torch.nn.Parameter(torch.randn(task.space.shape[-1]))

    def forward(self, features, y):
        y = y * self.weight
        return -y.tanh().sum(-1) if y.dim() == 3 else -(y.tanh().sum(-1) * features.unsqueeze(1)).sum(-1)


class SeesOtherSamples(SumOfLabels):
    def forward(self, features, y):
        return super().forward(features, y) - y.mean((1, 2), keepdim=False).unsqueeze(1)


class SeesOtherExamples(SumOfLabels):
    def forward(self, features, y):
        return super().forward(features, y) - y.mean((0, 2))


class SeesItsPlace(SumOfLabels):
    def forward(self, features, y):
        return super().forward(features, y) + torch.arange(y.shape[0]).unsqueeze(1)


class AveragesOverPadding(SumOfLabels):
    def forward(self, features, y):
        return super().forward(features, y) / y.shape[2]


class NoGradient(SumOfLabels):
    def forward(self, features, y):
        return super().forward(features, y.detach()) + 0 * y.flatten(2).sum(-1)


class TransposesResult(SumOfLabels):
    def forward(self, features, y):
        return super().forward(features, y).T


class TwoNamesForOneTensor(SumOfLabels):
    def __init__(self, config, task, features=None):
        super().__init__(config, task, features)
        self.alias = self.weight


def test_a_sound_energy_passes():
    for toy in PLAIN:
        task = TOYS[toy]()
        check_energy(SumOfLabels(sp.Config(), task), task)


@pytest.mark.parametrize(
    ("broken", "toy", "says"),
    [
        (SeesOtherSamples, "labels", "depends on other outputs"),
        (SeesOtherExamples, "labels", "neighbours"),
        (SeesItsPlace, "labels", "permuting"),
        (AveragesOverPadding, "tags", "padding"),
        (NoGradient, "labels", "gradient in y|Jacobian mismatch"),
        (TransposesResult, "labels", "expected"),
        (TwoNamesForOneTensor, "labels", "can't be stored"),
    ],
)
def test_the_checks_find_a_broken_energy(broken, toy, says):
    task = TOYS[toy]()
    with pytest.raises(Exception, match=says):
        check_energy(broken(sp.Config(), task), task)


class BatchMean(sp.EnergyLoss):
    def forward(self, energy, batch, proposal):
        return energy(proposal.y).mean().expand(len(batch))


class IgnoresLabelled(sp.EnergyLoss):
    def forward(self, energy, batch, proposal):
        return energy(proposal.y)[:, 0]


class StopsAtTheNet(sp.EnergyLoss):
    def forward(self, energy, batch, proposal):
        return energy(proposal.y)[:, 0] * batch.labelled * (batch.gold is not None)

    def net_term(self, energy, batch, proposal):
        return energy(proposal.y.detach())[:, 0]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (BatchMean, "of one example depends on the net's output for another"),
        (IgnoresLabelled, "not 0 in rows without gold"),
        (StopsAtTheNet, "no gradient to the net"),
    ],
)
def test_the_checks_find_a_broken_loss(broken, says):
    task = ToyLabels()
    with pytest.raises(AssertionError, match=says):
        check_energy_loss(broken(sp.Config(), task), some_energy(task), independent(task), task)


class TrainsTwice(sp.Trainer):
    def stages(self, model, task):
        phases = tuple(
            sp.Phase(
                name, ("inference_net",), lambda c: {"x": c.proposal.logits.flatten(1).sum(1)}, sp.OptimizerConfig()
            )
            for name in ("one", "two")
        )
        return [sp.Stage("twice", phases, 1)]


def test_the_checks_find_a_broken_trainer():
    task = ToyLabels()
    with pytest.raises(AssertionError, match=r"inference_net\.\S+ belongs to \['one', 'two'\]"):
        check_trainer(TrainsTwice(sp.TrainerConfig()), Model(independent(task), None, None), task)
