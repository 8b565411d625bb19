"""Experiments: errors before any data are read, and the parts that are built."""

from __future__ import annotations

import json
import re

import pytest
import torch

from spen_plugins.config.evaluation import evaluate, parse_arguments
from spen_plugins.config.experiment import build, make_task, parse_experiment
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.registry import Registry

TOY = """
    import torch
    import spen_plugins as sp

    class Toy(sp.Task):
        selection = "f"
        loads = 0

        class Config(sp.Config):
            labels: int = 3

        def load(self):
            type(self).loads += 1
            self.restore({"labels": self.config.labels})
            torch.rand(7)  # a task may draw numbers of its own

        def restore(self, facts):
            self.space = sp.LabelSet([str(i) for i in range(facts["labels"])])
            self.inputs = sp.VectorInputs(4, False)

        part = collate = metric = predictions = read = parse = facts = protocol = lambda self, *_: None

    class Features(sp.FeatureNetwork):
        class Config(sp.Config):
            width: int = 5

        def __init__(self, config, task):
            super().__init__(config, task)
            self.output_dim = config.width
            self.layer = torch.nn.Linear(task.inputs.size, config.width)

        def indexer(self):
            return f"width {self.config.width}", self.output_dim

    class Component:
        uses_features = True

        def __init__(self, config, task, features):
            super().__init__(config, task, features)
            self.layer = torch.nn.Linear(features.output_dim, task.space.shape[0])

    class Net(Component, sp.InferenceNet): pass
    class Energy(Component, sp.Energy):
        class Config(sp.Config):
            depth: int = 1
    class Other(sp.Energy): pass
    class Loss(sp.EnergyLoss): pass
    class Optimiser(sp.InferenceNet):
        uses_energy = True

    class Trainer(sp.Trainer):
        needs = ("energy", "energy_loss")
        def stages(self, model, task): return []

    class Plain(sp.Trainer):
        def stages(self, model, task): return []

    @sp.hookimpl
    def spen_task(): return {"task": Toy}
    @sp.hookimpl
    def spen_feature_network(): return {"features": Features}
    @sp.hookimpl
    def spen_inference_net(): return {"net": Net, "optimiser": Optimiser}
    @sp.hookimpl
    def spen_energy(): return {"energy": Energy, "other": Other}
    @sp.hookimpl
    def spen_energy_loss(): return {"loss": Loss}
    @sp.hookimpl
    def spen_trainer(): return {"game": Trainer, "plain": Plain}
"""


@pytest.fixture
def registry(site) -> Registry:
    site.install("toy", TOY)
    return Registry([str(site.path)])


def make_config(**changes):
    table = {
        "task": {"type": "toy.task"},
        "features": {"type": "toy.features"},
        "inference_net": {"type": "toy.net"},
        "energy": {"type": "toy.energy"},
        "energy_loss": {"type": "toy.loss"},
        "trainer": {"type": "toy.game"},
        **changes,
    }
    return {key: value for key, value in table.items() if value is not ...}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            'features={"type": "mlp", "dropout": 8, "hidden": [4]}',
            "'features.dropout': found 8; expected float >= 0 and < 1",
        ),
        ("features.hidden=[4, 0]", "'features.hidden.1': found 0"),
        (
            "trainer.net.lr=1e999",
            "'trainer.net.lr': found Infinity; expected float, > 0 (input should be a finite number)",
        ),
        ("trainer.net.lr=-1", "'trainer.net.lr': found -1; expected float, > 0"),
        ("trainer.net.momentum=0.9", "momentum requires type 'sgd'"),
        ("trainer.epochs=0", "'trainer.epochs': found 0; expected int, >= 1"),
        ("task.threshold=1.5", "'task.threshold': found 1.5; expected float >= 0 and <= 1"),
        ("task.at=[0]", "'task.at.0': found 0"),
    ],
)
def test_numbers_out_of_range(table, message):
    config = evaluate("labels", parse_arguments([table]))
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_experiment(config, "my.jsonnet", Registry())


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"trainr": {}}, ConfigError, "unknown key 'trainr'. Did you mean 'trainer'?"),
        ({"task": ...}, ConfigError, "'task' is missing"),
        ({"seed": -1}, ConfigError, "'seed': found -1; expected int, >= 0"),
        ({"seed": "1"}, ConfigError, "'seed': found \"1\""),
        ({"precision": "fp8"}, ConfigError, '\'precision\': found "fp8"; expected "no" | "bf16" | "fp16"'),
        ({"init": {"enrgy": "x"}}, ConfigError, "unknown key 'init.enrgy'. Did you mean 'energy'?"),
        (
            {"energy": {"type": "toy.energy", "dpth": 1}},
            ConfigError,
            "unknown key 'energy.dpth'. Did you mean 'depth'?",
        ),
        ({"task": {"type": "toy.tsk"}}, ConfigError, "task.type: unknown task 'toy.tsk'. Did you mean 'toy.task'?"),
        ({"energy": {"type": "nope.e"}}, PluginError, "energy.type: energy 'nope.e' requires the plugin 'nope'"),
        (
            {"trainer": {"type": "toy.loss"}},
            ConfigError,
            "trainer.type: 'toy.loss' is of kind energy_loss, not trainer",
        ),
        ({"energy": ...}, ConfigError, "trainer 'toy.game' requires 'energy'"),
        ({"energy_loss": None}, ConfigError, "trainer 'toy.game' requires 'energy_loss'"),
        ({"energy": None, "trainer": {"type": "toy.plain"}}, ConfigError, "found 'energy_loss' without 'energy'"),
        ({"features": None}, ConfigError, "inference_net 'toy.net' requires a feature network"),
        ({"features": {"type": "toy.features", "wdth": 1}}, ConfigError, "'features.wdth'. Did you mean 'width'?"),
        (
            {"energy": {"type": "toy.energy", "features": {"type": "toy.features", "x": 1}}},
            ConfigError,
            "unknown key 'energy.features.x'",
        ),
        (
            {"energy": {"type": "toy.other", "features": {"type": "toy.features"}}},
            ConfigError,
            "energy 'toy.other' uses no feature network",
        ),
        (
            {
                "inference_net": {"type": "toy.optimiser"},
                "energy": ...,
                "energy_loss": ...,
                "trainer": {"type": "toy.plain"},
            },
            ConfigError,
            "requires an energy",
        ),
        (
            {"energy": ..., "energy_loss": ..., "trainer": {"type": "toy.plain"}, "init": {"energy": "runs/x"}},
            ConfigError,
            "found init.energy without 'energy'",
        ),
    ],
)
def test_errors_are_raised_before_data_are_read(registry, changes, error, message):
    with pytest.raises(error) as info:
        parse_experiment(make_config(**changes), "my.jsonnet", registry)
    assert message in str(info.value)
    assert str(info.value).startswith("my.jsonnet: ")


def test_a_checked_config_is_complete_and_checks_again(registry):
    experiment = parse_experiment(
        make_config(energy={"type": "toy.energy", "features": {"type": "toy.features"}}), "x", registry
    )
    table = experiment.table()
    assert table["task"] == {"type": "toy.task", "labels": 3}
    assert table["energy"] == {"type": "toy.energy", "depth": 1, "features": {"type": "toy.features", "width": 5}}
    assert "features" not in table["inference_net"] and table["features"] == {"type": "toy.features", "width": 5}
    assert experiment.trainer.config.patience == table["trainer"]["patience"] == 20
    order = ["seed", "task", "features", "inference_net", "energy", "energy_loss", "trainer", "init", "precision"]
    assert list(table) == order
    assert parse_experiment(json.loads(json.dumps(table)), "x", registry) == experiment


def test_a_null_survives_a_round_trip(registry):
    experiment = parse_experiment(make_config(trainer={"type": "toy.game", "patience": None}), "x", registry)
    restored = parse_experiment(json.loads(json.dumps(experiment.table())), "x", registry)
    assert restored.trainer.config.patience is None


def test_every_table_is_parsed_once(registry, monkeypatch):
    parsed = []
    parse = Registry.parse

    def count(self, kind, spec, where, source):
        parsed.append(where)
        return parse(self, kind, spec, where, source)

    monkeypatch.setattr(Registry, "parse", count)
    energy = {"type": "toy.energy", "features": {"type": "toy.features"}}
    build(parse_experiment(make_config(energy=energy), "x", registry))
    tables = ["task", "trainer", "features", "inference_net", "energy", "energy.features", "energy_loss"]
    assert parsed == tables


def test_each_net_has_its_own_features(registry):
    energy_table = {"type": "toy.energy", "features": {"type": "toy.features", "width": 9}}
    built = build(parse_experiment(make_config(energy=energy_table), "x", registry))
    net, energy = built.model.inference_net, built.model.energy
    assert (net.features.output_dim, energy.features.output_dim) == (5, 9)
    assert built.task.indexers == {"width 5": 5, "width 9": 9}
    assert built.model.energy_loss.features is None
    other_model = build(parse_experiment(make_config(), "x", registry)).model
    assert other_model.energy.features is not other_model.inference_net.features
    assert not torch.equal(other_model.energy.features.layer.weight, other_model.inference_net.features.layer.weight)


def test_the_net_starts_the_same_with_any_energy(registry):
    def initial_weights(**changes):
        net = build(parse_experiment(make_config(**changes), "x", registry)).model.inference_net
        return torch.cat([p.flatten() for p in net.parameters()])

    start = initial_weights(seed=3)
    torch.rand(5)
    assert torch.equal(start, initial_weights(seed=3))
    assert torch.equal(start, initial_weights(seed=3, energy={"type": "toy.other"}))
    assert torch.equal(start, initial_weights(seed=3, energy=..., energy_loss=..., trainer={"type": "toy.plain"}))
    assert not torch.equal(start, initial_weights(seed=4))


def test_a_restored_task_is_not_loaded(registry):
    experiment = parse_experiment(make_config(), "x", registry)
    task = make_task(experiment)
    task.restore({"labels": 2})
    loads = type(task).loads
    built = build(experiment, task)
    assert built.task is task
    assert type(task).loads == loads
    assert built.model.inference_net.layer.out_features == 2
    build(experiment)
    assert type(task).loads == loads + 1


def test_warm_starts_by_net(registry):
    experiment = parse_experiment(make_config(init={"energy": "runs/a"}), "x", registry)
    assert dict(experiment.init.items()) == {"energy": "runs/a"}
